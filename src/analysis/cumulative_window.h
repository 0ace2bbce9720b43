#pragma once

#include <optional>

#include "ir/ir.h"

namespace tokamak {

// A reduce-window whose windows hold all elements up to their own along one dimension, or all from
// it on.
struct CumulativeWindow {
  int64_t dimension = 0;
  bool is_reverse = false;
};
std::optional<CumulativeWindow> CumulativeWindowOf(const Instr& reduce_window);

}  // namespace tokamak
