#include "kernel/cold_paths.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace tokamak {
namespace {

// Magnitudes that arguments rarely have. kHuge is the slow-path bound of f32 sin and cos
// (formulas/trigonometric.cc). kTiny is chosen.
constexpr double kHuge = 0x1p17, kTiny = 0x1p-100;
// Minimum size of a cold path: bytes of all its values, per lane. Chosen: below it a branch does
// not pay.
constexpr int kMinBytes = 96;

double Magnitude(const Kernel& kernel, ValueId constant) {
  const ScalarNode& node = kernel.node(constant);
  bool is_real = node.type == ScalarType::kF32 || node.type == ScalarType::kF64;
  if (node.prim != Prim::kConst || !is_real) return 1;
  return std::fabs(DoubleOfBits(node.type, node.bits));
}

}  // namespace

bool IsColdCondition(const Kernel& kernel, ValueId condition) {
  const ScalarNode& node = kernel.node(condition);
  if (node.prim != Prim::kLt && node.prim != Prim::kLe) return false;
  double below = Magnitude(kernel, node.operands[1]);
  return Magnitude(kernel, node.operands[0]) >= kHuge || (below > 0 && below <= kTiny);
}

ColdPaths::ColdPaths(const Kernel& kernel) : kernel_(kernel) {
  // Fast exit: this runs for every kernel whose cost is estimated, and most have no cold paths.
  auto is_cold = [&](const ScalarNode& node) {
    return node.prim == Prim::kSelect && IsColdCondition(kernel_, node.operands[0]);
  };
  if (std::ranges::none_of(kernel.nodes, is_cold)) return;
  users_.resize(kernel.nodes.size());
  used_by_stmt_.resize(kernel.nodes.size());
  std::vector<const StmtList*> blocks = {&kernel.body};
  std::vector<ValueId> open;
  std::vector<bool> seen(kernel.nodes.size());
  auto state = [&](ValueId id) {
    if (id == kNoValue) return;
    used_by_stmt_[static_cast<size_t>(id)] = true;
    open.push_back(id);
  };
  while (!blocks.empty()) {
    const StmtList* block = blocks.back();
    blocks.pop_back();
    for (const Stmt& stmt : *block) {
      for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
        blocks.push_back(inner);
      for (ValueId id : {stmt.condition, stmt.index, stmt.value}) state(id);
      if (stmt.kind == StmtKind::kFor) state(kernel.loop(stmt.loop).extent);
      if (stmt.kind == StmtKind::kMatMul)
        for (ValueId id : MatMulOperandsOf(stmt)) state(id);
      if (stmt.kind == StmtKind::kAsync)
        for (ValueId id : AsyncOperandsOf(stmt)) state(id);
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

// False if the path is too small to outline.
bool ColdPaths::FillPath(std::span<const ValueId> ids, ColdPath& path) const {
  std::unordered_set<ValueId> inside;
  auto is_select = [&](ValueId id) {
    return std::ranges::find(path.selects, id) != path.selects.end();
  };
  auto is_on_path = [&](ValueId id, ValueId user) {
    const ScalarNode& node = kernel_.node(user);
    if (is_select(user)) return node.operands[0] != id && node.operands[2] != id;
    return inside.contains(user);
  };
  int bytes = 0;
  for (size_t i = ids.size(); i-- > 0;) {
    ValueId id = ids[i];
    if (used_by_stmt_[static_cast<size_t>(id)] || is_select(id)) continue;
    const std::vector<ValueId>& users = users_[static_cast<size_t>(id)];
    if (!std::ranges::all_of(users, [&](ValueId user) { return is_on_path(id, user); })) continue;
    inside.insert(id);
    path.values.push_back(id);
    bytes += std::max(InfoOf(kernel_.node(id).type).bits / 8, 1);
  }
  std::ranges::reverse(path.values);
  return bytes >= kMinBytes;
}

std::vector<ColdPaths::ColdPath> ColdPaths::In(std::span<const ValueId> ids) const {
  std::vector<ColdPath> paths;
  for (ValueId id : ids) {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim != Prim::kSelect || !IsColdCondition(kernel_, node.operands[0])) continue;
    auto same = [&](const ColdPath& path) { return path.condition == node.operands[0]; };
    auto it = std::ranges::find_if(paths, same);
    if (it == paths.end()) it = paths.insert(it, {.condition = node.operands[0]});
    it->selects.push_back(id);
  }
  std::erase_if(paths, [&](ColdPath& path) { return !FillPath(ids, path); });
  // Keep the outermost paths. Nested ones are found when the path itself is emitted.
  std::unordered_set<ValueId> inside;
  for (const ColdPath& path : paths) inside.insert(path.values.begin(), path.values.end());
  std::erase_if(paths, [&](const ColdPath& path) {
    return std::ranges::any_of(path.selects, [&](ValueId id) { return inside.contains(id); });
  });
  return paths;
}

namespace {

// Topological order of values and cold paths.
class Order {
 public:
  Order(const Kernel& kernel, std::span<const ValueId> ids,
        std::span<const ColdPaths::ColdPath> paths)
      : kernel_(kernel), paths_(paths), begun_(paths.size()) {
    for (ValueId id : ids) path_of_.emplace(id, kNone);
    for (size_t i = 0; i < paths.size(); ++i)
      for (const auto& part : {paths[i].values, paths[i].selects})
        for (ValueId id : part) path_of_[id] = i;
  }

  // Orders everything. Returns a path that depends on itself, or kNone.
  size_t Find(std::span<const ValueId> ids) {
    for (ValueId id : ids)
      if (size_t bad = Add(id); bad != kNone) return bad;
    return kNone;
  }

  static constexpr size_t kNone = SIZE_MAX;
  std::vector<std::pair<ValueId, size_t>> steps;  // a value, or the index of a path

 private:
  size_t Add(ValueId id) {
    auto it = path_of_.find(id);
    if (it == path_of_.end() || done_.contains(id)) return kNone;
    if (it->second != kNone) return AddPath(it->second);
    done_.insert(id);
    for (ValueId operand : kernel_.operands(id))
      if (size_t bad = Add(operand); bad != kNone) return bad;
    steps.emplace_back(id, kNone);
    return kNone;
  }
  size_t AddPath(size_t path) {
    if (begun_[path]) return path;
    begun_[path] = true;
    for (const auto& part : {paths_[path].values, paths_[path].selects})
      for (ValueId id : part)
        for (ValueId operand : kernel_.operands(id)) {
          if (std::ranges::find(paths_[path].selects, operand) != paths_[path].selects.end())
            return path;
          auto it = path_of_.find(operand);
          if (it == path_of_.end() || it->second == path) continue;
          if (size_t bad = Add(operand); bad != kNone) return bad;
        }
    for (const auto& part : {paths_[path].values, paths_[path].selects})
      done_.insert(part.begin(), part.end());
    steps.emplace_back(kNoValue, path);
    return kNone;
  }

  const Kernel& kernel_;
  std::span<const ColdPaths::ColdPath> paths_;
  std::vector<bool> begun_;
  std::unordered_map<ValueId, size_t> path_of_;
  std::unordered_set<ValueId> done_;
};

}  // namespace

std::vector<ColdPaths::Step> ColdPaths::Ordered(std::span<const ValueId> ids,
                                                std::vector<ColdPath>& paths) const {
  for (;;) {
    Order order(kernel_, ids, paths);
    size_t bad = order.Find(ids);
    if (bad != Order::kNone) {
      paths.erase(paths.begin() + static_cast<int64_t>(bad));
      continue;
    }
    std::vector<Step> steps;
    for (const auto& [value, path] : order.steps)
      steps.push_back({value, path == Order::kNone ? nullptr : &paths[path]});
    return steps;
  }
}

}  // namespace tokamak
