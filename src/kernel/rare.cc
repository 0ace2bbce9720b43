#include "kernel/rare.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace tokamak {
namespace {

// Magnitudes that few numbers have.
constexpr double kHuge = 0x1p17, kTiny = 0x1p-100;
// Bytes of one lane that an arm computes at least.
constexpr int kLeastBytes = 96;

}  // namespace

RareArms::RareArms(const Kernel& kernel) : kernel_(kernel) {
  // Every kernel that is priced comes here; most have nothing rare.
  auto is_rare = [&](const ScalarNode& node) {
    return node.prim == Prim::kSelect && IsRare(node.operands[0]);
  };
  if (std::ranges::none_of(kernel.nodes, is_rare)) return;
  users_.resize(kernel.nodes.size());
  is_stated_.resize(kernel.nodes.size());
  std::vector<const Block*> blocks = {&kernel.body};
  std::vector<ValueId> open;
  std::vector<bool> seen(kernel.nodes.size());
  auto state = [&](ValueId id) {
    if (id == kNoValue) return;
    is_stated_[static_cast<size_t>(id)] = true;
    open.push_back(id);
  };
  while (!blocks.empty()) {
    const Block* block = blocks.back();
    blocks.pop_back();
    for (const Stmt& stmt : *block) {
      for (const Block* inner : {&stmt.head, &stmt.body, &stmt.otherwise}) blocks.push_back(inner);
      for (ValueId id : {stmt.condition, stmt.index, stmt.value}) state(id);
      if (stmt.kind == StmtKind::kFor) state(kernel.loop(stmt.loop).extent);
      if (stmt.kind == StmtKind::kMultiply)
        for (ValueId id : OperandsOf(stmt)) state(id);
    }
  }
  while (!open.empty()) {
    ValueId id = open.back();
    open.pop_back();
    if (seen[static_cast<size_t>(id)]) continue;
    seen[static_cast<size_t>(id)] = true;
    for (ValueId operand : kernel.operands(id)) {
      users_[static_cast<size_t>(operand)].push_back(id);
      open.push_back(operand);
    }
  }
}

double RareArms::Magnitude(ValueId constant) const {
  const ScalarNode& node = kernel_.node(constant);
  bool is_real = node.type == ScalarType::kF32 || node.type == ScalarType::kF64;
  if (node.prim != Prim::kConst || !is_real) return 1;
  return std::fabs(DoubleOfBits(node.type, node.bits));
}

bool RareArms::IsRare(ValueId condition) const {
  const ScalarNode& node = kernel_.node(condition);
  if (node.prim != Prim::kLt && node.prim != Prim::kLe) return false;
  double below = Magnitude(node.operands[1]);
  return Magnitude(node.operands[0]) >= kHuge || (below > 0 && below <= kTiny);
}

// False when the arm is not worth it, or reads what comes too late.
bool RareArms::FillArm(std::span<const ValueId> ids, Arm& arm) const {
  std::unordered_map<ValueId, size_t> place;
  for (size_t i = 0; i < ids.size(); ++i) place.emplace(ids[i], i);
  std::unordered_set<ValueId> inside;
  auto is_select = [&](ValueId id) {
    return std::ranges::find(arm.selects, id) != arm.selects.end();
  };
  auto is_for_arm = [&](ValueId id, ValueId user) {
    const ScalarNode& node = kernel_.node(user);
    if (is_select(user)) return node.operands[0] != id && node.operands[2] != id;
    return inside.contains(user);
  };
  int bytes = 0;
  for (size_t i = ids.size(); i-- > 0;) {
    ValueId id = ids[i];
    if (is_stated_[static_cast<size_t>(id)] || is_select(id)) continue;
    const std::vector<ValueId>& users = users_[static_cast<size_t>(id)];
    if (!std::ranges::all_of(users, [&](ValueId user) { return is_for_arm(id, user); })) continue;
    inside.insert(id);
    arm.values.push_back(id);
    bytes += std::max(InfoOf(kernel_.node(id).type).bits / 8, 1);
  }
  std::ranges::reverse(arm.values);
  if (bytes < kLeastBytes) return false;
  size_t first = place.at(arm.selects.front());
  auto is_early = [&](ValueId id) {
    auto it = place.find(id);
    return it == place.end() || it->second < first || inside.contains(id);
  };
  for (ValueId id : arm.values)
    if (!std::ranges::all_of(kernel_.operands(id), is_early)) return false;
  for (ValueId id : arm.selects)
    if (!std::ranges::all_of(kernel_.operands(id), is_early)) return false;
  return true;
}

std::vector<RareArms::Arm> RareArms::In(std::span<const ValueId> ids) const {
  std::vector<Arm> arms;
  for (ValueId id : ids) {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim != Prim::kSelect || !IsRare(node.operands[0])) continue;
    auto same = [&](const Arm& arm) { return arm.condition == node.operands[0]; };
    auto it = std::ranges::find_if(arms, same);
    if (it == arms.end()) it = arms.insert(it, {.condition = node.operands[0]});
    it->selects.push_back(id);
  }
  std::erase_if(arms, [&](Arm& arm) { return !FillArm(ids, arm); });
  // Outermost ones: those within an arm are found again when it is computed.
  std::unordered_set<ValueId> inside;
  for (const Arm& arm : arms) inside.insert(arm.values.begin(), arm.values.end());
  std::erase_if(arms, [&](const Arm& arm) {
    return std::ranges::any_of(arm.selects, [&](ValueId id) { return inside.contains(id); });
  });
  return arms;
}

}  // namespace tokamak
