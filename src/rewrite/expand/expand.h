#pragma once

#include <span>

#include "rewrite/expand/term.h"

namespace tokamak {

// The StableHLO that JAX sends in place of a function that StableHLO has not
// (or not for complex numbers), when it writes bytecode or HLO: so that a
// program with the op and one with its expansion meet. Null where the op is
// kept. The instructions made are bounded by a constant an op.
// In exact arithmetic it is the same function; how far it is rounded from the
// op, docs/choices/2026-11-15-expansions.md says.
Instr* ExpandAsJax(TermGraph& graph, Op op, const Shape& shape, std::span<Instr* const> operands);
// Whether it may have one, by its op alone.
bool HasExpansion(const Instr& instr);

}  // namespace tokamak
