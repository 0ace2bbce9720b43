#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/error.h"

namespace tokamak {

// The lexer of kernel IR. Every parsing function returns false after Fail(), which keeps the first
// error.
class KernelCursor {
 public:
  explicit KernelCursor(std::string_view text) : text_(text) {}

  bool Fail(ErrorCode code, std::string message, std::optional<size_t> where = std::nullopt);
  bool FailExpected(std::string_view what);
  Error TakeError(const std::string& file);

  // Counts lines incrementally from the last requested position.
  TextSpan Span(size_t position);
  size_t Here();
  void MoveTo(size_t position) { at_ = position; }
  bool AtEnd() { return Here() >= text_.size(); }

  bool Try(std::string_view token);
  bool Expect(std::string_view token);
  std::string_view PeekWord();
  bool AtDigit();
  bool Name(std::string& name);
  // A numeric token: digits, letters, signs and points.
  std::string_view Number();
  bool Int(int64_t& value);
  bool String(std::string& value);

 private:
  void SkipBlanks();
  // The next token, for an error message.
  std::string_view Next();

  std::string_view text_;
  size_t at_ = 0, counted_ = 0, line_start_ = 0, where_ = 0;
  int line_ = 1;
  bool failed_ = false;
  ErrorCode code_{};
  std::string message_;
};

}  // namespace tokamak
