#pragma once

#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// Ops that kernels do as other ops.
//
//   Quantized    integers, computed with as the reals that they stand for
//   Of nothing   what is folded, scattered or multiplied from arrays without elements
//   Others       solves of narrow floats, LAPACK's cholesky, functions of complex numbers, shapes
//   that are known Wide picks   a select-and-scatter of large windows: what each of them selects,
//   then a scatter
//   Long         concatenations of very many arrays: of some at a time, and of those
void ExpandOps(Module& module, DecisionLog& log);
// Long windows, dimension by dimension, and along one as windows of windows: 256 taps are 16 of 16.
// After cumulative ones became scans.
void SplitWindows(Module& module, DecisionLog& log);

void ExpandQuantized(Module& module, DecisionLog& log);
// One kind each; whether the instruction was replaced.
bool ExpandEmpty(Instr& instr);
bool SplitWindow(Instr& instr);
bool ExpandSelectAndScatter(Instr& instr);
bool ExpandNarrowSolve(Instr& instr);
bool ExpandPotrf(Instr& instr);
bool ExpandComplexAtan2(Instr& instr);
bool ExpandComplexPower(Instr& instr);
bool ExpandKnownShape(Instr& instr);
bool SplitConcatenate(Instr& instr);

// ---- shared by them

// Makes instructions in the place of one.
class Expansion {
 public:
  explicit Expansion(Instr& of) : of_(of), computation_(*of.parent()) {}
  Instr* Make(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs = {});
  Instr* Constant(Literal value);
  // A scalar in every element.
  Instr* Spread(Instr* scalar, const Shape& shape);
  // The same where it is so already.
  Instr* Reshaped(Instr* x, const Dims& dims);
  Instr* Converted(Instr* x, ElementType type);
  // All uses of the instruction are this one's. The instruction is gone then.
  void Replace(Instr* by);

 private:
  Instr& of_;
  Computation& computation_;
};

// The body of a sum that is made in the place of an instruction.
Computation* AdditionFor(const Instr& of, ElementType type);

}  // namespace tokamak
