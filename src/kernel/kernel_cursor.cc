#include "kernel/kernel_cursor.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tokamak {
namespace {

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsWordChar(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

bool KernelCursor::Fail(ErrorCode code, std::string message, std::optional<size_t> where) {
  if (failed_) return false;
  SkipBlanks();
  failed_ = true;
  code_ = code;
  message_ = std::move(message);
  where_ = where.value_or(at_);
  return false;
}

bool KernelCursor::FailExpected(std::string_view what) {
  SkipBlanks();
  std::string found = at_ < text_.size() ? fmt::format("'{}'", Next()) : "the end";
  return Fail(ErrorCode::kKernelText, fmt::format("kernel: expected {}, found {}", what, found));
}

Error KernelCursor::TakeError(const std::string& file) {
  TextSpan span = Span(where_);
  span.file = file;
  return MakeError(code_, std::move(message_), std::move(span));
}

TextSpan KernelCursor::Span(size_t position) {
  if (position < counted_) counted_ = 0, line_ = 1, line_start_ = 0;
  for (; counted_ < position; ++counted_)
    if (text_[counted_] == '\n') ++line_, line_start_ = counted_ + 1;
  TextSpan span;
  span.line = line_;
  span.column = static_cast<int>(position - line_start_) + 1;
  return span;
}

size_t KernelCursor::Here() {
  SkipBlanks();
  return at_;
}

bool KernelCursor::Try(std::string_view token) {
  if (!text_.substr(Here()).starts_with(token)) return false;
  size_t end = at_ + token.size();
  if (IsWordChar(token.back()) && end < text_.size() && IsWordChar(text_[end])) return false;
  at_ = end;
  return true;
}

bool KernelCursor::Expect(std::string_view token) {
  return Try(token) || FailExpected(fmt::format("'{}'", token));
}

std::string_view KernelCursor::PeekWord() {
  size_t end = Here();
  while (end < text_.size() && IsWordChar(text_[end])) ++end;
  return text_.substr(at_, end - at_);
}

bool KernelCursor::AtDigit() {
  return Here() < text_.size() && IsDigit(text_[at_]);
}

bool KernelCursor::Name(std::string& name) {
  std::string_view word = PeekWord();
  if (word.empty() || IsDigit(word[0])) return FailExpected("a name");
  name = word;
  at_ += word.size();
  return true;
}

std::string_view KernelCursor::Number() {
  size_t end = Here();
  while (end < text_.size() &&
         (IsWordChar(text_[end]) || text_[end] == '.' || text_[end] == '-' || text_[end] == '+'))
    ++end;
  std::string_view number = text_.substr(at_, end - at_);
  at_ = end;
  return number;
}

bool KernelCursor::Int(int64_t& value) {
  std::string_view rest = text_.substr(Here());
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc()) return FailExpected("a whole number");
  at_ += static_cast<size_t>(end - rest.data());
  return true;
}

bool KernelCursor::String(std::string& value) {
  if (!Expect("\"")) return false;
  for (value.clear(); at_ < text_.size() && text_[at_] != '\n'; ++at_) {
    if (text_[at_] == '"') {
      ++at_;
      return true;
    }
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    value += text_[at_];
  }
  return FailExpected("'\"'");
}

void KernelCursor::SkipBlanks() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else if (text_.substr(at_).starts_with("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

std::string_view KernelCursor::Next() {
  std::string_view word = PeekWord();
  return word.empty() ? text_.substr(at_, 1) : word.substr(0, 40);
}

}  // namespace tokamak
