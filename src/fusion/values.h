#pragma once

#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"

namespace tokamak {

// What the values of a computation are to planners.

// All instructions, operands and control predecessors before users, in an order that follows from
// the graph and not from where they stand: parameters, what the root needs, what effects need.
std::vector<Instr*> OrderFromRoot(const Computation& computation);

// Kernels make all of its results: a tuple of arrays.
bool HasParts(const Instr& instr);
// No kernel has to do with it: a parameter, control flow, tuples.
bool IsKernelless(const Instr& instr);
// A constant that kernels read from memory, where it is already.
bool IsMemoryConstant(const Instr& instr);
// The value has the bytes of its operand (of a part of it), so that no step makes it.
bool IsAlias(const Instr& instr);
// Writes some elements of its operand 0 and leaves the others: a root of its own.
bool IsUpdate(const Instr& instr);
// Why no kernel computes the instruction, as far as it alone tells; "" when one may.
std::string WhyNoKernel(const Instr& instr, const Machine& machine);
// Bytes of all its parts.
int64_t BytesOfParts(const Instr& instr);

}  // namespace tokamak
