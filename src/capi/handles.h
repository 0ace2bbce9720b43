#pragma once

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include <tokamak/c_api.h>

#include "ir/ir.h"
#include "support/error.h"
#include "support/result.h"

// The contents of the C API's opaque handles, shared by the files of this folder.

struct tok_error {
  std::string code, message, text;
  int64_t line = 0;
};

struct tok_module {
  std::unique_ptr<tokamak::Module> module;
  std::string text;       // cached by tok_module_text
  std::string explained;  // cached by the last tok_module_explain
};

namespace tokamak {

class Executable;
struct ExplainRequest;  // driver/report/explain.h

// The out-of-memory error, a static object: creating it cannot fail.
tok_error* OutOfMemoryError();
tok_error* InC(const Error& error, std::string_view source = {});
tok_error* InvalidArgument(std::string message);
// The executable of a compiled program.
tok_executable* ExecutableInC(std::shared_ptr<const Executable> program);

// Sets an option of a report or a plan: "measure", or one of SetExplainOption. `caller` begins the
// message if a pointer is null.
Status SetRequestOption(ExplainRequest& request, const tok_option& option, std::string_view caller);

// Runs a body and converts allocation failures to an error.
template <typename Body>
tok_error* Guarded(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError();
  } catch (const std::length_error&) {
    return OutOfMemoryError();
  }
}

}  // namespace tokamak
