#pragma once

// Helpers of the passes that flatten tuples.

#include <algorithm>
#include <vector>

#include "ir/ir.h"
#include "rewrite/editor.h"

namespace tokamak {

// Whether the shape is a tuple that contains tuples.
inline bool IsNested(const Shape& shape) {
  return shape.IsTuple() &&
         std::ranges::any_of(shape.elements(), [](const Shape& e) { return e.IsTuple(); });
}

// Appends the leaves of a value, as get-tuple-elements.
inline void AddLeaves(Instr* value, std::vector<Instr*>& leaves) {
  if (!value->shape().IsTuple()) return leaves.push_back(value);
  for (size_t i = 0; i < value->shape().elements().size(); ++i)
    AddLeaves(Editor::Beside(*value).Element(value, i), leaves);
}

// Builds a value of `shape`, created for `like`, from its leaves, the next of which is `next`.
inline Instr* TupleOfLeaves(const Instr& like, const Shape& shape, Instr* const*& next) {
  if (!shape.IsTuple()) return *next++;
  std::vector<Instr*> elements;
  for (const Shape& element : shape.elements())
    elements.push_back(TupleOfLeaves(like, element, next));
  return Editor::Beside(like).Make(Op::kTuple, shape, std::move(elements));
}
// Builds a value with the shape of `like` from its leaves.
inline Instr* TupleOfLeaves(const Instr& like, const std::vector<Instr*>& leaves) {
  Instr* const* next = leaves.data();
  return TupleOfLeaves(like, like.shape(), next);
}

}  // namespace tokamak
