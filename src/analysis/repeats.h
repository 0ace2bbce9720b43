#pragma once

// Equal steps that follow each other in a computation, as a loop in Python leaves them: found over
// hashes of instructions in program order, in O(n log n). Answers questions, changes nothing.

#include <cstdint>
#include <vector>

#include "analysis/effects.h"
#include "ir/ir.h"

namespace tokamak {

// The instructions of a computation that make up steps, in program order. Left out is what steps
// share or are numbered by: parameters, constants (broadcast or not), iotas, and views of
// parameters that many use.
class StepLine {
 public:
  StepLine(const Computation& computation, const Effects& effects);

  const std::vector<Instr*>& instrs() const { return instrs_; }
  // One for each: equal for instructions that may be the same one of two steps. Operands, literals
  // and where a slice begins do not count. What has an effect or waits for others is equal to none.
  const std::vector<uint64_t>& tokens() const { return tokens_; }
  // -1 for what is not in the line, also for what was made later.
  int64_t PlaceOf(const Instr* instr) const {
    auto id = static_cast<size_t>(instr->id());
    return id < places_.size() ? places_[id] : -1;
  }

 private:
  std::vector<Instr*> instrs_;
  std::vector<uint64_t> tokens_;
  std::vector<int64_t> places_;
};

// A constant, one that is broadcast, an iota.
bool IsLeafValue(const Instr& instr);
// Moves elements of one operand, and costs about nothing where it is read.
bool IsViewOp(Op op);

// tokens[i] == tokens[i + period] from `begin` on, for `length` - period of them.
struct Repeat {
  size_t begin = 0, period = 0, length = 0;
};

// Finds repeats by windows of 1, 2, 4 ... tokens: short windows show repeats of steps that hold no
// token twice, longer ones the others.
class RepeatFinder {
 public:
  explicit RepeatFinder(const std::vector<uint64_t>& tokens) : hashes_(tokens) {}
  // Those that windows of the present size show, of at least `steps` steps, in order. Linear.
  std::vector<Repeat> Find(size_t steps) const;
  // Doubles the window; false when no `steps` steps could be longer.
  bool Widen(size_t steps);

 private:
  std::vector<uint64_t> hashes_;
  size_t window_ = 1;
};

}  // namespace tokamak
