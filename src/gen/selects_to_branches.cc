#include "gen/selects_to_branches.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "cost/pipes.h"
#include "cost/rates.h"
#include "kernel/choice.h"
#include "kernel/cold_paths.h"
#include "kernel/divergence.h"
#include "kernel/placement.h"
#include "kernel/uniform_values.h"

namespace tokamak {
namespace {

// Minimum cost of a branch's body, in simple operations, for one vector or thread. Chosen: how
// often the branch is taken is unknown, a misprediction costs about 50 operations, and code behind
// a branch does not overlap with other code.
constexpr double kMinBranchCost = 192;
// The same on a GPU with few threads per SM. Chosen: issue slots are mostly idle there, so
// redundant computation is free, and a branch prevents overlap.
constexpr double kMinBranchCostFewThreads = 4096;
// Threads per SM. Chosen: up to two warps per scheduler, which leave most issue slots idle.
constexpr double kFewThreads = 256;
// The same on a GPU if all threads of a warp take the same branch, and nothing is loaded behind it.
// Chosen: a branch takes few issue slots, but prevents overlap.
constexpr double kMinWarpBranchCost = 64;
// Values of a condition that are looked at. Chosen: more than comparisons of indices have.
constexpr size_t kMaxConditionValues = 64;
// Limits the values visited to this multiple of the kernel's values. Chosen: nested selects (a
// concatenation of many operands) would otherwise take quadratic time.
constexpr size_t kVisitFactor = 4;
// Branches per kernel. Chosen: bounds compile time.
constexpr int kMaxSelectBranches = 16;

// Selects with one condition in one block that can all be computed before its statement `at`.
struct SelectGroup {
  StmtList* block = nullptr;
  size_t at = 0;
  ValueId condition = kNoValue;
  std::vector<ValueId> selects = {};
  size_t expensive = 1;  // index of the operand computed behind the branch
  double ns = 0;         // cost of that operand
  // Values that only the branch uses but that are computed before it, operands first.
  std::vector<ValueId> hoisted = {};
};

// Infinite if unknown.
double ThreadsOf(const Kernel& kernel) {
  double threads = 1;
  for (const Loop& loop : kernel.loops) {
    if (loop.role != LoopRole::kGrid && loop.role != LoopRole::kThread) continue;
    const ScalarNode& extent = kernel.node(loop.extent);
    threads *= extent.prim == Prim::kConst
                   ? static_cast<double>(IntOfBits(extent.type, extent.bits))
                   : std::numeric_limits<double>::infinity();
  }
  return threads;
}

// Minimum cost of a branch's body.
double LeastNs(const Kernel& kernel, const Machine& machine) {
  bool is_few =
      machine.is_gpu() && ThreadsOf(kernel) <= kFewThreads * static_cast<double>(machine.cores);
  return (is_few ? kMinBranchCostFewThreads : kMinBranchCost) *
         RatesOf(machine).ns[static_cast<size_t>(Pipe::kSimple)];
}

// A select whose result fits in a register that statements can write.
bool IsNumberSelect(const ScalarNode& node) {
  return node.prim == Prim::kSelect && node.type != ScalarType::kPred &&
         node.type != ScalarType::kIndex;
}

class SelectGroupFinder {
 public:
  SelectGroupFinder(Kernel& kernel, const Machine& machine)
      : kernel_(kernel),
        machine_(machine),
        rates_(RatesOf(machine)),
        placement_(kernel),
        cold_paths_(kernel),
        divergence_(kernel),
        uniform_(kernel),
        least_ns_(LeastNs(kernel, machine)),
        least_warp_ns_(kMinWarpBranchCost * rates_.ns[static_cast<size_t>(Pipe::kSimple)]),
        uses_(kernel.nodes.size()),
        block_counts_(kernel.nodes.size()) {
    CountUses(kernel.body);
    FindInnermostThreads(kernel.body);
  }

  // The most expensive group of selects, if it is worth a branch.
  std::optional<SelectGroup> Find() {
    Walk(kernel_.body, 1);
    return std::move(best_);
  }

 private:
  void CountUse(ValueId id) {
    if (id != kNoValue) ++uses_[static_cast<size_t>(id)];
  }
  // Values computed in several blocks count in each.
  void CountUses(const StmtList& block) {
    for (size_t i = 0; i <= block.size(); ++i) {
      for (ValueId id : placement_.Before(block, i)) {
        ++block_counts_[static_cast<size_t>(id)];
        for (ValueId operand : kernel_.operands(id)) CountUse(operand);
      }
      if (i == block.size()) break;
      const Stmt& stmt = block[i];
      switch (stmt.kind) {
        case StmtKind::kFor:
          CountUse(kernel_.loop(stmt.loop).extent);
          break;
        case StmtKind::kIf:
        case StmtKind::kWhile:
          CountUse(stmt.condition);
          break;
        case StmtKind::kStore:
          CountUse(stmt.index);
          CountUse(stmt.value);
          break;
        case StmtKind::kRead:
        case StmtKind::kShuffle:
          for (ValueId operand : kernel_.operands(stmt.value)) CountUse(operand);
          break;
        case StmtKind::kMatMul:
          for (ValueId operand : MatMulOperandsOf(stmt)) CountUse(operand);
          break;
        case StmtKind::kAsync:
          for (ValueId operand : AsyncOperandsOf(stmt)) CountUse(operand);
          break;
        case StmtKind::kBarrier:
          break;
      }
      if (stmt.kind == StmtKind::kWhile) CountUses(stmt.condition_stmts);
      if (!stmt.body.empty()) CountUses(stmt.body);
      if (!stmt.else_body.empty()) CountUses(stmt.else_body);
    }
  }

  // Sets warps_.
  void FindInnermostThreads(const StmtList& block) {
    for (const Stmt& stmt : block) {
      if (stmt.kind != StmtKind::kFor) continue;
      LoopRole role = kernel_.loop(stmt.loop).role;
      if (role != LoopRole::kGrid && role != LoopRole::kThread) continue;
      const ScalarNode& extent = kernel_.node(kernel_.loop(stmt.loop).extent);
      if (role == LoopRole::kThread) {
        bool has_whole = machine_.is_gpu() && IntOfBits(extent.type, extent.bits) % kWarpSize == 0;
        warps_ = has_whole ? std::optional(stmt.loop) : std::nullopt;
      }
      FindInnermostThreads(stmt.body);
    }
  }

  // No other statement may be next to the loops over blocks and threads.
  bool HoldsThreads(const StmtList& block) const {
    return std::any_of(block.begin(), block.end(), [&](const Stmt& stmt) {
      if (stmt.kind != StmtKind::kFor) return false;
      LoopRole role = kernel_.loop(stmt.loop).role;
      return role == LoopRole::kGrid || role == LoopRole::kThread;
    });
  }

  void Walk(StmtList& block, double lanes) {
    if (!HoldsThreads(block)) Look(block, lanes);
    for (Stmt& stmt : block) {
      double inner = lanes;
      if (stmt.kind == StmtKind::kFor && IsVector(kernel_, kernel_.loop(stmt.loop))) {
        const ScalarNode& extent = kernel_.node(kernel_.loop(stmt.loop).extent);
        inner = static_cast<double>(IntOfBits(extent.type, extent.bits));
      }
      if (stmt.kind == StmtKind::kWhile) Walk(stmt.condition_stmts, inner);
      if (!stmt.body.empty()) Walk(stmt.body, inner);
      if (!stmt.else_body.empty()) Walk(stmt.else_body, inner);
    }
  }

  // Whether a condition depends only on the index of the element, not on data or the iteration:
  // operands of a concatenation. Lanes and threads are then certain to diverge, and rows are split
  // where it pays off (gen/cuts.h).
  bool DependsOnIndexOnly(ValueId condition) const {
    std::vector<ValueId> open = {condition};
    std::unordered_set<ValueId> seen;
    while (!open.empty()) {
      ValueId id = open.back();
      open.pop_back();
      if (!seen.insert(id).second) continue;
      const ScalarNode& node = kernel_.node(id);
      if (node.prim == Prim::kLoop) {
        LoopRole role = kernel_.loop(node.loop()).role;
        if (role == LoopRole::kSerial) return false;
      }
      bool is_data = node.prim == Prim::kLoad || IsOrdered(node.prim) || node.prim == Prim::kExtent;
      if (is_data) return false;
      for (ValueId operand : kernel_.operands(id)) open.push_back(operand);
    }
    return true;
  }

  // Whether a condition is the same in all threads of a warp: it does not depend on the index of
  // the innermost loop over threads, and that loop has whole warps.
  bool IsSameInWarp(ValueId condition) const {
    if (!warps_) return false;
    std::vector<ValueId> open = {condition};
    std::unordered_set<ValueId> seen;
    while (!open.empty()) {
      ValueId id = open.back();
      open.pop_back();
      if (!seen.insert(id).second) continue;
      const ScalarNode& node = kernel_.node(id);
      if (IsOrdered(node.prim) || seen.size() > kMaxConditionValues) return false;
      if (node.prim == Prim::kLoop && node.loop() == *warps_) return false;
      for (ValueId operand : kernel_.operands(id)) open.push_back(operand);
    }
    return true;
  }

  // A select that can become an `if`, with a result that fits in a register.
  bool IsCandidate(ValueId id, double lanes) const {
    const ScalarNode& node = kernel_.node(id);
    if (!IsNumberSelect(node) || block_counts_[static_cast<size_t>(id)] != 1) return false;
    // Cold paths get their own branches (kernel/cold_paths.h).
    return (lanes == 1 || divergence_.ByLane(id)) && !IsColdCondition(kernel_, node.operands[0]) &&
           (!DependsOnIndexOnly(node.operands[0]) || IsSameInWarp(node.operands[0])) &&
           !RepeatedChoice(kernel_, id);
  }

  void Look(StmtList& block, double lanes) {
    // For each value of the block, the earliest statement before which it can be computed.
    std::unordered_map<ValueId, size_t> ready;
    auto ready_of = [&](ValueId id) {
      auto it = ready.find(id);
      return it == ready.end() ? 0 : it->second;
    };
    std::vector<SelectGroup> all;
    std::unordered_map<ValueId, size_t> last;  // by condition
    for (size_t i = 0; i <= block.size(); ++i) {
      for (ValueId id : placement_.Before(block, i)) {
        size_t when = 0;
        for (ValueId operand : kernel_.operands(id)) when = std::max(when, ready_of(operand));
        ready[id] = when;
        if (!IsCandidate(id, lanes)) continue;
        ValueId condition = kernel_.node(id).operands[0];
        auto it = last.find(condition);
        if (it == last.end() || all[it->second].at < when) {
          last[condition] = all.size();
          all.push_back({.block = &block, .at = i, .condition = condition, .selects = {id}});
        } else {
          all[it->second].selects.push_back(id);
        }
      }
      if (i == block.size()) break;
      if (block[i].kind == StmtKind::kRead || block[i].kind == StmtKind::kShuffle)
        ready[block[i].value] = i + 1;
    }
    for (const SelectGroup& group : all)
      for (size_t operand : {1, 2}) Consider(group, operand, ready, lanes);
  }

  void Consider(SelectGroup group, size_t operand,
                const std::unordered_map<ValueId, size_t>& in_block, double lanes) {
    group.expensive = operand;
    if (!IsWorth(group, in_block, lanes)) return;
    DropDependent(group);
    if (IsWorth(group, in_block, lanes) && (!best_ || group.ns > best_->ns))
      best_ = std::move(group);
  }

  bool IsWorth(SelectGroup& group, const std::unordered_map<ValueId, size_t>& in_block,
               double lanes) {
    if (looked_at_ > kVisitFactor * kernel_.nodes.size()) return false;
    std::unordered_set<ValueId> own = OwnValues(group, in_block);
    looked_at_ += own.size();
    std::erase_if(group.selects, [&](ValueId id) {
      return !own.contains(kernel_.node(id).operands[group.expensive]);
    });
    // Uniform values (keys of random numbers) do not depend on divergent data; computed before the
    // branch, they overlap with other latencies.
    group.hoisted.clear();
    if (machine_.is_gpu())
      std::ranges::copy_if(own, std::back_inserter(group.hoisted),
                           [&](ValueId id) { return uniform_(id); });
    std::ranges::sort(group.hoisted);
    for (ValueId id : group.hoisted) own.erase(id);
    group.ns = NsOf(own, lanes);
    if (group.ns >= least_ns_) return true;
    bool loads =
        std::ranges::any_of(own, [&](ValueId id) { return kernel_.node(id).prim == Prim::kLoad; });
    return group.ns >= least_warp_ns_ && !loads && IsSameInWarp(group.condition);
  }

  // All operands must be computed before any select of the group.
  void DropDependent(SelectGroup& group) {
    std::unordered_set<ValueId> late, selects(group.selects.begin(), group.selects.end());
    group.selects.clear();
    for (size_t i = 0; i <= group.block->size(); ++i)
      for (ValueId id : placement_.Before(*group.block, i)) {
        bool depends = std::ranges::any_of(kernel_.operands(id),
                                           [&](ValueId operand) { return late.contains(operand); });
        if (!depends && selects.contains(id)) group.selects.push_back(id);
        if (depends || selects.contains(id)) late.insert(id);
      }
  }

  // Values of the block that only these operands use.
  std::unordered_set<ValueId> OwnValues(const SelectGroup& group,
                                        const std::unordered_map<ValueId, size_t>& in_block) const {
    std::unordered_map<ValueId, int> used;
    std::unordered_set<ValueId> own;
    std::vector<ValueId> open;
    auto use = [&](ValueId id) {
      Prim prim = kernel_.node(id).prim;
      bool is_pure = in_block.contains(id) && !IsOrdered(prim);
      if (is_pure && ++used[id] == uses_[static_cast<size_t>(id)]) open.push_back(id);
    };
    for (ValueId id : group.selects) use(kernel_.node(id).operands[group.expensive]);
    while (!open.empty()) {
      ValueId id = open.back();
      open.pop_back();
      own.insert(id);
      for (ValueId inner : kernel_.operands(id)) use(inner);
    }
    return own;
  }

  // Cold paths have their own branches and do not count.
  double NsOf(std::unordered_set<ValueId> values, double lanes) const {
    lanes = machine_.is_gpu() ? 1 : std::min(lanes, static_cast<double>(machine_.Lanes(32)));
    std::vector<ValueId> ordered(values.begin(), values.end());
    std::ranges::sort(ordered);
    for (const ColdPaths::ColdPath& cold : cold_paths_.In(ordered))
      for (ValueId id : cold.values) values.erase(id);
    Work work;
    for (ValueId id : values) {
      if (kernel_.node(id).prim == Prim::kLoad) {
        work[Pipe::kLoad] += 1;
      } else {
        AddPrim(work, kernel_, id, 1, divergence_.ByLane(id) ? lanes : 1, machine_);
      }
    }
    return NsOfOps(work, rates_);
  }

  Kernel& kernel_;
  const Machine& machine_;
  const Rates& rates_;
  Placement placement_;
  ColdPaths cold_paths_;
  Divergence divergence_;
  UniformValues uniform_;
  double least_ns_, least_warp_ns_;
  // The innermost loop over threads, if it has whole warps; nullopt on a CPU.
  std::optional<LoopId> warps_;
  size_t looked_at_ = 0;
  // Per value: the number of its uses, and of blocks that compute it.
  std::vector<int> uses_, block_counts_;
  std::optional<SelectGroup> best_;
};

// Operands must have lower ids than their users: inserts a zero constant with the lowest id.
// Returns false if it exists already.
bool MakeZeroFirst(Kernel& kernel) {
  ScalarNode zero{.prim = Prim::kConst, .type = ScalarType::kIndex};
  if (kernel.nodes.front() == zero) return false;
  auto move = [](ValueId& id) {
    if (id != kNoValue) id = ValueId{static_cast<uint32_t>(id) + 1};
  };
  for (ScalarNode& node : kernel.nodes)
    for (ValueId& operand : node.operands) move(operand);
  for (Loop& loop : kernel.loops) move(loop.extent);
  std::vector<StmtList*> open = {&kernel.body};
  while (!open.empty()) {
    StmtList* block = open.back();
    open.pop_back();
    for (Stmt& stmt : *block) {
      for (ValueId* id : {&stmt.condition, &stmt.index, &stmt.value, &stmt.matmul.lhs_index,
                          &stmt.matmul.rhs_index, &stmt.matmul.depth})
        move(*id);
      if (stmt.async != nullptr) {
        AsyncOp moved = *stmt.async;
        for (ValueId* id : {&moved.parity, &moved.copy.to_index, &moved.copy.from_index}) move(*id);
        for (TileCopy::Dimension& dimension : moved.copy.dimensions) move(dimension.at);
        stmt.async = std::make_shared<const AsyncOp>(std::move(moved));
      }
      for (StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
        open.push_back(inner);
    }
  }
  kernel.nodes.insert(kernel.nodes.begin(), zero);
  return true;
}

ValueId Add(Kernel& kernel, const ScalarNode& node) {
  kernel.nodes.push_back(node);
  return ValueId{static_cast<uint32_t>(kernel.nodes.size() - 1)};
}

ArrayId AddRegister(Kernel& kernel, const std::string& name, ScalarType type) {
  ArrayId array{static_cast<uint32_t>(kernel.arrays.size())};
  kernel.arrays.push_back({.name = name + std::to_string(kernel.arrays.size()),
                           .type = type,
                           .space = Space::kRegisters,
                           .size = 1});
  return array;
}

Stmt StoreOf(ArrayId array, ValueId value) {
  Stmt stmt;
  stmt.kind = StmtKind::kStore;
  stmt.array = array;
  stmt.index = ValueId{0};
  stmt.value = value;
  return stmt;
}

// From here on the value is a read of the array.
Stmt ReadInto(Kernel& kernel, ValueId value, ArrayId array) {
  ScalarNode& node = kernel.nodes[static_cast<size_t>(value)];
  node = {.prim = Prim::kRead,
          .type = node.type,
          .operands = {ValueId{0}, kNoValue, kNoValue},
          .bits = static_cast<Bits>(array)};
  Stmt stmt;
  stmt.kind = StmtKind::kRead;
  stmt.value = value;
  return stmt;
}

// Computes values before the branch although only the branch uses them, and passes them in
// registers. Otherwise placement would sink them behind the branch, next to their users.
void HoistAboveBranch(Kernel& kernel, const SelectGroup& group, StmtList& before,
                      StmtList& behind) {
  std::unordered_map<ValueId, ValueId> copies;
  for (ValueId id : group.hoisted) {
    ScalarNode node = kernel.node(id);
    for (ValueId& operand : node.operands)
      if (auto it = copies.find(operand); it != copies.end()) operand = it->second;
    copies[id] = Add(kernel, node);
  }
  std::unordered_set<ValueId> needed;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    ValueId id{static_cast<uint32_t>(i)};
    if (copies.contains(id)) continue;
    for (ValueId operand : kernel.operands(id))
      if (copies.contains(operand)) needed.insert(operand);
  }
  for (ValueId id : group.selects)
    if (ValueId expensive = kernel.node(id).operands[group.expensive]; copies.contains(expensive))
      needed.insert(expensive);
  for (ValueId id : group.hoisted) {
    if (!needed.contains(id)) continue;
    ArrayId array = AddRegister(kernel, "hoisted", kernel.node(id).type);
    before.push_back(StoreOf(array, copies[id]));
    behind.push_back(ReadInto(kernel, id, array));
  }
}

// Whether a statement reads or writes the array.
bool Touches(const Kernel& kernel, const Stmt& stmt, ArrayId array) {
  bool touches = (stmt.kind == StmtKind::kStore && stmt.array == array) ||
                 (stmt.kind == StmtKind::kRead && kernel.node(stmt.value).array() == array);
  for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
    for (const Stmt& part : *inner) touches = touches || Touches(kernel, part, array);
  return touches;
}

bool DependsOn(const Kernel& kernel, ValueId value, const std::unordered_set<ValueId>& on) {
  std::vector<ValueId> open = {value};
  std::unordered_set<ValueId> seen;
  while (!open.empty()) {
    ValueId id = open.back();
    open.pop_back();
    if (on.contains(id)) return true;
    if (!seen.insert(id).second) continue;
    for (ValueId operand : kernel.operands(id)) open.push_back(operand);
  }
  return false;
}

// Moves register stores that follow the statements [begin, end) of a block, but do not depend on
// them, before them, so that their values are computed while those statements wait.
void StoreBeforeBranch(const Kernel& kernel, StmtList& block, size_t begin, size_t end) {
  std::unordered_set<ValueId> late;
  for (size_t i = begin; i < block.size(); ++i) {
    const Stmt& stmt = block[i];
    if (stmt.kind == StmtKind::kRead || stmt.kind == StmtKind::kShuffle) late.insert(stmt.value);
    if (i < end) continue;
    if (stmt.kind != StmtKind::kStore && stmt.kind != StmtKind::kRead) break;
    if (stmt.kind != StmtKind::kStore || kernel.array(stmt.array).space != Space::kRegisters)
      continue;
    auto touches = [&](const Stmt& other) { return Touches(kernel, other, stmt.array); };
    auto first = block.begin() + static_cast<int64_t>(begin);
    auto here = block.begin() + static_cast<int64_t>(i);
    if (std::any_of(first, here, touches) || DependsOn(kernel, stmt.value, late) ||
        DependsOn(kernel, stmt.index, late))
      continue;
    std::rotate(first, here, here + 1);
    ++begin;
    ++end;
  }
}

void Branch(Kernel& kernel, const SelectGroup& group) {
  ValueId condition = group.condition;
  if (group.expensive == 2) {
    ValueId yes = Add(kernel, {.prim = Prim::kConst, .type = ScalarType::kPred, .bits = 1});
    condition = Add(
        kernel,
        {.prim = Prim::kXor, .type = ScalarType::kPred, .operands = {condition, yes, kNoValue}});
  }
  StmtList made, behind, reads;
  HoistAboveBranch(kernel, group, made, behind);
  for (ValueId id : group.selects) {
    ScalarNode node = kernel.node(id);
    ArrayId array = AddRegister(kernel, "chosen", node.type);
    made.push_back(StoreOf(array, node.operands[group.expensive == 1 ? 2 : 1]));
    behind.push_back(StoreOf(array, node.operands[group.expensive]));
    reads.push_back(ReadInto(kernel, id, array));
  }
  Stmt& branch = made.emplace_back();
  branch.kind = StmtKind::kIf;
  branch.condition = condition;
  branch.body = std::move(behind);
  std::ranges::move(reads, std::back_inserter(made));
  size_t end = group.at + made.size();
  group.block->insert(group.block->begin() + static_cast<int64_t>(group.at),
                      std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
  StoreBeforeBranch(kernel, *group.block, group.at, end);
}

void AddValue(Work& work, const Kernel& kernel, size_t value, double lanes,
              const Machine& machine) {
  if (kernel.nodes[value].prim == Prim::kLoad) {
    work[Pipe::kLoad] += 1;
  } else {
    AddPrim(work, kernel, ValueId{static_cast<uint32_t>(value)}, 1, lanes, machine);
  }
}

// Whether the selects of some condition may be worth a branch. Bounds the cost of each value with
// its operands; shared ones count several times.
bool MayBeWorth(const Kernel& kernel, double lanes, double least_ns, const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  std::vector<double> ns(kernel.nodes.size());
  std::unordered_map<ValueId, std::array<double, 2>> by_condition;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (IsOrdered(node.prim)) continue;  // a statement computes it
    Work work;
    AddValue(work, kernel, i, lanes, machine);
    ns[i] = NsOfOps(work, rates);
    for (ValueId operand : kernel.operands(ValueId{static_cast<uint32_t>(i)}))
      ns[i] += ns[static_cast<size_t>(operand)];
    ns[i] = std::min(ns[i], least_ns);
    if (!IsNumberSelect(node) || IsColdCondition(kernel, node.operands[0])) continue;
    std::array<double, 2>& group = by_condition[node.operands[0]];
    for (size_t k : {0, 1}) {
      group[k] += ns[static_cast<size_t>(node.operands[k + 1])];
      if (group[k] >= least_ns) return true;
    }
  }
  return false;
}

// Quick check for every kernel whose cost is estimated: most have no select or too little work.
bool MayHaveSelectGroups(const Kernel& kernel, const Machine& machine) {
  if (std::ranges::none_of(kernel.nodes, IsNumberSelect)) return false;
  double lanes = machine.is_gpu() ? 1 : static_cast<double>(machine.Lanes(32));
  double least_ns = LeastNs(kernel, machine);
  Work work;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) AddValue(work, kernel, i, lanes, machine);
  return NsOfOps(work, RatesOf(machine)) >= least_ns &&
         MayBeWorth(kernel, lanes, least_ns, machine);
}

}  // namespace

void ConvertSelectsToBranches(Kernel& kernel, const Machine& machine) {
  for (int i = 0; i < kMaxSelectBranches && MayHaveSelectGroups(kernel, machine); ++i) {
    std::optional<SelectGroup> group = SelectGroupFinder(kernel, machine).Find();
    if (!group) return;
    if (MakeZeroFirst(kernel)) group = SelectGroupFinder(kernel, machine).Find();
    Branch(kernel, *group);
  }
}

}  // namespace tokamak
