#pragma once

#include "rewrite/normal/graph.h"

namespace tokamak {

// The StableHLO that JAX sends in place of a CHLO op when it writes bytecode,
// so that a program with the op and one with its expansion meet. Null where
// the op is kept.
Instr* ExpandAsJax(NormalGraph& graph, Op op, const Shape& shape, Instr* x);

}  // namespace tokamak
