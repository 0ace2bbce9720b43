#pragma once

#include <vector>

#include "rewrite/bodies.h"

namespace tokamak {

// A conditional with the arguments of each branch apart.
struct Branches {
  Instr* instr = nullptr;
  std::vector<std::vector<Instr*>> arguments;

  explicit Branches(Instr* conditional);
  size_t size() const { return arguments.size(); }
  Computation* branch(size_t k) const { return instr->called(k); }
  Instr* index() const { return instr->operand(0); }
};

// A conditional with these arguments and this result, which stands in the place of the old one once
// somebody replaces its uses and tells Places. The old one stays.
Instr* RebuildConditional(const Branches& branches, Shape shape);

// Instructions that are equal in all branches of a conditional, and the values outside that their
// operands come down to.
class CommonCode {
 public:
  // Linear in the branches.
  explicit CommonCode(const Branches& branches);

  // Number of the class of equal instructions; -1 when some branch has none.
  int ClassOf(size_t branch, const Instr* instr) const;
  // The instruction of the first branch in that class, and the outer value where it is a parameter.
  const Instr* Representative(int number) const { return classes_[Index(number)].first; }
  Instr* Outer(int number) const { return classes_[Index(number)].outer; }

 private:
  struct Class {
    const Instr* first = nullptr;
    Instr* outer = nullptr;
    std::vector<int> operands;
    size_t branches = 0;  // how many of them, from the first on, have one
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
