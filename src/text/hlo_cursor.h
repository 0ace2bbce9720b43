#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/ir.h"
#include "support/error.h"

namespace tokamak {

// A place in HLO text. HLO needs no token table: what comes next is always
// told by its first characters, so the readers work on the text itself.
//
// Every reader is a function that returns false after Fail(). The first
// failure is kept; it is located by the token that was wrong.
class HloCursor {
 public:
  explicit HloCursor(std::string_view text, int first_line = 1)
      : begin_(text.data()),
        end_(text.data() + text.size()),
        at_(text.data()),
        first_line_(static_cast<uint32_t>(first_line)),
        counted_(begin_) {}

  // Notes an error at `where`, or at the next token. Always false.
  bool Fail(ErrorCode code, std::string message, const char* where = nullptr);
  // "expected ',', found 'x'".
  bool FailExpected(std::string_view what);
  bool failed() const { return error_.has_value(); }
  // Only after a failure. Lines and columns are those of the whole text.
  Error TakeError(const std::string& file) const;

  // Skips blanks, line ends and comments, and gives the next character; NUL at
  // the end of the text (and for a NUL in the text, which nothing accepts).
  char Peek() {
    SkipBlanks();
    return at_ < end_ ? *at_ : '\0';
  }
  bool AtEnd() { return Peek() == '\0' && at_ >= end_; }
  // The next character as it stands, blanks included.
  char PeekRaw(size_t ahead = 0) const {
    return static_cast<size_t>(end_ - at_) > ahead ? at_[ahead] : '\0';
  }
  void Advance(size_t count) { at_ += count; }
  const char* at() const { return at_; }
  const char* end() const { return end_; }
  void MoveTo(const char* place) { at_ = place; }
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

  bool Try(char c) {
    if (Peek() != c || at_ >= end_) return false;
    ++at_;
    return true;
  }
  bool Expect(char c) { return Try(c) || FailExpected(std::string_view(&c, 1)); }
  // `text` as it stands; no check of what follows it.
  bool TryText(std::string_view text);
  bool ExpectText(std::string_view text) { return TryText(text) || FailExpected(text); }
  // `word` and not merely the start of a longer one.
  bool TryWord(std::string_view word);

  // [A-Za-z0-9_.-]*, perhaps empty.
  std::string_view Word();
  // The same without consuming it.
  std::string_view PeekWord();
  // A name with or without '%', perhaps quoted.
  bool Name(std::string_view& name);
  bool Int(int64_t& value);
  // A decimal or hexadecimal number, inf, nan; with a sign.
  bool Double(double& value);
  bool Bool(bool& value);
  // "..." with \" \n \t \\ \' \xHH and \ooo undone.
  bool String(std::string& value);
  // {1,2,3} with the given brackets.
  bool Ints(Dims& values, char open = '{', char close = '}');
  // Skips to after the bracket that closes the one that is next: strings and
  // nested brackets are stepped over. `text` gets all of it.
  bool Balanced(std::string_view& text);
  // The same for {...} where only braces count: JSON, MLIR dictionaries.
  bool Braces(std::string_view& text);

  // Counts on from the last place asked for: cheap when places only grow.
  TextPos PosOf(const char* place);

  // Guards recursion: `Depth depth(cursor); if (!depth.ok) return false;`.
  struct Depth {
    explicit Depth(HloCursor& cursor);
    ~Depth() { --cursor_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    bool ok;

   private:
    HloCursor& cursor_;
  };

  static bool IsWordChar(char c) { return kWordChars[static_cast<unsigned char>(c)]; }

 private:
  struct CharSet {
    bool set[256] = {};
    constexpr bool operator[](unsigned char c) const { return set[c]; }
    constexpr CharSet() {
      for (int c = '0'; c <= '9'; ++c) set[c] = true;
      for (int c = 'a'; c <= 'z'; ++c) set[c] = set[c - 'a' + 'A'] = true;
      for (unsigned char c : {'_', '.', '-'}) set[c] = true;
    }
  };
  static const CharSet kWordChars;

  void SkipBlanks() {
    while (at_ < end_) {
      char c = *at_;
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c != '/' || !SkipComment()) {
        return;
      }
    }
  }
  bool SkipComment();
  bool Escape(std::string& value);

  const char *begin_, *end_, *at_;
  uint32_t first_line_;
  const char* counted_;  // lines up to here are counted
  uint32_t line_ = first_line_;
  const char* line_start_ = begin_;
  int depth_ = 0;
  struct Failure {
    ErrorCode code;
    std::string message;
    const char* where;
  };
  std::optional<Failure> error_;
};

// Appends `text` in double quotes, so that HloCursor::String reads it back.
void AppendQuoted(std::string& out, std::string_view text);

}  // namespace tokamak
