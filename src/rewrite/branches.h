#pragma once

#include <vector>

#include "rewrite/bodies.h"

namespace tokamak {

// Analysis and reconstruction of conditionals. Branches holds a conditional with the arguments of
// each branch separated.
struct Branches {
  Instr* instr = nullptr;
  std::vector<std::vector<Instr*>> arguments;

  explicit Branches(Instr* conditional);
  size_t size() const { return arguments.size(); }
  Computation* branch(size_t k) const { return instr->called(k); }
  Instr* index() const { return instr->operand(0); }
};

// Returns a conditional with these arguments and this result shape. The caller replaces the uses of
// the old one, which stays, and registers the new one with ProgramOrder.
Instr* RebuildConditional(const Branches& branches, Shape shape);

// Finds instructions that are equal in all branches of a conditional, and the outer values that
// their operands resolve to.
class CommonCode {
 public:
  // Linear in the branches.
  explicit CommonCode(const Branches& branches);

  // The equivalence class of the instruction; -1 if some branch has no equal instruction.
  int ClassOf(size_t branch, const Instr* instr) const;
  // The class member in the first branch, and the outer value if it is a parameter.
  const Instr* Representative(int number) const { return classes_[Index(number)].first; }
  Instr* Outer(int number) const { return classes_[Index(number)].outer; }

 private:
  struct Class {
    const Instr* first = nullptr;
    Instr* outer = nullptr;
    std::vector<int> operands;
    size_t branches = 0;  // the number of leading branches that have a member
  };
  static size_t Index(int number) { return static_cast<size_t>(number); }
  void Enter(const Branches& branches, size_t k);
  int Find(const Instr& instr, std::vector<int> operands, size_t k);

  std::vector<Class> classes_;
  std::unordered_map<const Instr*, int> outer_;
  std::unordered_multimap<uint64_t, int> by_hash_;
  std::vector<InstrMap<int>> numbers_;
  size_t count_ = 0;
};

}  // namespace tokamak
