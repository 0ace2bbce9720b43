#pragma once

#include <vector>

#include "cost/reuse.h"
#include "kernel/divergence.h"
#include "kernel/linear.h"

namespace tokamak {

// Coalescing analysis: the access pattern of the threads of a GPU thread block at one load or
// store.
struct ThreadStrides {
  double step = 0;  // elements between adjacent threads; 0: unknown, or the same element
  double run = 0;   // contiguous elements that all iterations of the block touch; 0: unknown
};

// `loops`: the enclosing loops, outermost first.
ThreadStrides ThreadStridesOf(const Kernel& kernel, const LinearIndex& index,
                              const std::vector<ArrayAccess::Around>& loops,
                              const Divergence& divergence);

}  // namespace tokamak
