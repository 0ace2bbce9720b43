#pragma once

#include <vector>

#include "ir/ir.h"

namespace tokamak {

// A value without tuples: one instruction, or the trees of a tuple's elements.
struct Tree {
  Instr* leaf = nullptr;  // null with no elements: an empty tuple, or a dead value
  std::vector<Tree> elements;
};

// Appends the leaves in order, depth first.
void Flatten(const Tree& tree, std::vector<Instr*>& leaves);
void Flatten(const Shape& shape, std::vector<Shape>& leaves);
// The tree of `shape` with these leaves, starting at *next.
Tree Unflatten(const Shape& shape, const std::vector<Instr*>& leaves, size_t& next);

}  // namespace tokamak
