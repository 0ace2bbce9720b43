#include "support/error.h"

#include <algorithm>

#include "support/check.h"

namespace tokamak {

Error::Error() = default;
Error::Error(const Error&) = default;
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(const Error&) = default;
Error& Error::operator=(Error&&) noexcept = default;
Error::~Error() = default;
namespace {

std::string_view LineAt(std::string_view source, int line) {
  size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    size_t end = source.find('\n', begin);
    if (end == std::string_view::npos) return {};
    begin = end + 1;
  }
  return source.substr(begin, source.find('\n', begin) - begin);
}

// Whether the bytes are complete UTF-8 sequences (overlong forms are not checked).
bool IsUtf8(std::string_view text) {
  int missing = 0;  // continuation bytes of the current character
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool continues = (byte & 0xc0) == 0x80;
    if (continues != (missing > 0) || byte >= 0xf8) return false;
    if (continues) {
      --missing;
    } else {
      missing = byte < 0x80 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    }
  }
  return missing == 0;
}

// The offending line with a caret under the column. It is clipped to a window so that a line of a
// gigabyte does not become an error message of a gigabyte.
std::string Excerpt(const TextSpan& where, std::string_view source) {
  constexpr size_t kBefore = 60, kAfter = 60;
  std::string_view line = LineAt(source, where.line);
  if (line.empty() || where.column < 1) return {};
  size_t at = std::min<size_t>(static_cast<size_t>(where.column) - 1, line.size());
  size_t begin = at > kBefore ? at - kBefore : 0;
  std::string shown(line.substr(begin, at - begin + kAfter));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
  if (!IsUtf8(shown))  // binary, which terminals do not show
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) > 126; },
        '?');
  std::string number = std::to_string(where.line);
  std::string margin(number.size() + 1, ' ');
  return " " + number + " | " + (begin > 0 ? "..." : "") + shown + "\n" + margin + " | " +
         std::string(at - begin + (begin > 0 ? 3 : 0), ' ') + "^\n";
}

}  // namespace

const std::vector<ErrorInfo>& AllErrors() {
  // Never destroyed: threads that outlive static destruction may still report errors.
  static const auto* rows = new std::vector<ErrorInfo>{
#define TOK_ERROR(number, id, exit, status, meaning) \
  ErrorInfo{ErrorCode::k##id, #id, ExitCode::exit, status, meaning},
#include "support/errors.def"
  };
  return *rows;
}

const ErrorInfo& InfoOf(ErrorCode code) {
  for (const ErrorInfo& row : AllErrors())
    if (row.code == code) return row;
  TOK_UNREACHABLE("an error code without a row in errors.def");
}

std::string CodeText(ErrorCode code) {
  return "TK" + std::to_string(static_cast<int>(code));
}

Error MakeError(ErrorCode code, std::string message, TextSpan where) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  error.where = std::move(where);
  return error;
}

std::string Render(const Error& error, std::string_view source) {
  std::string text = "error[" + CodeText(error.code) + "]: " + error.message + "\n";
  const TextSpan& where = error.where;
  if (where.line > 0) {
    text += "  --> " + where.file + ":" + std::to_string(where.line) + ":" +
            std::to_string(where.column) + "\n" + Excerpt(where, source);
  } else if (where.offset >= 0) {
    text += "  --> " + where.file + ": byte " + std::to_string(where.offset) + "\n";
  } else if (!where.file.empty()) {
    text += "  --> " + where.file + "\n";
  }
  for (const std::string& note : error.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace tokamak
