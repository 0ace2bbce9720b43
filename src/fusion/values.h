#pragma once

#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"

namespace tokamak {

// How planners classify the values of a computation.

// All instructions, operands and control predecessors before users, in an order that depends on the
// graph and not on the order in the program: parameters, then what the root needs, then what
// effects need.
std::vector<Instr*> OrderFromRoot(const Computation& computation);

// A kernel computes all results of this tuple-shaped op (reduce, scan, reduce-window).
bool HasParts(const Instr& instr);
// Never part of a kernel: a parameter, control flow, a tuple.
bool IsKernelless(const Instr& instr);
// An array constant, which kernels load from memory.
bool IsMemoryConstant(const Instr& instr);
// The value shares the bytes of its operand, or of one element of a tuple, so that no step computes
// it.
bool IsAlias(const Instr& instr);
// Overwrites some elements of operand 0 and keeps the others (dynamic-update-slice, scatter).
// Always a root.
bool IsUpdate(const Instr& instr);
// Why no kernel can compute the instruction, as far as the instruction alone tells; empty if one
// may.
std::string WhyNoKernel(const Instr& instr, const Machine& machine);
// Bytes of the array, or of all arrays of a tuple.
int64_t BytesOfParts(const Instr& instr);

}  // namespace tokamak
