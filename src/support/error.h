#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

// Every fault of input or machine that a user can meet: a row of errors.def.
enum class ErrorCode : uint16_t {
#define TOK_ERROR(number, id, exit, status, meaning) k##id = number,
#include "support/errors.def"
};

// What the command line returns. Of several programs the highest code counts.
enum class ExitCode : int {
  kFine = 0,
  kMismatch = 1,     // values differ, or a check refuses
  kBadInput = 2,     // or bad usage
  kUnsupported = 3,  // the message names the op
  kMachine = 4,      // memory, disk, device
  kOurBug = 70,
};

struct ErrorInfo {
  ErrorCode code;
  std::string_view name;  // "DotContractedDimensions"
  ExitCode exit;
  std::string_view status;   // the PJRT status it becomes
  std::string_view meaning;  // one line
};
const ErrorInfo& InfoOf(ErrorCode code);
// All rows, in the order of errors.def.
const std::vector<ErrorInfo>& AllErrors();
// "TK2103".
std::string CodeText(ErrorCode code);

// A place in the user's input, never in our sources. Text has a line and a
// column (both from 1, columns in bytes); bytecode has a byte offset.
struct TextSpan {
  std::string file;
  int line = 0;
  int column = 0;
  int64_t offset = -1;
};

// A fault of the input, or of the machine: reported, never thrown or aborted on.
// Every Result holds one: how it is copied and destroyed is compiled once, in error.cc.
struct Error {
  Error();
  Error(const Error&);
  Error(Error&&) noexcept;
  Error& operator=(const Error&);
  Error& operator=(Error&&) noexcept;
  ~Error();

  ErrorCode code{};
  std::string message;  // op first, then what disagrees with its values
  TextSpan where;
  std::vector<std::string> notes;
};

Error MakeError(ErrorCode code, std::string message, TextSpan where = {});

// The error as a person reads it (style.md §3.7). When `source` holds the text
// of the input, the faulty line is shown with a caret.
std::string Render(const Error& error, std::string_view source = {});

}  // namespace tokamak
