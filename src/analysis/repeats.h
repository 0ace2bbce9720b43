#pragma once

// Finds repeated steps in a computation, which an unrolled Python loop leaves: periods in the
// sequence of instruction hashes in program order, in O(n log n). Analysis only.

#include <cstdint>
#include <vector>

#include "analysis/effects.h"
#include "ir/ir.h"

namespace tokamak {

// The instructions that may belong to steps, in program order. Excludes what steps share or are
// numbered by: parameters, constants (also broadcast), iotas, and views of parameters with many
// users.
class StepLine {
 public:
  StepLine(const Computation& computation, const Effects& effects);

  const std::vector<Instr*>& instrs() const { return instrs_; }
  // One token per instruction. Equal tokens: the instructions may be the same one of two steps.
  // Operands, literals and slice starts do not count. An instruction with a side effect or a
  // control dependence has a unique token.
  const std::vector<uint64_t>& tokens() const { return tokens_; }
  // -1 if the instruction is not in the line, e.g. was added later.
  int64_t PositionOf(const Instr* instr) const {
    auto id = static_cast<size_t>(instr->id());
    return id < positions_.size() ? positions_[id] : -1;
  }

 private:
  std::vector<Instr*> instrs_;
  std::vector<uint64_t> tokens_;
  std::vector<int64_t> positions_;
};

// A constant, a broadcast constant or an iota.
bool IsLeafValue(const Instr& instr);
// Moves the elements of one operand; practically free to recompute in consumers.
bool IsViewOp(Op op);

// tokens[i] == tokens[i + period] for all i in [begin, begin + length - period).
struct Repeat {
  size_t begin = 0, period = 0, length = 0;
};

// Finds repeats by hashes of windows of 1, 2, 4, ... tokens. Short windows suffice for steps in
// which no token occurs twice; others need longer ones.
class RepeatFinder {
 public:
  explicit RepeatFinder(const std::vector<uint64_t>& tokens) : hashes_(tokens) {}
  // The repeats of at least `steps` steps that the current window size shows, in order. Linear.
  std::vector<Repeat> Find(size_t steps) const;
  // Doubles the window. Returns false if `steps` steps of that size would not fit.
  bool Widen(size_t steps);

 private:
  std::vector<uint64_t> hashes_;
  size_t window_ = 1;
};

}  // namespace tokamak
