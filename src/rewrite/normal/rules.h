#pragma once

#include "rewrite/normal/graph.h"

// The rules of the normal form by family. Each maps two spellings of one value to one: StableHLO's
// and the one that XLA's importer produces. No rule undoes another, so applying them once, when an
// instruction is created, suffices.

namespace tokamak {

// An instruction about to be created.
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

// Each function returns a simpler form, or null.
Instr* SimplifyMovement(const Site& site);    // movement.cc
Instr* SimplifyArithmetic(const Site& site);  // arithmetic.cc
Instr* SimplifyAggregate(const Site& site);  // aggregates.cc: reductions, collectives, custom calls
Instr* Fold(const Site& site);               // fold.cc: ops with constant operands only

// ---- constants, in the two forms that the rules produce: a constant, or a broadcast scalar
// constant

inline bool IsConstant(const Instr* instr) {
  return instr->op() == Op::kConstant;
}
// The scalar that fills an array, or null.
const Literal* ScalarOf(const Instr* instr);
bool IsSplatOf(const Instr* instr, double number);
Instr* SplatOf(NormalGraph& graph, Instr* scalar, const Shape& shape);

}  // namespace tokamak
