#pragma once

#include <new>
#include <stdexcept>
#include <utility>

#include "support/result.h"

namespace tokamak {

// Does what may run out of memory, on a thread of ours: nobody above it would catch that.
template <typename Body>
Status WithinMemory(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kOutOfMemory, "run: the machine has no more memory");
  } catch (const std::length_error&) {
    return MakeError(ErrorCode::kOutOfMemory, "run: an array is larger than any memory");
  }
}

}  // namespace tokamak
