#pragma once

#include <cstddef>
#include <set>
#include <utility>

#include "kernel/kernel.h"

namespace tokamak::cuda {

// Operands, each of a value, that have to be written so that ptxas finds neither a negation nor a
// constant in them: operands of integer minima and maxima (a select by a comparison is one, too)
//   * that arithmetic made, of signed extremes that stand in one another: ptxas makes one
//     instruction of max(max(-x, y), z) and loses the sign;
//   * that unrolling makes a constant: ptxas makes one instruction of max(x - 2, 0), finds out
//     after it unrolled the loop that x is 5, and exchanges the operands: max(2 - 5, 0).
std::set<std::pair<ValueId, size_t>> MayLoseSign(const Kernel& kernel);

}  // namespace tokamak::cuda
