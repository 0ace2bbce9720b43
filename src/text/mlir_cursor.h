#pragma once

// A position in MLIR text and primitive parsing steps. The text needs no end marker: every step
// checks for the end first.

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "ir/ir.h"

namespace tokamak {

inline bool IsMlirWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool IsMlirDigit(char c) {
  return c >= '0' && c <= '9';
}
// Letters, digits, '_' and, inside names of ops and symbols, '$' '.'.
inline bool IsMlirWordChar(char c) {
  return IsMlirWordStart(c) || IsMlirDigit(c) || c == '$' || c == '.';
}
// Names of values may also hold '-'.
inline bool IsMlirNameChar(char c) {
  return IsMlirWordChar(c) || c == '-';
}

class MlirCursor {
 public:
  MlirCursor() = default;
  MlirCursor(std::string_view text, uint32_t first_line)
      : at_(text.data()),
        end_(text.data() + text.size()),
        line_(first_line),
        line_begin_(text.data()) {}

  const char* at() const { return at_; }
  const char* end() const { return end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  // The next character that is neither a blank nor in a comment; '\0' at the end.
  char Peek() {
    if (at_<end_&& static_cast<unsigned char>(*at_)> ' ' && *at_ != '/') return *at_;
    SkipBlanks();
    return at_ < end_ ? *at_ : '\0';
  }
  // The current character, blank or not.
  char Here() const { return at_ < end_ ? *at_ : '\0'; }
  char After(size_t n) const { return left() > n ? at_[n] : '\0'; }
  void Advance(size_t n = 1) { at_ += n; }

  bool Eat(char c) {
    if (Peek() != c || at_ == end_) return false;
    ++at_;
    return true;
  }
  bool StartsWith(std::string_view word) {
    Peek();
    return left() >= word.size() && std::memcmp(at_, word.data(), word.size()) == 0;
  }
  // Consumes punctuation: "->", "::", "{-#".
  bool Eat(std::string_view text) {
    if (!StartsWith(text)) return false;
    at_ += text.size();
    return true;
  }
  // Consumes a whole word, not the prefix of a longer one.
  bool EatWord(std::string_view word) {
    if (!StartsWith(word) || IsMlirWordChar(After(word.size()))) return false;
    at_ += word.size();
    return true;
  }
  // A word such as stablehlo.add; empty if there is none.
  std::string_view Word() {
    char c = Peek();
    if (!IsMlirWordStart(c)) return {};
    const char* begin = at_;
    while (at_ < end_ && IsMlirWordChar(*at_)) ++at_;
    return {begin, static_cast<size_t>(at_ - begin)};
  }
  // Like Word, but does not consume it.
  std::string_view PeekWord() {
    const char* begin = (Peek(), at_);
    std::string_view word = Word();
    at_ = begin;
    return word;
  }
  // The name after '%', '#', '!' or '@': letters, digits and $ . _ -
  std::string_view Name() {
    const char* begin = at_;
    while (at_ < end_ && IsMlirNameChar(*at_)) ++at_;
    return {begin, static_cast<size_t>(at_ - begin)};
  }

  TextPos Pos() {
    Peek();
    return {line_, static_cast<uint32_t>(at_ - line_begin_) + 1};
  }
  // The position of the last consumed character.
  TextPos LastPos() const { return {line_, static_cast<uint32_t>(at_ - line_begin_)}; }
  struct Mark {
    const char* at;
    uint32_t line;
    const char* line_begin;
  };
  Mark Save() const { return {at_, line_, line_begin_}; }
  void Restore(const Mark& mark) {
    at_ = mark.at;
    line_ = mark.line;
    line_begin_ = mark.line_begin;
  }
  // Advances to `to`, which must lie ahead, and counts the lines in between.
  void SkipTo(const char* to) {
    while (at_ < to) {
      const void* found = std::memchr(at_, '\n', static_cast<size_t>(to - at_));
      if (found == nullptr) break;
      at_ = static_cast<const char*>(found) + 1;
      ++line_;
      line_begin_ = at_;
    }
    at_ = to;
  }

 private:
  void SkipBlanks() {
    while (at_ < end_) {
      char c = *at_;
      if (c == '\n') {
        ++at_;
        ++line_;
        line_begin_ = at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
        ++at_;
      } else if (c == '/' && After(1) == '/') {
        const void* found = std::memchr(at_, '\n', left());
        at_ = found == nullptr ? end_ : static_cast<const char*>(found);
      } else {
        return;
      }
    }
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  uint32_t line_ = 1;
  const char* line_begin_ = nullptr;
};

}  // namespace tokamak
