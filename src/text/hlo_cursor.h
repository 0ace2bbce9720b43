#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/ir.h"
#include "support/error.h"

namespace tokamak {

// A position in HLO text. HLO needs no tokenizer: the first characters always determine what comes
// next, so the parsers work directly on the text.
//
// Every parsing function returns false after Fail(). Only the first failure is kept; it is located
// at the offending token.
class HloCursor {
 public:
  explicit HloCursor(std::string_view text, int first_line = 1)
      : begin_(text.data()),
        end_(text.data() + text.size()),
        at_(text.data()),
        first_line_(static_cast<uint32_t>(first_line)),
        counted_(begin_) {}

  // Records an error at `where`, or at the next token. Always returns false.
  bool Fail(ErrorCode code, std::string message, const char* where = nullptr);
  // "expected ',', found 'x'".
  bool FailExpected(std::string_view what);
  bool failed() const { return error_.has_value(); }
  // Requires a previous failure. Lines and columns refer to the whole text.
  Error TakeError(const std::string& file) const;

  // Skips blanks, line ends and comments and returns the next character; NUL at the end of the text
  // (and for a NUL in the text, which no parser accepts).
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
  void MoveTo(const char* position) { at_ = position; }
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

  bool Try(char c) {
    if (Peek() != c || at_ >= end_) return false;
    ++at_;
    return true;
  }
  bool Expect(char c) { return Try(c) || FailExpected(std::string_view(&c, 1)); }
  // Consumes exactly `text`; does not check what follows it.
  bool TryText(std::string_view text);
  bool ExpectText(std::string_view text) { return TryText(text) || FailExpected(text); }
  // Consumes `word` only if it is not a prefix of a longer word.
  bool TryWord(std::string_view word);

  // Consumes [A-Za-z0-9_.-]*, possibly empty.
  std::string_view Word();
  // Like Word, but does not consume it.
  std::string_view PeekWord();
  // A name with or without '%', optionally quoted.
  bool Name(std::string_view& name);
  bool Int(int64_t& value);
  // A decimal or hexadecimal number, inf or nan, with an optional sign.
  bool Double(double& value);
  bool Bool(bool& value);
  // "..." with the escapes \" \n \t \\ \' \xHH and \ooo decoded.
  bool String(std::string& value);
  // {1,2,3} with the given brackets.
  bool Ints(Dims& values, char open = '{', char close = '}');
  // Consumes a bracketed text up to the matching closing bracket, skipping strings and nested
  // brackets. `text` receives all of it.
  bool Balanced(std::string_view& text);
  // Like Balanced for {...}, but only braces nest: JSON, MLIR dictionaries.
  bool Braces(std::string_view& text);

  // Counts lines from the last position queried: cheap if positions only grow.
  TextPos PosOf(const char* position);

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
