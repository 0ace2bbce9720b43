#include "rewrite/normal/tree.h"

namespace tokamak {

void Flatten(const Tree& tree, std::vector<Instr*>& leaves) {
  if (tree.leaf != nullptr || tree.elements.empty()) {
    if (tree.leaf != nullptr) leaves.push_back(tree.leaf);
    return;
  }
  for (const Tree& element : tree.elements) Flatten(element, leaves);
}

void Flatten(const Shape& shape, std::vector<Shape>& leaves) {
  if (!shape.IsTuple()) {
    leaves.push_back(shape.WithoutLayout());
    return;
  }
  for (const Shape& element : shape.elements()) Flatten(element, leaves);
}

Tree Unflatten(const Shape& shape, const std::vector<Instr*>& leaves, size_t& next) {
  Tree tree;
  if (!shape.IsTuple()) {
    tree.leaf = leaves[next++];
    return tree;
  }
  for (const Shape& element : shape.elements())
    tree.elements.push_back(Unflatten(element, leaves, next));
  return tree;
}

}  // namespace tokamak
