#pragma once

#include <span>

#include "rewrite/expand/term.h"

namespace tokamak {

// Expands functions that StableHLO lacks (or lacks for complex numbers) into the ops that JAX emits
// for them in bytecode or HLO. A program with the op and one with its expansion then have the same
// normal form. Null if the op is kept. The number of new instructions per op is bounded by a
// constant. The expansion equals the function in exact arithmetic;
// docs/choices/2026-11-15-expansions.md states the rounding differences.
Instr* ExpandAsJax(TermGraph& graph, Op op, const Shape& shape, std::span<Instr* const> operands);
// Whether the op has an expansion for some operand types.
bool HasExpansion(const Instr& instr);

}  // namespace tokamak
