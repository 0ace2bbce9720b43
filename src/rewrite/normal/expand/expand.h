#pragma once

#include "rewrite/normal/graph.h"

namespace tokamak {

// The StableHLO that JAX sends in place of a function that StableHLO has not
// (or not for complex numbers), when it writes bytecode or HLO: so that a
// program with the op and one with its expansion meet. Null where the op is
// kept. The instructions made are bounded by a constant an op.
Instr* ExpandAsJax(NormalGraph& graph, Op op, const Shape& shape, std::span<Instr* const> operands);

}  // namespace tokamak
