#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"

// Matching of a computation, as a pattern, against the instructions of another one. The parameters
// of the pattern are its variables. Operands of commutative ops match in both orders. A number that
// fills an array matches such an array however it is broadcast.

namespace tokamak {

// An instance of a pattern.
struct UserMatch {
  std::vector<Instr*> roots;      // one per result of the pattern
  std::vector<Instr*> variables;  // one per parameter of the pattern
  std::vector<Instr*> inner;      // matched ops other than roots, without constants and broadcasts
  std::vector<const Instr*> inner_patterns;  // the instruction of the pattern for each of them
};

enum class MatchMode : uint8_t {
  kExact,      // types, dimensions, attributes and constants are equal
  kAnyShape,   // dimensions, and attributes that depend on them, are not compared
  kAnyNumber,  // nor are constants that fill an array
};

// The results of a pattern: the operands of a tuple at its root, or its root.
std::vector<Instr*> ResultsOfPattern(const Computation& pattern);

// Finds instances of one pattern. The pattern must outlive it.
class UserMatcher {
 public:
  UserMatcher(const Computation& pattern, MatchMode mode);

  // The op that instances have at their first result.
  Op root_op() const { return roots_[0]->op(); }
  // The instance whose first result is `root`, if there is one. Its inner values may have other
  // users (HasOtherUsers). Bounded by kMostSteps.
  std::optional<UserMatch> Find(Instr* root);

  // Whether instruction `p` of the pattern computes what `i` computes, if variable k is
  // variables[k].
  bool Computes(const Instr* p, const Instr* i, const std::vector<Instr*>& variables);

 private:
  struct Goal {
    const Instr* pattern;
    const Instr* instr;
  };
  bool Solve();
  bool Expand(Goal goal, bool swapped, bool& has_order);
  bool Bind(const Instr* pattern, const Instr* instr);
  bool SameOp(const Instr* p, const Instr* i);
  bool SameCallees(const Instr* p, const Instr* i);
  bool FindOtherRoots(size_t next);
  void Undo(size_t mark);
  UserMatch Result() const;

  // Goals visited for one instance. Chosen: 40 times the largest pattern; patterns whose
  // commutative ops could be matched in more ways are given up.
  static constexpr int64_t kMostSteps = 20'000;

  const Computation& pattern_;
  MatchMode mode_;
  std::vector<Instr*> roots_;
  std::vector<const Instr*> bound_;  // by id of the pattern's instructions; null: not yet
  std::vector<const Instr*> trail_;  // those bound, in order
  std::vector<Goal> goals_;
  int64_t steps_ = 0;
};

// Whether both compute the same value by the same ops from the same instructions.
bool ComputesSame(const Instr* a, const Instr* b);

// The one element that fills an array: looks through broadcasts and reshapes of single elements.
const Instr* SingleElementOf(const Instr* instr);

}  // namespace tokamak
