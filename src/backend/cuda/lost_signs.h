#pragma once

#include <cstddef>
#include <set>
#include <utility>

#include "kernel/kernel.h"

namespace tokamak::cuda {

// Operands, each of a value, that have to be written so that a compiler finds no negation in them:
// those of signed minima and maxima (a select by a comparison is one, too) which stand in one
// another, where arithmetic made the operand. ptxas takes max(max(-x, y), z) for one instruction
// and loses the sign.
std::set<std::pair<ValueId, size_t>> MayLoseSign(const Kernel& kernel);

}  // namespace tokamak::cuda
