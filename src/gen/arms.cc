#include "gen/arms.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "cost/pipes.h"
#include "cost/rates.h"
#include "kernel/alike.h"
#include "kernel/choice.h"
#include "kernel/placement.h"
#include "kernel/rare.h"
#include "kernel/variance.h"

namespace tokamak {
namespace {

// An arm is worth a branch when one vector of it, or one thread's, takes as long as so many simple
// operations. Nobody knows how often it is taken, a branch whose way was not foreseen takes as long
// as some 50 of them, and what stands behind one does not fill the time in which others wait.
constexpr double kWorthABranch = 192;
// The same on a GPU with so few threads that most of the time nobody has anything to issue: what is
// computed for nothing costs nothing then, and a branch keeps it from being computed meanwhile.
constexpr double kWorthABranchOfFew = 4096;
constexpr double kFewThreads = 256;  // of a multiprocessor
// Values that are looked at, times those of the kernel: selects within selects (a concatenation of
// very many parts) would else be gone through once for each.
constexpr size_t kLooks = 4;
// Branches of a kernel.
constexpr int kArmMostBranches = 16;

// Selects by one condition, in one block, that can all be made before its statement `at`.
struct Arms {
  Block* block = nullptr;
  size_t at = 0;
  ValueId condition = kNoValue;
  std::vector<ValueId> selects = {};
  size_t dear = 1;  // the operand that is computed behind the branch
  double ns = 0;    // what it takes
  // Of what only the branch needs, that which is computed before it all the same, operands first.
  std::vector<ValueId> ahead = {};
};

// Infinitely many when nobody knows.
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

class ArmFinder {
 public:
  ArmFinder(Kernel& kernel, const Machine& machine)
      : kernel_(kernel),
        machine_(machine),
        rates_(RatesOf(machine)),
        placement_(kernel),
        rare_(kernel),
        variance_(kernel),
        alike_(kernel),
        uses_(kernel.nodes.size()),
        places_(kernel.nodes.size()) {
    CountUses(kernel.body);
    bool is_few =
        machine.is_gpu() && ThreadsOf(kernel) <= kFewThreads * static_cast<double>(machine.cores);
    least_ns_ = (is_few ? kWorthABranchOfFew : kWorthABranch) *
                rates_.ns[static_cast<size_t>(Pipe::kSimple)];
  }

  // The dearest arms, if they are worth it.
  std::optional<Arms> Find() {
    Walk(kernel_.body, 1);
    return std::move(best_);
  }

 private:
  void CountUse(ValueId id) {
    if (id != kNoValue) ++uses_[static_cast<size_t>(id)];
  }
  // Values that are computed in several blocks count in each.
  void CountUses(const Block& block) {
    for (size_t i = 0; i <= block.size(); ++i) {
      for (ValueId id : placement_.Before(block, i)) {
        ++places_[static_cast<size_t>(id)];
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
        case StmtKind::kMultiply:
          for (ValueId operand : OperandsOf(stmt)) CountUse(operand);
          break;
        case StmtKind::kBarrier:
          break;
      }
      if (stmt.kind == StmtKind::kWhile) CountUses(stmt.head);
      if (!stmt.body.empty()) CountUses(stmt.body);
      if (!stmt.otherwise.empty()) CountUses(stmt.otherwise);
    }
  }

  // Nothing may stand beside the loops of teams and threads.
  bool HoldsThreads(const Block& block) const {
    return std::any_of(block.begin(), block.end(), [&](const Stmt& stmt) {
      if (stmt.kind != StmtKind::kFor) return false;
      LoopRole role = kernel_.loop(stmt.loop).role;
      return role == LoopRole::kGrid || role == LoopRole::kThread;
    });
  }

  void Walk(Block& block, double lanes) {
    if (!HoldsThreads(block)) Look(block, lanes);
    for (Stmt& stmt : block) {
      double inner = lanes;
      if (stmt.kind == StmtKind::kFor && IsVector(kernel_, kernel_.loop(stmt.loop))) {
        const ScalarNode& extent = kernel_.node(kernel_.loop(stmt.loop).extent);
        inner = static_cast<double>(IntOfBits(extent.type, extent.bits));
      }
      if (stmt.kind == StmtKind::kWhile) Walk(stmt.head, inner);
      if (!stmt.body.empty()) Walk(stmt.body, inner);
      if (!stmt.otherwise.empty()) Walk(stmt.otherwise, inner);
    }
  }

  // Whether it says where an element lies, and nothing of any data or round: parts of a
  // concatenation. Lanes and threads differ for sure, and teams are cut where that pays
  // (gen/cuts.h).
  bool IsOfPlace(ValueId condition) const {
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

  // A select that can be an `if`, of a number that registers hold.
  bool IsCandidate(ValueId id, double lanes) const {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim != Prim::kSelect || node.type == ScalarType::kPred ||
        node.type == ScalarType::kIndex || places_[static_cast<size_t>(id)] != 1)
      return false;
    // Those of rare numbers have branches as it is (kernel/rare.h).
    return (lanes == 1 || variance_.ByLane(id)) && !IsRare(kernel_, node.operands[0]) &&
           !IsOfPlace(node.operands[0]) && !RepeatedChoice(kernel_, id);
  }

  void Look(Block& block, double lanes) {
    // For each value of the block, the statement before which it can be computed at the earliest.
    std::unordered_map<ValueId, size_t> ready;
    auto ready_of = [&](ValueId id) {
      auto it = ready.find(id);
      return it == ready.end() ? 0 : it->second;
    };
    std::vector<Arms> all;
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
    for (const Arms& arms : all)
      for (size_t operand : {1, 2}) Consider(arms, operand, ready, lanes);
  }

  void Consider(Arms arms, size_t operand, const std::unordered_map<ValueId, size_t>& in_block,
                double lanes) {
    arms.dear = operand;
    if (!IsWorth(arms, in_block, lanes)) return;
    DropDependent(arms);
    if (IsWorth(arms, in_block, lanes) && (!best_ || arms.ns > best_->ns)) best_ = std::move(arms);
  }

  bool IsWorth(Arms& arms, const std::unordered_map<ValueId, size_t>& in_block, double lanes) {
    if (looked_at_ > kLooks * kernel_.nodes.size()) return false;
    std::unordered_set<ValueId> own = OwnValues(arms, in_block);
    looked_at_ += own.size();
    std::erase_if(arms.selects,
                  [&](ValueId id) { return !own.contains(kernel_.node(id).operands[arms.dear]); });
    // What all threads compute alike (keys of random numbers) waits for nothing that they decide,
    // and fills the time in which other values wait.
    arms.ahead.clear();
    if (machine_.is_gpu())
      std::ranges::copy_if(own, std::back_inserter(arms.ahead),
                           [&](ValueId id) { return alike_(id); });
    std::ranges::sort(arms.ahead);
    for (ValueId id : arms.ahead) own.erase(id);
    arms.ns = NsOf(own, lanes);
    return arms.ns >= least_ns_;
  }

  // All operands are computed before any of the selects is known.
  void DropDependent(Arms& arms) {
    std::unordered_set<ValueId> late, selects(arms.selects.begin(), arms.selects.end());
    arms.selects.clear();
    for (size_t i = 0; i <= arms.block->size(); ++i)
      for (ValueId id : placement_.Before(*arms.block, i)) {
        bool depends = std::ranges::any_of(kernel_.operands(id),
                                           [&](ValueId operand) { return late.contains(operand); });
        if (!depends && selects.contains(id)) arms.selects.push_back(id);
        if (depends || selects.contains(id)) late.insert(id);
      }
  }

  // Those of the block that nobody needs but these arms.
  std::unordered_set<ValueId> OwnValues(const Arms& arms,
                                        const std::unordered_map<ValueId, size_t>& in_block) const {
    std::unordered_map<ValueId, int> used;
    std::unordered_set<ValueId> own;
    std::vector<ValueId> open;
    auto use = [&](ValueId id) {
      Prim prim = kernel_.node(id).prim;
      bool is_pure = in_block.contains(id) && !IsOrdered(prim);
      if (is_pure && ++used[id] == uses_[static_cast<size_t>(id)]) open.push_back(id);
    };
    for (ValueId id : arms.selects) use(kernel_.node(id).operands[arms.dear]);
    while (!open.empty()) {
      ValueId id = open.back();
      open.pop_back();
      own.insert(id);
      for (ValueId inner : kernel_.operands(id)) use(inner);
    }
    return own;
  }

  // What rare numbers need has a branch of its own.
  double NsOf(std::unordered_set<ValueId> values, double lanes) const {
    lanes = machine_.is_gpu() ? 1 : std::min(lanes, static_cast<double>(machine_.Lanes(32)));
    std::vector<ValueId> ordered(values.begin(), values.end());
    std::ranges::sort(ordered);
    for (const RareArms::Arm& rare : rare_.In(ordered))
      for (ValueId id : rare.values) values.erase(id);
    Work work;
    for (ValueId id : values) {
      if (kernel_.node(id).prim == Prim::kLoad) {
        work[Pipe::kLoad] += 1;
      } else {
        AddPrim(work, kernel_, id, 1, variance_.ByLane(id) ? lanes : 1, machine_);
      }
    }
    return NsOfOps(work, rates_);
  }

  Kernel& kernel_;
  const Machine& machine_;
  const Rates& rates_;
  Placement placement_;
  RareArms rare_;
  Variance variance_;
  Alike alike_;
  double least_ns_ = 0;
  size_t looked_at_ = 0;
  std::vector<int> uses_, places_;  // per value; places: in how many blocks it is computed
  std::optional<Arms> best_;
};

// Operands are older than their users: makes room for a constant that is older than all. False when
// it is there.
bool MakeZeroFirst(Kernel& kernel) {
  ScalarNode zero{.prim = Prim::kConst, .type = ScalarType::kIndex};
  if (kernel.nodes.front() == zero) return false;
  auto move = [](ValueId& id) {
    if (id != kNoValue) id = ValueId{static_cast<uint32_t>(id) + 1};
  };
  for (ScalarNode& node : kernel.nodes)
    for (ValueId& operand : node.operands) move(operand);
  for (Loop& loop : kernel.loops) move(loop.extent);
  std::vector<Block*> open = {&kernel.body};
  while (!open.empty()) {
    Block* block = open.back();
    open.pop_back();
    for (Stmt& stmt : *block) {
      for (ValueId* id : {&stmt.condition, &stmt.index, &stmt.value, &stmt.product.lhs_at,
                          &stmt.product.rhs_at, &stmt.product.depth})
        move(*id);
      for (Block* inner : {&stmt.head, &stmt.body, &stmt.otherwise}) open.push_back(inner);
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

// The value is what the array holds, from here on.
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

// Computes values before the branch that only the branch needs: registers carry them there. They
// would else be placed behind it, next to their users.
void KeepAhead(Kernel& kernel, const Arms& arms, Block& before, Block& behind) {
  std::unordered_map<ValueId, ValueId> copies;
  for (ValueId id : arms.ahead) {
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
  for (ValueId id : arms.selects)
    if (ValueId dear = kernel.node(id).operands[arms.dear]; copies.contains(dear))
      needed.insert(dear);
  for (ValueId id : arms.ahead) {
    if (!needed.contains(id)) continue;
    ArrayId array = AddRegister(kernel, "ahead", kernel.node(id).type);
    before.push_back(StoreOf(array, copies[id]));
    behind.push_back(ReadInto(kernel, id, array));
  }
}

// Whether a block reads or writes the array.
bool Touches(const Kernel& kernel, const Stmt& stmt, ArrayId array) {
  bool touches = (stmt.kind == StmtKind::kStore && stmt.array == array) ||
                 (stmt.kind == StmtKind::kRead && kernel.node(stmt.value).array() == array);
  for (const Block* inner : {&stmt.head, &stmt.body, &stmt.otherwise})
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

// Registers that are set after the statements [begin, end) of a block but need nothing of them are
// set before: what they hold is computed while those wait.
void StoreAhead(const Kernel& kernel, Block& block, size_t begin, size_t end) {
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

void Branch(Kernel& kernel, const Arms& arms) {
  ValueId condition = arms.condition;
  if (arms.dear == 2) {
    ValueId yes = Add(kernel, {.prim = Prim::kConst, .type = ScalarType::kPred, .bits = 1});
    condition = Add(
        kernel,
        {.prim = Prim::kXor, .type = ScalarType::kPred, .operands = {condition, yes, kNoValue}});
  }
  Block made, behind, reads;
  KeepAhead(kernel, arms, made, behind);
  for (ValueId id : arms.selects) {
    ScalarNode node = kernel.node(id);
    ArrayId array = AddRegister(kernel, "chosen", node.type);
    made.push_back(StoreOf(array, node.operands[3 - arms.dear]));
    behind.push_back(StoreOf(array, node.operands[arms.dear]));
    reads.push_back(ReadInto(kernel, id, array));
  }
  Stmt& branch = made.emplace_back();
  branch.kind = StmtKind::kIf;
  branch.condition = condition;
  branch.body = std::move(behind);
  std::ranges::move(reads, std::back_inserter(made));
  size_t end = arms.at + made.size();
  arms.block->insert(arms.block->begin() + static_cast<int64_t>(arms.at),
                     std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
  StoreAhead(kernel, *arms.block, arms.at, end);
}

// Every kernel that is priced comes here: most have no select, or too little to compute in all.
bool MayHoldArms(const Kernel& kernel, const Machine& machine) {
  auto is_select = [](const ScalarNode& node) { return node.prim == Prim::kSelect; };
  if (std::ranges::none_of(kernel.nodes, is_select)) return false;
  double lanes = machine.is_gpu() ? 1 : static_cast<double>(machine.Lanes(32));
  Work work;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (kernel.nodes[i].prim == Prim::kLoad) {
      work[Pipe::kLoad] += 1;
    } else {
      AddPrim(work, kernel, ValueId{static_cast<uint32_t>(i)}, 1, lanes, machine);
    }
  }
  const Rates& rates = RatesOf(machine);
  return NsOfOps(work, rates) >= kWorthABranch * rates.ns[static_cast<size_t>(Pipe::kSimple)];
}

}  // namespace

void BranchAroundArms(Kernel& kernel, const Machine& machine) {
  for (int i = 0; i < kArmMostBranches && MayHoldArms(kernel, machine); ++i) {
    std::optional<Arms> arms = ArmFinder(kernel, machine).Find();
    if (!arms) return;
    if (MakeZeroFirst(kernel)) arms = ArmFinder(kernel, machine).Find();
    Branch(kernel, *arms);
  }
}

}  // namespace tokamak
