#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

// Error codes, exit codes and the Error type that Result (result.h) carries. An error is caused by
// the input or by the machine; each has a row in errors.def.
enum class ErrorCode : uint16_t {
#define TOK_ERROR(number, id, exit, status, meaning) k##id = number,
#include "support/errors.def"
};

// Exit code of the command line. With several programs the highest code wins.
enum class ExitCode : int {
  kFine = 0,
  kMismatch = 1,     // values differ, or a check fails
  kBadInput = 2,     // or bad usage
  kUnsupported = 3,  // the message names the op
  kMachine = 4,      // memory, disk, device
  kOurBug = 70,
};

struct ErrorInfo {
  ErrorCode code;
  std::string_view name;  // "DotContractedDimensions"
  ExitCode exit;
  std::string_view status;   // the PJRT status code it maps to
  std::string_view meaning;  // one line
};
const ErrorInfo& InfoOf(ErrorCode code);
// All rows, in the order of errors.def.
const std::vector<ErrorInfo>& AllErrors();
// "TK2103".
std::string CodeText(ErrorCode code);

// A location in the user's input, never in our sources. Text has a line and a column (both from 1,
// columns in bytes); bytecode has a byte offset.
struct TextSpan {
  std::string file;
  int line = 0;
  int column = 0;
  int64_t offset = -1;
};

// An error of the input or of the machine. It is returned, never thrown, and never aborts. Its copy
// constructor and destructor are compiled once, in error.cc, because every Result contains one.
struct Error {
  Error();
  Error(const Error&);
  Error(Error&&) noexcept;
  Error& operator=(const Error&);
  Error& operator=(Error&&) noexcept;
  ~Error();

  ErrorCode code{};
  std::string message;  // names the op first, then states what is wrong, with the values
  TextSpan where;
  std::vector<std::string> notes;
};

Error MakeError(ErrorCode code, std::string message, TextSpan where = {});

// Renders the error for a person (style.md §3.7). If `source` holds the text of the input, the
// offending line is shown with a caret.
std::string Render(const Error& error, std::string_view source = {});

}  // namespace tokamak
