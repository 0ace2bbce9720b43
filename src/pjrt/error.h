#pragma once

#include <string>
#include <string_view>

#include "pjrt/abi.h"
#include "runtime/event.h"
#include "support/error.h"
#include "support/result.h"

namespace tokamak {

// The ABI's error object; the caller destroys it.
struct PJRT_Error {
  const PJRT_Error_FunctionTable* vtable = nullptr;
  PJRT_Error_Code code = PJRT_Error_Code_OK;
  std::string message;
};

PJRT_Error* Fail(const Error& error);
PJRT_Error* Fail(ErrorCode code, std::string message);
// Null for null.
PJRT_Error* Fail(const SharedError& error);
PJRT_Error_Code StatusOf(ErrorCode code);

// An error reported by the caller, with its own status code.
SharedError ErrorFromCaller(PJRT_Error_Code code, const char* message, size_t size);

// TOK_PJRT_TRY(Shape shape, ...): binds the value, or returns the error to the caller.
#define TOK_PJRT_TRY(declaration, expression)           \
  auto TOK_CONCAT(result_, __LINE__) = (expression);    \
  if (!TOK_CONCAT(result_, __LINE__).ok()) [[unlikely]] \
    return Fail(TOK_CONCAT(result_, __LINE__).error()); \
  declaration = std::move(TOK_CONCAT(result_, __LINE__)).value()

}  // namespace tokamak
