#pragma once

#include "rewrite/normal/graph.h"

// The rules of the normal form, by family. Each brings two spellings of one
// value together: StableHLO's and the one that XLA's importer makes of it. A
// rule never undoes another, so applying them as instructions are made
// suffices.

namespace tokamak {

// An instruction that is about to be made.
struct Site {
  NormalGraph& graph;
  Op op;
  const Shape& shape;
  std::span<Instr* const> operands;
  const Attrs& attrs;
  std::span<Computation* const> called;

  Instr* x() const { return operands[0]; }
  Instr* y() const { return operands[1]; }
};

// Each gives a simpler spelling, or null.
Instr* SimplifyMovement(const Site& site);    // movement.cc
Instr* SimplifyArithmetic(const Site& site);  // arithmetic.cc
Instr* SimplifyAggregate(const Site& site);  // aggregates.cc: reductions, collectives, custom calls
Instr* Fold(const Site& site);               // fold.cc: what has only constants for operands

// ---- constants, in the two forms that the rules leave: a constant, or a
// scalar constant broadcast

inline bool IsConstant(const Instr* instr) {
  return instr->op() == Op::kConstant;
}
// The scalar that fills an array, or null.
const Literal* ScalarOf(const Instr* instr);
bool IsSplatOf(const Instr* instr, double number);
Instr* SplatOf(NormalGraph& graph, Instr* scalar, const Shape& shape);

}  // namespace tokamak
