#pragma once

#include <new>
#include <stdexcept>
#include <utility>

#include "support/result.h"

namespace tokamak {

// Runs a body on a plugin thread and converts allocation failures to an error: no caller above it
// would catch an exception.
template <typename Body>
Status WithinMemory(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kOutOfMemory, "run: out of memory");
  } catch (const std::length_error&) {
    return MakeError(ErrorCode::kOutOfMemory, "run: an array exceeds the address space");
  }
}

}  // namespace tokamak
