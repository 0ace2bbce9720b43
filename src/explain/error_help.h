#pragma once

#include <string_view>

#include "support/error.h"

namespace tokamak {

// Why an error occurs and how to fix it: `tokamak explain TK2304`, and the pages in docs/errors.
// One row per error code in error_help.def.
struct ErrorHelp {
  ErrorCode code;
  std::string_view why;  // continues ErrorInfo::meaning, which says what is wrong
  std::string_view fix;  // what to do
};

// Null if `code` ("TK2304") is not an error code.
const ErrorHelp* FindErrorHelp(std::string_view code);

}  // namespace tokamak
