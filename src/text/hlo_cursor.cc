#include "text/hlo_cursor.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace tokamak {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsOctal(char c) {
  return c >= '0' && c <= '7';
}

char Closing(char open) {
  return open == '{' ? '}' : open == '[' ? ']' : open == '(' ? ')' : '\0';
}

}  // namespace

constexpr HloCursor::CharSet HloCursor::kWordChars{};

HloCursor::Depth::Depth(HloCursor& cursor) : ok(true), cursor_(cursor) {
  if (++cursor_.depth_ > kMaxNesting) {
    ok = cursor_.Fail(ErrorCode::kTooDeep, "nested deeper than " + std::to_string(kMaxNesting));
  }
}

bool HloCursor::Fail(ErrorCode code, std::string message, const char* where) {
  if (error_) return false;
  if (where == nullptr) {
    SkipBlanks();
    where = at_;
  }
  error_ = Failure{code, std::move(message), where};
  return false;
}

bool HloCursor::FailExpected(std::string_view what) {
  SkipBlanks();
  std::string found;
  if (at_ >= end_) {
    found = "the end of the text";
  } else {
    std::string_view word = PeekWord();
    if (word.empty()) word = std::string_view(at_, 1);
    found = "'";
    for (char c : word.substr(0, 40)) found += static_cast<unsigned char>(c) < 32 ? '?' : c;
    found += "'";
  }
  bool is_token = what.size() <= 2 || what.back() == '=';
  std::string quoted = is_token ? "'" + std::string(what) + "'" : std::string(what);
  return Fail(ErrorCode::kHloSyntax, "expected " + quoted + ", found " + found);
}

Error HloCursor::TakeError(const std::string& file) const {
  TextSpan span;
  span.file = file;
  span.line = static_cast<int>(first_line_);
  const char* line_start = begin_;
  for (const char* p = begin_; p < error_->where; ++p) {
    if (*p != '\n') continue;
    ++span.line;
    line_start = p + 1;
  }
  span.column = static_cast<int>(error_->where - line_start) + 1;
  return MakeError(error_->code, error_->message, span);
}

TextPos HloCursor::PosOf(const char* position) {
  while (counted_ < position) {
    auto* next = static_cast<const char*>(
        std::memchr(counted_, '\n', static_cast<size_t>(position - counted_)));
    if (next == nullptr) {
      counted_ = position;
      break;
    }
    ++line_;
    counted_ = line_start_ = next + 1;
  }
  return {line_, static_cast<uint32_t>(position - line_start_) + 1};
}

// At a '/': skips a comment; returns false if there is none.
bool HloCursor::SkipComment() {
  if (PeekRaw(1) == '/') {
    auto* line_end =
        static_cast<const char*>(std::memchr(at_, '\n', static_cast<size_t>(end_ - at_)));
    at_ = line_end == nullptr ? end_ : line_end;
    return true;
  }
  if (PeekRaw(1) != '*') return false;
  size_t close = rest().find("*/", 2);
  if (close == std::string_view::npos) return false;
  at_ += close + 2;
  return true;
}

bool HloCursor::TryText(std::string_view text) {
  SkipBlanks();
  if (!rest().starts_with(text)) return false;
  at_ += text.size();
  return true;
}

bool HloCursor::TryWord(std::string_view word) {
  SkipBlanks();
  if (!rest().starts_with(word) || IsWordChar(PeekRaw(word.size()))) return false;
  at_ += word.size();
  return true;
}

std::string_view HloCursor::PeekWord() {
  SkipBlanks();
  const char* stop = at_;
  while (stop < end_ && IsWordChar(*stop)) ++stop;
  return {at_, static_cast<size_t>(stop - at_)};
}

std::string_view HloCursor::Word() {
  std::string_view word = PeekWord();
  // "s32[]->f32": the dash belongs to the arrow.
  if (word.ends_with('-') && word.data() + word.size() < end_ && word.data()[word.size()] == '>')
    word.remove_suffix(1);
  at_ += word.size();
  return word;
}

bool HloCursor::Name(std::string_view& name) {
  bool marked = Try('%');
  if (marked && PeekRaw() == '"') {
    const char* start = ++at_;
    while (at_ < end_ && *at_ != '"' && *at_ != '\n') ++at_;
    name = {start, static_cast<size_t>(at_ - start)};
    return PeekRaw() == '"' ? (++at_, true) : FailExpected("'\"' after a quoted name");
  }
  name = Word();
  return !name.empty() || FailExpected("a name");
}

bool HloCursor::Int(int64_t& value) {
  SkipBlanks();
  const char* start = at_;
  if (PeekRaw() == '+') ++start;
  auto [stop, conversion_error] = std::from_chars(start, end_, value);
  if (conversion_error == std::errc::result_out_of_range) {
    return Fail(ErrorCode::kHloSyntax, "a number that does not fit 64 bits");
  }
  if (conversion_error != std::errc()) return FailExpected("an integer");
  at_ = stop;
  return true;
}

bool HloCursor::Double(double& value) {
  SkipBlanks();
  const char* start = at_;
  bool negative = PeekRaw() == '-';
  if (negative || PeekRaw() == '+') ++at_;
  bool is_hex = PeekRaw() == '0' && (PeekRaw(1) == 'x' || PeekRaw(1) == 'X');
  if (is_hex) at_ += 2;
  auto format = is_hex ? std::chars_format::hex : std::chars_format::general;
  auto [stop, conversion_error] = std::from_chars(at_, end_, value, format);
  if (conversion_error == std::errc::result_out_of_range) {
    // Overflow or underflow of double: follow strtod.
    std::string copy(at_, stop);
    value = std::strtod(copy.c_str(), nullptr);
  } else if (conversion_error != std::errc()) {
    at_ = start;
    return FailExpected("a number");
  }
  if (negative) value = -value;
  at_ = stop;
  // NaN with a payload: nan(0x...); the payload is dropped.
  if (std::isnan(value) && PeekRaw() == '(') {
    while (at_ < end_ && *at_ != ')') ++at_;
    if (at_ < end_) ++at_;
  }
  return true;
}

bool HloCursor::Bool(bool& value) {
  if (TryWord("true") || TryWord("1")) {
    value = true;
    return true;
  }
  if (TryWord("false") || TryWord("0")) {
    value = false;
    return true;
  }
  return FailExpected("true or false");
}

bool HloCursor::Escape(std::string& value) {
  char c = PeekRaw();
  ++at_;
  switch (c) {
    case 'n':
      value += '\n';
      return true;
    case 't':
      value += '\t';
      return true;
    case 'r':
      value += '\r';
      return true;
    case 'x': {
      int high = HexValue(PeekRaw()), low = HexValue(PeekRaw(1));
      if (high < 0) return Fail(ErrorCode::kHloSyntax, "\\x without a hexadecimal digit", at_);
      value += static_cast<char>(low < 0 ? high : high * 16 + low);
      at_ += low < 0 ? 1 : 2;
      return true;
    }
    default:
      break;
  }
  if (!IsOctal(c)) {
    value += c;  // \" \' \\ and characters that need no escape
    return true;
  }
  int code = c - '0';
  for (int i = 0; i < 2 && IsOctal(PeekRaw()); ++i) code = code * 8 + (*at_++ - '0');
  value += static_cast<char>(code);
  return true;
}

bool HloCursor::String(std::string& value) {
  if (Peek() != '"') return FailExpected("a string in double quotes");
  const char* start = at_++;
  value.clear();
  while (at_ < end_) {
    const char* run = at_;
    while (at_ < end_ && *at_ != '"' && *at_ != '\\') ++at_;
    value.append(run, at_);
    if (at_ >= end_) break;
    if (*at_++ == '"') return true;
    if (at_ < end_ && !Escape(value)) return false;
  }
  return Fail(ErrorCode::kHloSyntax, "a string without its closing quote", start);
}

bool HloCursor::Ints(Dims& values, char open, char close) {
  values.clear();
  if (!Expect(open)) return false;
  if (Try(close)) return true;
  do {
    int64_t value = 0;
    if (!Int(value)) return false;
    values.push_back(value);
  } while (Try(','));
  return Expect(close);
}

bool HloCursor::Balanced(std::string_view& text) {
  char open = Peek();
  if (Closing(open) == '\0') return FailExpected("an opening bracket");
  const char* start = at_;
  std::string stack;
  for (; at_ < end_; ++at_) {
    char c = *at_;
    if (c == '"') {
      for (++at_; at_ < end_ && *at_ != '"'; ++at_)
        if (*at_ == '\\') ++at_;
      if (at_ >= end_) break;
    } else if (Closing(c) != '\0') {
      stack += Closing(c);
    } else if (c == '}' || c == ']' || c == ')') {
      if (stack.back() != c)
        return Fail(ErrorCode::kHloSyntax, "a bracket that closes nothing", at_);
      stack.pop_back();
      if (!stack.empty()) continue;
      ++at_;
      text = {start, static_cast<size_t>(at_ - start)};
      return true;
    }
  }
  at_ = end_;
  return Fail(ErrorCode::kHloSyntax, "a bracket that is never closed", start);
}

bool HloCursor::Braces(std::string_view& text) {
  if (Peek() != '{') return FailExpected("{");
  const char* start = at_;
  int64_t depth = 0;
  for (; at_ < end_; ++at_) {
    char c = *at_;
    if (c == '"') {
      for (++at_; at_ < end_ && *at_ != '"'; ++at_)
        if (*at_ == '\\') ++at_;
      if (at_ >= end_) break;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      ++at_;
      text = {start, static_cast<size_t>(at_ - start)};
      return true;
    }
  }
  at_ = end_;
  return Fail(ErrorCode::kHloSyntax, "a brace that is never closed", start);
}

void AppendQuoted(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (char c : text) {
    unsigned char code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (code < 32 || code == 127) {
      out += "\\x";
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace tokamak
