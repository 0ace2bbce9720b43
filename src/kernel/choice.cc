#include "kernel/choice.h"

#include <algorithm>
#include <array>

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

// Whether `value` is a `prim`. If so, replaces it by its operand.
bool Is(const Kernel& kernel, Prim prim, ValueId& value) {
  const ScalarNode& node = kernel.node(value);
  if (node.prim != prim) return false;
  value = node.operands[0];
  return true;
}

// Whether the value is the bitwise or of both operands (of both negated, for a maximum): the result
// for equal numbers and NaNs.
bool IsOfBits(const Kernel& kernel, ValueId value, const Extreme& of) {
  if ((!of.is_least && !Is(kernel, Prim::kNeg, value)) || !Is(kernel, Prim::kBitcast, value))
    return false;
  const ScalarNode& bits = kernel.node(value);
  if (bits.prim != Prim::kOr) return false;
  std::array<ValueId, 2> both = {bits.operands[0], bits.operands[1]};
  for (ValueId& each : both)
    if (!Is(kernel, Prim::kBitcast, each) || (!of.is_least && !Is(kernel, Prim::kNeg, each)))
      return false;
  return (both[0] == of.x && both[1] == of.y) || (both[0] == of.y && both[1] == of.x);
}

}  // namespace

std::optional<Extreme> ExtremeOf(const Kernel& kernel, ValueId id) {
  const ScalarNode& node = kernel.node(id);
  if (node.prim != Prim::kSelect || !IsFloat(node.type)) return std::nullopt;
  const ScalarNode &less = kernel.node(node.operands[0]), &other = kernel.node(node.operands[2]);
  if (less.prim != Prim::kLt || other.prim != Prim::kSelect) return std::nullopt;
  const ScalarNode& greater = kernel.node(other.operands[0]);
  Extreme of{less.operands[0], less.operands[1], node.operands[1] == less.operands[0]};
  bool is_swapped =
      greater.prim == Prim::kLt && greater.operands[0] == of.y && greater.operands[1] == of.x;
  if (!is_swapped || node.operands[1] != (of.is_least ? of.x : of.y) ||
      other.operands[1] != (of.is_least ? of.y : of.x) || !IsOfBits(kernel, other.operands[2], of))
    return std::nullopt;
  return of;
}

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

std::optional<Choice> RoundedChoiceByZero(const Kernel& kernel, ValueId id) {
  std::optional<Choice> choice = ChoiceOf(kernel, id);
  if (!choice) return std::nullopt;
  auto is_zero = [&](ValueId operand) {
    const ScalarNode& node = kernel.node(operand);
    return node.prim == Prim::kConst && DoubleOfBits(node.type, node.bits) == 0;
  };
  const ScalarNode& compare = kernel.node(choice->compare);
  if (!is_zero(compare.operands[0]) && !is_zero(compare.operands[1])) return std::nullopt;
  int64_t bytes = BytesOf(kernel.node(id).type);
  bool is_rounded = std::ranges::any_of(kernel.nodes, [&](const ScalarNode& user) {
    return user.prim == Prim::kConvert && user.operands[0] == id && IsFloat(user.type) &&
           BytesOf(user.type) < bytes;
  });
  return is_rounded ? choice : std::nullopt;
}

namespace {

void AddUsed(const StmtList& block, std::vector<bool>& used) {
  auto add = [&](ValueId id) {
    if (id != kNoValue) used[static_cast<size_t>(id)] = true;
  };
  for (const Stmt& stmt : block) {
    for (ValueId id : {stmt.condition, stmt.index, stmt.value, stmt.matmul.lhs_index,
                       stmt.matmul.rhs_index, stmt.matmul.depth})
      add(id);
    if (stmt.kind == StmtKind::kAsync)
      for (ValueId id : AsyncOperandsOf(stmt)) add(id);
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      AddUsed(*inner, used);
  }
}

}  // namespace

std::vector<bool> InsideExtremes(const Kernel& kernel) {
  size_t count = kernel.nodes.size();
  std::vector<bool> has_users(count), needed(count), inside(count);
  AddUsed(kernel.body, needed);
  for (const Loop& loop : kernel.loops) needed[static_cast<size_t>(loop.extent)] = true;
  for (size_t i = 0; i < count; ++i)
    for (ValueId operand : kernel.operands(ValueId{static_cast<uint32_t>(i)}))
      has_users[static_cast<size_t>(operand)] = true;
  for (size_t i = count; i-- > 0;) {  // users follow their operands
    ValueId id{static_cast<uint32_t>(i)};
    inside[i] = has_users[i] && !needed[i];
    if (inside[i]) continue;
    auto need = [&](ValueId operand) { needed[static_cast<size_t>(operand)] = true; };
    if (std::optional<Extreme> extreme = ExtremeOf(kernel, id)) {
      need(extreme->x);
      need(extreme->y);
    } else {
      for (ValueId operand : kernel.operands(id)) need(operand);
    }
  }
  return inside;
}

}  // namespace tokamak
