#include "gen/gpu/prefetch_loads.h"

#include <algorithm>
#include <unordered_map>

#include "kernel/placement.h"
#include "kernel/range.h"

namespace tokamak::gpu {
namespace {

// Registers per thread for prefetched loads. Chosen: an eighth of the 255 that a thread can have,
// so prefetching seldom lowers the occupancy much.
constexpr size_t kMaxPrefetched = 32;

// A loop with known trip count and a block barrier in its body.
struct LoopWithBarrier {
  StmtList* around = nullptr;
  size_t at = 0;  // index in `around`
  int64_t count = 0;
};

int64_t NumberOf(const Kernel& kernel, ValueId id) {
  return IntOfBits(ScalarType::kIndex, kernel.node(id).bits);
}

bool HasBarrier(const Stmt& stmt) {
  return stmt.kind == StmtKind::kBarrier && stmt.scope == BarrierScope::kBlock;
}

LoopWithBarrier FindLoopWithBarrier(const Kernel& kernel, StmtList& block) {
  for (size_t i = 0; i < block.size(); ++i) {
    if (block[i].kind != StmtKind::kFor) continue;
    const Loop& loop = kernel.loop(block[i].loop);
    bool is_serial = loop.role == LoopRole::kSerial && kernel.IsConstant(loop.extent);
    if (is_serial && std::ranges::any_of(block[i].body, HasBarrier))
      return {&block, i, NumberOf(kernel, loop.extent)};
    if (LoopWithBarrier found = FindLoopWithBarrier(kernel, block[i].body); found.around != nullptr)
      return found;
  }
  return {};
}

class Loads {
 public:
  Loads(Kernel& kernel, const LoopWithBarrier& barrier_loop)
      : kernel_(kernel),
        barrier_loop_(barrier_loop),
        loop_((*barrier_loop.around)[barrier_loop.at].loop) {}

  void Move() {
    Find();
    if (found_.empty()) return;
    ValueId zero = Constant(0);
    ValueId iteration = Add({.prim = Prim::kLoop, .bits = static_cast<Bits>(loop_)});
    ValueId next = Add({.prim = Prim::kAdd, .operands = {iteration, Constant(1), kNoValue}});
    ValueId last = Constant(barrier_loop_.count - 1);
    next = Add({.prim = Prim::kMin, .operands = {next, last, kNoValue}});
    std::unordered_map<ValueId, ValueId> at_first, at_next;
    StmtList before, reads, prefetched;
    for (ValueId load : found_) {
      ArrayId held{static_cast<uint32_t>(kernel_.arrays.size())};
      kernel_.arrays.push_back({.name = "ahead",
                                .type = kernel_.node(load).type,
                                .space = Space::kRegisters,
                                .size = 1});
      before.push_back(StoreTo(held, zero, Moved(load, zero, at_first)));
      prefetched.push_back(StoreTo(held, zero, Moved(load, next, at_next)));
      made_.emplace_back(load, held);
      Stmt& read = reads.emplace_back();
      read.kind = StmtKind::kRead;
      read.value = load;
    }
    // The load becomes a read of its register; its users do not change.
    for (auto [load, held] : made_) {
      ScalarNode& node = kernel_.nodes[static_cast<size_t>(load)];
      node = {.prim = Prim::kRead,
              .type = node.type,
              .operands = {zero_, kNoValue, kNoValue},
              .bits = static_cast<Bits>(held)};
    }
    StmtList& body = (*barrier_loop_.around)[barrier_loop_.at].body;
    auto barrier = std::ranges::find_if(body, HasBarrier);
    barrier = body.insert(barrier, prefetched.begin(), prefetched.end());
    body.insert(body.begin(), reads.begin(), reads.end());
    barrier_loop_.around->insert(
        barrier_loop_.around->begin() + static_cast<ptrdiff_t>(barrier_loop_.at), before.begin(),
        before.end());
  }

 private:
  // Finds loads that every iteration executes and that are in bounds in all iterations.
  void Find() {
    Placement placement(kernel_);
    RangeTable ranges;
    const StmtList& body = (*barrier_loop_.around)[barrier_loop_.at].body;
    for (size_t i = 0; i < kernel_.nodes.size() && zero_ == kNoValue; ++i)
      if (kernel_.nodes[i] == ScalarNode{.prim = Prim::kConst, .type = ScalarType::kIndex})
        zero_ = ValueId{static_cast<uint32_t>(i)};
    for (size_t i = 0; i <= body.size(); ++i) {
      for (ValueId id : placement.Before(body, i)) {
        const ScalarNode& node = kernel_.node(id);
        if (node.prim != Prim::kLoad || id < zero_ || !IsKnown(node.operands[0])) continue;
        Range range = ranges.Of(kernel_, node.operands[0]);
        if (range.low < 0 || range.high >= kernel_.array(node.array()).size) continue;
        if (found_.size() < kMaxPrefetched) found_.push_back(id);
      }
    }
  }
  // Whether a value depends on loop variables and constants only.
  bool IsKnown(ValueId id) {
    auto [at, is_new] = known_.emplace(id, false);
    if (!is_new) return at->second;
    Prim prim = kernel_.node(id).prim;
    bool known = prim != Prim::kLoad && prim != Prim::kRead && prim != Prim::kShuffle &&
                 prim != Prim::kMatch;
    for (ValueId operand : kernel_.operands(id)) known = known && IsKnown(operand);
    return known_[id] = known;
  }
  ValueId Add(ScalarNode node, ScalarType type = ScalarType::kIndex) {
    node.type = type;
    kernel_.nodes.push_back(node);
    return ValueId{static_cast<uint32_t>(kernel_.nodes.size() - 1)};
  }
  ValueId Constant(int64_t number) {
    return Add({.prim = Prim::kConst, .bits = static_cast<Bits>(number)});
  }
  // The same value for another iteration.
  ValueId Moved(ValueId id, ValueId iteration, std::unordered_map<ValueId, ValueId>& moved) {
    ScalarNode node = kernel_.node(id);
    if (node.prim == Prim::kLoop) return node.loop() == loop_ ? iteration : id;
    if (node.arity() == 0) return id;
    if (auto at = moved.find(id); at != moved.end()) return at->second;
    for (int i = 0; i < node.arity(); ++i)
      node.operands[static_cast<size_t>(i)] =
          Moved(node.operands[static_cast<size_t>(i)], iteration, moved);
    return moved[id] = Add(node, node.type);
  }
  static Stmt StoreTo(ArrayId array, ValueId index, ValueId value) {
    Stmt store;
    store.kind = StmtKind::kStore;
    store.array = array;
    store.index = index;
    store.value = value;
    return store;
  }

  Kernel& kernel_;
  LoopWithBarrier barrier_loop_;
  LoopId loop_;
  ValueId zero_ = kNoValue;  // a zero constant with a lower id than the loads
  std::vector<ValueId> found_;
  std::vector<std::pair<ValueId, ArrayId>> made_;
  std::unordered_map<ValueId, bool> known_;
};

}  // namespace

void PrefetchLoads(Kernel& kernel) {
  LoopWithBarrier barrier_loop = FindLoopWithBarrier(kernel, kernel.body);
  if (barrier_loop.around != nullptr && barrier_loop.count > 1) Loads(kernel, barrier_loop).Move();
}

}  // namespace tokamak::gpu
