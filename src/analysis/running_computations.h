#pragma once

#include <vector>

#include "ir/ir.h"

namespace tokamak {

// Computations that execute step by step, callees last: the entry, and the computations that its
// loops, conditionals and calls run. Excludes computations inside kernels (reducers, fusion
// bodies).
std::vector<Computation*> RunningComputations(const Module& module);

}  // namespace tokamak
