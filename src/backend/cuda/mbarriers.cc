#include "backend/cuda/mbarriers.h"

#include <algorithm>

#include "kernel/cluster.h"

namespace tokamak::cuda {
namespace {

// Threads of a warp (CUDA programming guide).
constexpr int64_t kMbarrierWarp = 32;
// Transaction bytes that one phase of an mbarrier counts (PTX ISA: 2^20 - 1).
constexpr int64_t kMbarrierMaxBytes = (1 << 20) - 1;

// Matches a kernel of two thread loops (blocks of a cluster, threads of a block) around one serial
// loop with barriers.
class BarrierSplitFinder {
 public:
  explicit BarrierSplitFinder(const Kernel& kernel)
      : kernel_(kernel), blocks_(ClusterSizeOf(kernel)) {}

  std::optional<MbarrierPlan> Find() {
    const StmtList* body = FindThreads(&kernel_.body);
    if (blocks_ < 2 || body == nullptr || threads_ % kMbarrierWarp != 0) return std::nullopt;
    for (const Stmt& stmt : *body) {
      if (!TouchesSharedMemory(stmt)) continue;
      bool is_loop = stmt.kind == StmtKind::kFor && found_.bytes.empty() &&
                     kernel_.loop(stmt.loop).role == LoopRole::kSerial;
      if (!is_loop || !AddLoop(stmt)) return std::nullopt;
    }
    if (found_.bytes.empty()) return std::nullopt;
    return std::move(found_);
  }

 private:
  const StmtList* FindThreads(const StmtList* block) {
    int loops = 0;
    while (block->size() == 1 && (*block)[0].kind == StmtKind::kFor) {
      const Loop& loop = kernel_.loop((*block)[0].loop);
      if (loop.role != LoopRole::kGrid && loop.role != LoopRole::kThread) break;
      if (loop.role == LoopRole::kThread) {
        ++loops;
        thread_ = (*block)[0].loop;
        threads_ = IntOfBits(ScalarType::kIndex, kernel_.node(loop.extent).bits);
      }
      block = &(*block)[0].body;
    }
    return loops == 2 ? block : nullptr;
  }

  bool IsSharedArray(ArrayId array) const { return kernel_.array(array).space == Space::kShared; }
  bool Reads(const Stmt& stmt) const {
    return stmt.kind == StmtKind::kRead && IsSharedArray(kernel_.node(stmt.value).array());
  }
  bool Stores(const Stmt& stmt) const {
    return stmt.kind == StmtKind::kStore && IsSharedArray(stmt.array);
  }
  // Whether a statement accesses shared memory or is a block barrier.
  bool TouchesSharedMemory(const Stmt& stmt) const {
    if (Reads(stmt) || Stores(stmt) || stmt.kind == StmtKind::kMatMul) return true;
    if (stmt.kind == StmtKind::kBarrier && stmt.scope == BarrierScope::kBlock) return true;
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      if (std::ranges::any_of(*inner, [&](const Stmt& s) { return TouchesSharedMemory(s); }))
        return true;
    return false;
  }

  bool AddLoop(const Stmt& barrier_loop) {
    found_.loop = barrier_loop.loop;
    Begin();
    for (const Stmt& stmt : barrier_loop.body) {
      if (!TouchesSharedMemory(stmt)) continue;
      if (Reads(stmt)) {
        if (bytes_ > 0) return false;
      } else if (stmt.kind == StmtKind::kBarrier) {
        if (bytes_ == 0 || bytes_ > kMbarrierMaxBytes ||
            std::ranges::find(warps_, false) != warps_.end())
          return false;
        found_.sync_points.emplace(&stmt, found_.bytes.size());
        found_.bytes.push_back(bytes_);
        Begin();
      } else {
        if (!AddStores(stmt)) return false;
        found_.sending.insert(&stmt);
      }
    }
    return bytes_ == 0 && !found_.bytes.empty();
  }

  void Begin() {
    bytes_ = 0;
    warps_.assign(static_cast<size_t>(threads_ / kMbarrierWarp), false);
  }

  // A store, or a conditional whose stores only some of the threads execute.
  bool AddStores(const Stmt& stmt) {
    if (Stores(stmt)) return AddStore(stmt, kNoValue);
    if (stmt.kind != StmtKind::kIf || !stmt.else_body.empty()) return false;
    return std::ranges::all_of(stmt.body, [&](const Stmt& inner) {
      return Stores(inner) ? AddStore(inner, stmt.condition) : !TouchesSharedMemory(inner);
    });
  }

  bool AddStore(const Stmt& stmt, ValueId condition) {
    int64_t bytes = BytesOf(kernel_.array(stmt.array).type);
    if (bytes != 4 && bytes != 8) return false;
    for (int64_t t = 0; t < threads_; ++t) {
      std::optional<int64_t> stores = condition == kNoValue ? 1 : ValueOf(condition, t);
      if (!stores) return false;
      if (*stores == 0) continue;
      bytes_ += bytes * blocks_;
      warps_[static_cast<size_t>(t / kMbarrierWarp)] = true;
    }
    found_.sync_points.emplace(&stmt, found_.bytes.size());
    return true;
  }

  // The value in a thread if it is the same for all blocks and iterations.
  std::optional<int64_t> ValueOf(ValueId id, int64_t thread) const {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kConst) return IntOfBits(node.type, node.bits);
    if (node.prim == Prim::kLoop && node.loop() == thread_) return thread;
    if (node.arity() != 2) return std::nullopt;
    ScalarType type = kernel_.node(node.operands[0]).type;
    if (type != ScalarType::kIndex && type != ScalarType::kPred) return std::nullopt;
    std::optional<int64_t> x = ValueOf(node.operands[0], thread);
    std::optional<int64_t> y = ValueOf(node.operands[1], thread);
    if (!x || !y) return std::nullopt;
    return Computed(node.prim, *x, *y);
  }
  static std::optional<int64_t> Computed(Prim prim, int64_t x, int64_t y) {
    switch (prim) {
      case Prim::kAdd:
        return x + y;
      case Prim::kSub:
        return x - y;
      case Prim::kMul:
        return x * y;
      case Prim::kDiv:
        return y != 0 ? std::optional(x / y) : std::nullopt;
      case Prim::kRem:
        return y != 0 ? std::optional(x % y) : std::nullopt;
      case Prim::kEq:
        return x == y ? 1 : 0;
      case Prim::kNe:
        return x != y ? 1 : 0;
      case Prim::kLt:
        return x < y ? 1 : 0;
      case Prim::kLe:
        return x <= y ? 1 : 0;
      case Prim::kAnd:
        return x & y;
      case Prim::kOr:
        return x | y;
      default:
        return std::nullopt;
    }
  }

  const Kernel& kernel_;
  int64_t blocks_, threads_ = 0;
  LoopId thread_{};
  MbarrierPlan found_;
  int64_t bytes_ = 0;        // since the last sync point
  std::vector<bool> warps_;  // that stored since the last sync point
};

}  // namespace

std::optional<MbarrierPlan> MbarrierPlanOf(const Kernel& kernel) {
  return BarrierSplitFinder(kernel).Find();
}

}  // namespace tokamak::cuda
