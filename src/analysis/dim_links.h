#pragma once

// Dimension classes of the values of a loop body, for independent.cc: a union-find over all
// dimensions. Two dimensions are in one class if an op reads element i of one to write element i of
// the other. A class is mixed if an op combines elements at different indices along it (a slice,
// reduction, contraction, ...).
//
//     y = tanh(x)          x [B, D] and y [B, D]: B with B, D with D
//     z = dot(y, w)        z [B, H]: B with B; D is mixed, because it is contracted
//
// A class that is not mixed is a dimension along which iterations are independent.

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/loops.h"

namespace tokamak {

class DimLinks {
 public:
  // `moves`: the carried arrays whose dimensions are followed, as parameters of the body or of the
  // body of a nested loop. Values that do not depend on them link nothing.
  DimLinks(const WhileLoop& loop, const std::set<const Instr*>& moves);

  // Whether the value, or that element of a tuple, depends on a carried array in `moves`.
  bool Depends(const Instr& value, size_t part = 0) const;
  // The class of a dimension; whether it is mixed.
  size_t ClassOf(const Instr& value, size_t dim, size_t part = 0);
  bool IsMixed(const Instr& value, size_t dim) { return mixed_[ClassOf(value, dim)] != nullptr; }
  // An instruction that mixes the class; null if none does.
  const Instr* MixedBy(const Instr& value, size_t dim) { return mixed_[ClassOf(value, dim)]; }

 private:
  void AddComputation(const Computation& computation);
  void Follow(const Computation& computation, bool& changed);
  void FollowCalls(const Instr& instr, bool& changed);
  void MarkDepends(const Instr& value, size_t part, bool& changed);

  void Link(const Instr& instr);
  void LinkOperand(const Instr& instr, size_t i);
  // Marks the class of the dimension as mixed.
  void Mix(const Instr& value, size_t dim);
  // Of all results of an instruction.
  void MixResult(const Instr& instr, size_t dim);
  void MixAll(const Instr& value);
  void Join(const Instr& x, size_t x_dim, size_t x_part, const Instr& y, size_t y_dim,
            size_t y_part);
  // Joins all dimensions of two arrays pairwise.
  void JoinAll(const Instr& x, size_t x_part, const Instr& y, size_t y_part);
  void LinkCalls(const Instr& instr);
  size_t Root(size_t node);

  std::vector<const Computation*> computations_;  // the body, the condition and their callees
  std::set<std::pair<const Instr*, size_t>> depends_;
  std::unordered_map<const Instr*, std::vector<size_t>> first_;  // first node of each array
  std::vector<size_t> parents_;
  // By class: the instruction that mixes it, or null.
  std::vector<const Instr*> mixed_;
  const Instr* looked_at_ = nullptr;
};

}  // namespace tokamak
