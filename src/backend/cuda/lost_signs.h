#pragma once

#include <cstddef>
#include <set>
#include <utility>

#include "kernel/kernel.h"

// Workaround for ptxas bugs that lose a sign in integer min/max.
namespace tokamak::cuda {

// Operands (value, operand number) that must be hidden from ptxas so that it sees neither a
// negation nor a constant in them. They are operands of integer min and max, including selects on a
// comparison of the same operands:
//   - results of arithmetic in nested signed min/max: ptxas fuses max(max(-x, y), z) into one
//     instruction and loses the sign;
//   - values that unrolling makes constant: ptxas fuses max(x - 2, 0) into one instruction, finds
//     after unrolling that x is 5, and swaps the operands: max(2 - 5, 0).
std::set<std::pair<ValueId, size_t>> MayLoseSign(const Kernel& kernel);

}  // namespace tokamak::cuda
