#include "gen/unswitch_loops.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "cost/pipes.h"
#include "cost/rates.h"
#include "kernel/divergence.h"
#include "kernel/uniform_values.h"

namespace tokamak {
namespace {

// Minimum saving for a second loop: simple vector operations, and fraction of the loop's cost.
// Chosen: the branch itself is predicted, but the copy takes compile time and instruction cache.
constexpr double kMinSaved = 16, kMinSavedFraction = 0.25;
// Loops per kernel. Chosen: each may double the code.
constexpr int kMaxUnswitched = 4;

// Rewrites a loop's stores for a known condition, with a new loop variable.
class UnswitchRewriter {
 public:
  explicit UnswitchRewriter(Kernel& kernel) : kernel_(kernel) {}

  void Put(ValueId old, ValueId by) { known_[old] = by; }
  ValueId Constant(bool value) {
    return Add({.prim = Prim::kConst, .type = ScalarType::kPred, .bits = value ? Bits{1} : 0});
  }
  ValueId Add(const ScalarNode& node) {
    kernel_.nodes.push_back(node);
    return ValueId{static_cast<uint32_t>(kernel_.nodes.size() - 1)};
  }

  // Operands have lower ids than their users: rewrites with an explicit stack.
  ValueId Of(ValueId id) {
    std::vector<ValueId> open = {id};
    while (!open.empty()) {
      ValueId here = open.back();
      if (known_.contains(here)) {
        open.pop_back();
        continue;
      }
      size_t before = open.size();
      for (ValueId operand : kernel_.operands(here))
        if (!known_.contains(operand)) open.push_back(operand);
      if (open.size() != before) continue;
      known_[here] = Made(here);
      open.pop_back();
    }
    return known_[id];
  }

 private:
  ValueId Made(ValueId id) {
    ScalarNode node = kernel_.node(id);
    bool changed = false;
    for (int i = 0; i < node.arity(); ++i) {
      ValueId& operand = node.operands[static_cast<size_t>(i)];
      changed = changed || known_[operand] != operand;
      operand = known_[operand];
    }
    if (!changed) return id;
    if (std::optional<ValueId> simple = Simple(node)) return *simple;
    return Add(node);
  }

  std::optional<bool> Known(ValueId id) const {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim != Prim::kConst || node.type != ScalarType::kPred) return std::nullopt;
    return node.bits != 0;
  }

  std::optional<ValueId> Simple(const ScalarNode& node) const {
    auto [x, y, z] = node.operands;
    if (node.prim == Prim::kSelect)
      if (std::optional<bool> takes = Known(x)) return *takes ? y : z;
    if (node.type != ScalarType::kPred || (node.prim != Prim::kAnd && node.prim != Prim::kOr))
      return std::nullopt;
    bool decides = node.prim == Prim::kOr;
    if (std::optional<bool> value = Known(x)) return *value == decides ? x : y;
    if (std::optional<bool> value = Known(y)) return *value == decides ? y : x;
    return std::nullopt;
  }

  Kernel& kernel_;
  std::unordered_map<ValueId, ValueId> known_;
};

// A vector loop that only stores.
struct VectorLoop {
  StmtList* block = nullptr;
  size_t at = 0;
  const Stmt& stmt() const { return (*block)[at]; }
};

void FindLoops(const Kernel& kernel, StmtList& block, std::vector<VectorLoop>& found) {
  for (size_t i = 0; i < block.size(); ++i) {
    Stmt& stmt = block[i];
    bool stores = std::ranges::all_of(
        stmt.body, [](const Stmt& inner) { return inner.kind == StmtKind::kStore; });
    if (stmt.kind == StmtKind::kFor && IsVector(kernel, kernel.loop(stmt.loop)) && stores) {
      found.push_back({&block, i});
      continue;
    }
    for (StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      FindLoops(kernel, *inner, found);
  }
}

// All values that a loop's stores use.
std::unordered_set<ValueId> NeededBy(const Kernel& kernel, const Stmt& loop) {
  std::unordered_set<ValueId> needed;
  std::vector<ValueId> open;
  for (const Stmt& store : loop.body) open.insert(open.end(), {store.index, store.value});
  while (!open.empty()) {
    ValueId id = open.back();
    open.pop_back();
    if (!needed.insert(id).second) continue;
    for (ValueId operand : kernel.operands(id)) open.push_back(operand);
  }
  return needed;
}

// Cost of one vector of the loop.
double NsOf(const Kernel& kernel, const Stmt& loop, const Machine& machine) {
  Divergence divergence(kernel);
  Work work;
  auto lanes = static_cast<double>(machine.Lanes(32));
  for (ValueId id : NeededBy(kernel, loop)) {
    if (!divergence.ByLane(id)) continue;
    if (kernel.node(id).prim == Prim::kLoad) {
      work[Pipe::kLoad] += 1;
    } else {
      AddPrim(work, kernel, id, 1, lanes, machine);
    }
  }
  return NsOfOps(work, RatesOf(machine));
}

// The loop specialized for a value of the condition; with a new loop variable if it is the second.
Stmt LoopWhere(Kernel& kernel, const Stmt& loop, ValueId uniform_condition, bool value,
               bool is_second) {
  Stmt made = loop;
  UnswitchRewriter rewriter(kernel);
  rewriter.Put(uniform_condition, rewriter.Constant(value));
  if (is_second) {
    made.loop = LoopId{static_cast<uint32_t>(kernel.loops.size())};
    kernel.loops.push_back(kernel.loop(loop.loop));
    kernel.loops.back().name += value ? "_on" : "_off";
    for (size_t i = 0, count = kernel.nodes.size(); i < count; ++i) {
      ScalarNode node = kernel.nodes[i];
      if (node.prim != Prim::kLoop || node.loop() != loop.loop) continue;
      node.bits = static_cast<Bits>(made.loop);
      rewriter.Put(ValueId{static_cast<uint32_t>(i)}, rewriter.Add(node));
    }
  }
  for (Stmt& store : made.body) {
    store.index = rewriter.Of(store.index);
    store.value = rewriter.Of(store.value);
  }
  return made;
}

// How many operands of a node, from the first on, can decide its value.
int Deciding(const ScalarNode& node) {
  if (node.prim == Prim::kSelect) return 1;
  bool joins = node.prim == Prim::kAnd || node.prim == Prim::kOr;
  constexpr int kBothOperands = 2;  // operands of and, or (definition)
  return joins && node.type == ScalarType::kPred ? kBothOperands : 0;
}

// Quick check for every kernel whose cost is estimated: most have no uniform condition.
bool MayUnswitch(const Kernel& kernel) {
  if (std::ranges::none_of(kernel.nodes, [](const ScalarNode& node) { return Deciding(node) > 0; }))
    return false;
  std::vector<char> varies(kernel.nodes.size());
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    varies[i] = node.prim == Prim::kLoop || IsOrdered(node.prim);
    for (ValueId operand : kernel.operands(ValueId{static_cast<uint32_t>(i)}))
      varies[i] = varies[i] || varies[static_cast<size_t>(operand)];
    if (!varies[i]) continue;
    for (int k = 0; k < Deciding(node); ++k) {
      ValueId uniform_condition = node.operands[static_cast<size_t>(k)];
      if (!varies[static_cast<size_t>(uniform_condition)] && !kernel.IsConstant(uniform_condition))
        return true;
    }
  }
  return false;
}

class UnswitchFinder {
 public:
  UnswitchFinder(const Kernel& kernel, const Machine& machine)
      : kernel_(kernel), machine_(machine), uniform_(kernel), divergence_(kernel) {}

  // The condition that saves most of a loop's work, if it is enough.
  std::optional<ValueId> Find(const Stmt& loop) const {
    double all = 0;
    std::optional<ValueId> best;
    double most = 0;
    for (ValueId uniform_condition : UniformConditions(loop)) {
      if (all == 0) all = NsOf(kernel_, loop, machine_);
      for (bool value : {false, true}) {
        if (IsUnlikely(uniform_condition, value)) continue;
        Kernel copy = kernel_;
        Stmt made = LoopWhere(copy, loop, uniform_condition, value, false);
        double saved = all - NsOf(copy, made, machine_);
        if (saved <= most) continue;
        most = saved;
        best = uniform_condition;
      }
    }
    double least = kMinSaved * RatesOf(machine_).ns[static_cast<size_t>(Pipe::kSimple)];
    return most >= std::max(least, kMinSavedFraction * all) ? best : std::nullopt;
  }

 private:
  // Values are rarely equal: divisors that are 0.
  bool IsUnlikely(ValueId uniform_condition, bool value) const {
    return kernel_.node(uniform_condition).prim == (value ? Prim::kEq : Prim::kNe);
  }

  // Uniform conditions that decide values of lanes.
  std::vector<ValueId> UniformConditions(const Stmt& loop) const {
    // Conditions tried per loop. Chosen: bounds compile time.
    constexpr size_t kMaxConditions = 4;
    std::vector<ValueId> uniform_conditions;
    for (ValueId id : NeededBy(kernel_, loop)) {
      if (!divergence_.ByLane(id)) continue;
      const ScalarNode& node = kernel_.node(id);
      for (int i = 0; i < Deciding(node); ++i) {
        ValueId uniform_condition = node.operands[static_cast<size_t>(i)];
        if (uniform_(uniform_condition) && !kernel_.IsConstant(uniform_condition))
          uniform_conditions.push_back(uniform_condition);
      }
    }
    std::ranges::sort(uniform_conditions);
    uniform_conditions.erase(std::ranges::unique(uniform_conditions).begin(),
                             uniform_conditions.end());
    if (uniform_conditions.size() > kMaxConditions) uniform_conditions.resize(kMaxConditions);
    return uniform_conditions;
  }

  const Kernel& kernel_;
  const Machine& machine_;
  UniformValues uniform_;
  Divergence divergence_;
};

bool BranchAtOne(Kernel& kernel, const Machine& machine) {
  std::vector<VectorLoop> loops;
  FindLoops(kernel, kernel.body, loops);
  if (loops.empty()) return false;
  UnswitchFinder finder(kernel, machine);
  for (const VectorLoop& loop : loops) {
    std::optional<ValueId> uniform_condition = finder.Find(loop.stmt());
    if (!uniform_condition) continue;
    Stmt branch;
    branch.kind = StmtKind::kIf;
    branch.condition = *uniform_condition;
    branch.body.push_back(LoopWhere(kernel, loop.stmt(), *uniform_condition, true, false));
    branch.else_body.push_back(LoopWhere(kernel, loop.stmt(), *uniform_condition, false, true));
    (*loop.block)[loop.at] = std::move(branch);
    return true;
  }
  return false;
}

}  // namespace

void UnswitchLoops(Kernel& kernel, const Machine& machine) {
  if (!MayUnswitch(kernel)) return;
  for (int i = 0; i < kMaxUnswitched; ++i)
    if (!BranchAtOne(kernel, machine)) return;
}

}  // namespace tokamak
