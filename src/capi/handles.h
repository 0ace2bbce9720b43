#pragma once

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include <tokamak/c_api.h>

#include "ir/ir.h"
#include "support/error.h"

// What the handles of the C API hold, for the files of this folder.

struct tok_error {
  std::string code, message, text;
  int64_t line = 0;
};

struct tok_module {
  std::unique_ptr<tokamak::Module> module;
  std::string text;       // when it was asked for
  std::string explained;  // likewise, the last time
};

namespace tokamak {

// Says so when there is no memory for an error either.
tok_error* OutOfMemoryError();
tok_error* InC(const Error& error, std::string_view source = {});
tok_error* Refused(std::string message);

// Calls what may run out of memory.
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
