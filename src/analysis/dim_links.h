#pragma once

// Which dimensions of the values of a loop's body run together; for independent.cc.

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/loops.h"

namespace tokamak {

class DimLinks {
 public:
  // `moves`: parameters of the body, or of the body of a loop within it, whose dimensions are
  // followed.
  DimLinks(const WhileLoop& loop, const std::set<const Instr*>& moves);

  // Whether the value, or that part of it, is made of one that moves.
  bool Depends(const Instr& value, size_t part = 0) const;
  // The class of a dimension; whether elements of the class meet along it.
  size_t ClassOf(const Instr& value, size_t dim, size_t part = 0);
  bool IsMixed(const Instr& value, size_t dim) { return mixed_[ClassOf(value, dim)] != nullptr; }
  // An instruction that makes them meet; null: none.
  const Instr* MixedBy(const Instr& value, size_t dim) { return mixed_[ClassOf(value, dim)]; }

 private:
  void AddComputation(const Computation& computation);
  void Follow(const Computation& computation, bool& changed);
  void FollowCalls(const Instr& instr, bool& changed);
  void MarkDepends(const Instr& value, size_t part, bool& changed);

  void Link(const Instr& instr);
  // Dimension `from` of operand i is read where dimension `to` of the result is written.
  void Same(const Instr& instr, size_t i, size_t from, size_t to);
  // Elements of the dimension meet.
  void Mix(const Instr& value, size_t dim);
  void MixAll(const Instr& value);
  void Join(const Instr& x, size_t x_dim, size_t x_part, const Instr& y, size_t y_dim,
            size_t y_part);
  // All dimensions of two arrays, one by one.
  void JoinAll(const Instr& x, size_t x_part, const Instr& y, size_t y_part);
  void LinkReshape(const Instr& instr);
  void LinkSlice(const Instr& instr);
  void LinkGather(const Instr& instr);
  void LinkBits(const Instr& instr);
  void LinkDot(const Instr& instr);
  void LinkReduce(const Instr& instr);
  void LinkCalls(const Instr& instr);
  size_t Root(size_t node);

  std::vector<const Computation*> computations_;  // the body, the condition, what they call
  std::set<std::pair<const Instr*, size_t>> depends_;
  std::unordered_map<const Instr*, std::vector<size_t>> first_;  // node of each part
  std::vector<size_t> parents_;
  std::vector<const Instr*> mixed_;
  const Instr* looked_at_ = nullptr;
};

}  // namespace tokamak
