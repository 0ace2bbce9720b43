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

double Magnitude(const Kernel& kernel, ValueId constant) {
  const ScalarNode& node = kernel.node(constant);
  bool is_real = node.type == ScalarType::kF32 || node.type == ScalarType::kF64;
  if (node.prim != Prim::kConst || !is_real) return 1;
  return std::fabs(DoubleOfBits(node.type, node.bits));
}

}  // namespace

bool IsRare(const Kernel& kernel, ValueId condition) {
  const ScalarNode& node = kernel.node(condition);
  if (node.prim != Prim::kLt && node.prim != Prim::kLe) return false;
  double below = Magnitude(kernel, node.operands[1]);
  return Magnitude(kernel, node.operands[0]) >= kHuge || (below > 0 && below <= kTiny);
}

RareArms::RareArms(const Kernel& kernel) : kernel_(kernel) {
  // Every kernel that is priced comes here; most have nothing rare.
  auto is_rare = [&](const ScalarNode& node) {
    return node.prim == Prim::kSelect && IsRare(kernel_, node.operands[0]);
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

// False when the arm is not worth it.
bool RareArms::FillArm(std::span<const ValueId> ids, Arm& arm) const {
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
  return bytes >= kLeastBytes;
}

std::vector<RareArms::Arm> RareArms::In(std::span<const ValueId> ids) const {
  std::vector<Arm> arms;
  for (ValueId id : ids) {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim != Prim::kSelect || !IsRare(kernel_, node.operands[0])) continue;
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

namespace {

// Values and arms in an order in which operands come first.
class Order {
 public:
  Order(const Kernel& kernel, std::span<const ValueId> ids, std::span<const RareArms::Arm> arms)
      : kernel_(kernel), arms_(arms), begun_(arms.size()) {
    for (ValueId id : ids) arm_of_.emplace(id, kNone);
    for (size_t i = 0; i < arms.size(); ++i)
      for (const auto& part : {arms[i].values, arms[i].selects})
        for (ValueId id : part) arm_of_[id] = i;
  }

  // An arm that waits for itself; kNone: all are in order.
  size_t Find(std::span<const ValueId> ids) {
    for (ValueId id : ids)
      if (size_t bad = Add(id); bad != kNone) return bad;
    return kNone;
  }

  static constexpr size_t kNone = SIZE_MAX;
  std::vector<std::pair<ValueId, size_t>> steps;  // a value, or the number of an arm

 private:
  size_t Add(ValueId id) {
    auto it = arm_of_.find(id);
    if (it == arm_of_.end() || done_.contains(id)) return kNone;
    if (it->second != kNone) return AddArm(it->second);
    done_.insert(id);
    for (ValueId operand : kernel_.operands(id))
      if (size_t bad = Add(operand); bad != kNone) return bad;
    steps.emplace_back(id, kNone);
    return kNone;
  }
  size_t AddArm(size_t arm) {
    if (begun_[arm]) return arm;
    begun_[arm] = true;
    for (const auto& part : {arms_[arm].values, arms_[arm].selects})
      for (ValueId id : part)
        for (ValueId operand : kernel_.operands(id)) {
          if (std::ranges::find(arms_[arm].selects, operand) != arms_[arm].selects.end())
            return arm;
          auto it = arm_of_.find(operand);
          if (it == arm_of_.end() || it->second == arm) continue;
          if (size_t bad = Add(operand); bad != kNone) return bad;
        }
    for (const auto& part : {arms_[arm].values, arms_[arm].selects})
      done_.insert(part.begin(), part.end());
    steps.emplace_back(kNoValue, arm);
    return kNone;
  }

  const Kernel& kernel_;
  std::span<const RareArms::Arm> arms_;
  std::vector<bool> begun_;
  std::unordered_map<ValueId, size_t> arm_of_;
  std::unordered_set<ValueId> done_;
};

}  // namespace

std::vector<RareArms::Step> RareArms::Ordered(std::span<const ValueId> ids,
                                              std::vector<Arm>& arms) const {
  for (;;) {
    Order order(kernel_, ids, arms);
    size_t bad = order.Find(ids);
    if (bad != Order::kNone) {
      arms.erase(arms.begin() + static_cast<int64_t>(bad));
      continue;
    }
    std::vector<Step> steps;
    for (const auto& [value, arm] : order.steps)
      steps.push_back({value, arm == Order::kNone ? nullptr : &arms[arm]});
    return steps;
  }
}

}  // namespace tokamak
