#pragma once

#include <optional>

#include "ir/ir.h"

namespace tokamak {

// A reduce-window that is a cumulative operation (prefix sum and the like): along one dimension,
// the window of each element covers all elements up to it, or all from it on (reverse).
struct CumulativeWindow {
  int64_t dimension = 0;
  bool is_reverse = false;
};
// Nullopt if the reduce-window is not cumulative.
std::optional<CumulativeWindow> CumulativeWindowOf(const Instr& reduce_window);

}  // namespace tokamak
