#include "kernel/choice.h"

namespace tokamak {
namespace {

std::optional<Choice> ChoiceOf(const Kernel& kernel, ValueId id) {
  const ScalarNode& node = kernel.node(id);
  bool is_float = node.type == ScalarType::kF32 || node.type == ScalarType::kF64;
  if (node.prim != Prim::kSelect || !is_float) return std::nullopt;
  Choice choice{.compare = node.operands[0]};
  const ScalarNode* compare = &kernel.node(choice.compare);
  if (compare->prim == Prim::kXor) {
    choice = {.compare = compare->operands[0], .is_negated = true};
    compare = &kernel.node(choice.compare);
  }
  if (compare->prim != Prim::kLt && compare->prim != Prim::kLe) return std::nullopt;
  auto is = [&](size_t i, size_t j) { return compare->operands[i] == node.operands[j]; };
  if (!(is(0, 1) && is(1, 2)) && !(is(0, 2) && is(1, 1))) return std::nullopt;
  return choice;
}

}  // namespace

std::optional<Choice> RepeatedChoice(const Kernel& kernel, ValueId id) {
  std::optional<Choice> choice = ChoiceOf(kernel, id);
  if (!choice) return std::nullopt;
  const ScalarNode& node = kernel.node(id);
  for (size_t inner = 1; inner <= 2; ++inner) {
    ValueId other = node.operands[3 - inner];
    if (!ChoiceOf(kernel, node.operands[inner])) continue;
    const ScalarNode& chosen = kernel.node(node.operands[inner]);
    if (chosen.operands[1] == other || chosen.operands[2] == other) return choice;
  }
  return std::nullopt;
}

}  // namespace tokamak
