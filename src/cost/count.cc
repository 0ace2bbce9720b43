// WorkOf: walks the statements of a kernel and multiplies each by its execution count (`times`, the
// product of the trip counts of the open loops).
//
//   values      operations per pipe; a lane-varying value counts per vector, a uniform one once
//   accesses    pattern across lanes and threads: one, contiguous, strided, anywhere
//   traffic     per access, the open loops that move its index and the contiguous run (reuse.h)
//   chains      the longest recurrence through registers, which bounds a serial loop by latency
//
// Trip counts that depend on data are assumed (kUnknownTripCount); an `if` runs for the fraction of
// iterations that its condition implies (IndexFacts). Values inside a cold path are not counted.
// The result is an estimate for ranking plans, not a bound. Linear in the kernel times the depth of
// its loops.

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>

#include "cost/multiplies.h"
#include "cost/numbers.h"
#include "cost/panel_rates.h"
#include "cost/pipes.h"
#include "cost/rates.h"
#include "cost/reuse.h"
#include "cost/thread_strides.h"
#include "cost/work.h"
#include "kernel/async.h"
#include "kernel/choice.h"
#include "kernel/clamped.h"
#include "kernel/cluster.h"
#include "kernel/cold_paths.h"
#include "kernel/divergence.h"
#include "kernel/gpu_limits.h"
#include "kernel/linear.h"
#include "kernel/placement.h"
#include "kernel/pressure.h"

namespace tokamak {
namespace {

class KernelWorkCounter {
 public:
  KernelWorkCounter(const Kernel& kernel, int64_t grid, const Machine& machine)
      : kernel_(kernel),
        machine_(machine),
        facts_(kernel, grid),
        placement_(kernel),
        cold_paths_(kernel),
        divergence_(kernel) {
    if (machine.has_extremes) skipped_ = InsideExtremes(kernel);
  }

  // Barriers are counted by all threads of all tasks and reported per block.
  Work Count() {
    Walk(kernel_.body, 1);
    AddTraffic(work_, kernel_, accesses_, machine_);
    Pressure pressure = PressureOf(kernel_, placement_);
    work_.registers = pressure.vectors;
    work_.thread_registers = static_cast<double>(pressure.thread_registers);
    if (int blocks_per_sm = MinBlocksPerSm(kernel_); machine_.is_gpu() && blocks_per_sm > 1)
      work_.thread_registers =
          std::min(work_.thread_registers,
                   std::floor(RatesOf(machine_).registers / (blocks_per_sm * work_.threads)));
    for (const Array& array : kernel_.arrays)
      if (array.space == Space::kShared)
        work_.shared_bytes += static_cast<double>(array.size * BytesOf(array.type));
    if (work_.tasks > 0) work_.barriers /= work_.tasks * work_.threads;
    if (int64_t blocks = ClusterSizeOf(kernel_); blocks > 1) AsBlocks(static_cast<double>(blocks));
    return work_;
  }

 private:
  // A cluster: the hardware runs its thread blocks, and a cluster barrier is slower than a block
  // barrier.
  void AsBlocks(double blocks) {
    const Rates& rates = RatesOf(machine_);
    work_.tasks *= blocks;
    work_.threads /= blocks;
    if (rates.barrier_us > 0) work_.barriers *= rates.cluster_us / rates.barrier_us;
  }

  // Length of a dependent chain: float additions, and other operations. others < 0: no chain.
  struct Chain {
    double sums = 0, others = -1;
    double all() const { return sums + others; }
  };
  enum class Pattern : uint8_t { kOne, kNeighbours, kStrided, kAnywhere };
  // Strides (in elements) up to this use vector loads and shuffles: the structure of
  // backend/cpu/emit_memory.cc.
  static constexpr int64_t kMaxStep = 4;
  // Concurrent access streams whose current cache lines all stay in the L1 cache. Chosen: its 8
  // ways, even if the streams map to one set.
  static constexpr double kStreams = 8;
  // GPU: bytes of a memory sector, and of the widest access of a thread (CUDA programming guide).
  static constexpr double kSectorBytes = 32, kVectorBytes = 16;

  void Walk(const StmtList& block, double times) {
    for (size_t i = 0; i <= block.size(); ++i) {
      // Values on a cold path are branched around.
      cold_paths_.Walk(
          placement_.Before(block, i),
          [&](const ColdPaths::ColdPath&) { return lanes_ > 1 || machine_.is_gpu(); },
          [&](ValueId id) { AddValue(id, times); },
          [&](const ColdPaths::ColdPath& path) {
            for (ValueId id : path.selects) AddValue(id, times);
          });
      if (i < block.size()) WalkStmt(block[i], times);
    }
  }

  void WalkStmt(const Stmt& stmt, double times) {
    switch (stmt.kind) {
      case StmtKind::kFor:
        return WalkFor(stmt, times);
      case StmtKind::kIf: {
        // With a lane-divergent condition, the body always runs (masked).
        bool masked = lanes_ > 1 && divergence_.ByLane(stmt.condition);
        double fraction = masked ? 1 : facts_.Fraction(stmt.condition);
        work_[Pipe::kBranch] += times;
        double outer_copying = copying_;
        if (stmt.else_body.empty()) copying_ *= FractionOfWarps(stmt.condition);
        double outer_fillers = fillers_;
        bool fills = FillsPanels(stmt);
        if (fills) {
          work_.takes_turns = TakesTurns(stmt.else_body);
          fillers_ = work_.threads * fraction;
          WalkFiller(stmt.body, times * fraction);
        } else {
          Walk(stmt.body, times * fraction);
        }
        fillers_ = outer_fillers;
        double outer_multipliers = multipliers_;
        if (fills) multipliers_ = work_.threads * (1 - fraction);
        if (!stmt.else_body.empty()) Walk(stmt.else_body, times * (masked ? 1 : 1 - fraction));
        multipliers_ = outer_multipliers;
        copying_ = outer_copying;
        return;
      }
      case StmtKind::kWhile:
        work_[Pipe::kBranch] += times * kUnknownTripCount;
        Walk(stmt.condition_stmts, times * kUnknownTripCount);
        return Walk(stmt.body, times * kUnknownTripCount);
      case StmtKind::kStore:
        AddAccess(stmt.array, stmt.index, true, times);
        return AddChain(stmt, times);
      case StmtKind::kRead:
        return AddAccess(kernel_.node(stmt.value).array(), kernel_.node(stmt.value).operands[0],
                         false, times);
      case StmtKind::kShuffle:
        work_[Pipe::kConvert] += times;
        return;
      case StmtKind::kBarrier:
        if (stmt.scope == BarrierScope::kBlock) work_.barriers += times;
        return;
      case StmtKind::kMatMul:
        return AddProduct(stmt, times);
      case StmtKind::kAsync:
        return AddAsync(stmt, times);
    }
  }

  // As IndexFacts::Fraction, of a condition without the part that chooses a thread of the warp.
  double FractionOfWarps(ValueId condition) {
    const ScalarNode& node = kernel_.node(condition);
    if (node.prim == Prim::kAnd)
      return FractionOfWarps(node.operands[0]) * FractionOfWarps(node.operands[1]);
    return divergence_.ByThread(condition) ? 1 : facts_.Fraction(condition);
  }

  // The operations of threads that fill panels are apart from those of the other ones.
  void WalkFiller(const StmtList& block, double times) {
    Work others;
    std::swap(work_.ops, others.ops);
    Walk(block, times);
    std::swap(work_.ops, others.ops);
    const Rates& rates = RatesOf(machine_);
    if (double simple = rates.ns[static_cast<size_t>(Pipe::kSimple)]; simple > 0)
      work_.panel_ops += NsOfOps(others, rates) / simple;
  }

  // Whether the threads of the first branch load what those of the second one multiply.
  bool FillsPanels(const Stmt& branch) const {
    return uses_async_ && !branch.uniform && HasAsyncMultiply(branch.else_body) &&
           !HasAsyncMultiply(branch.body);
  }
  static bool HasAsyncMultiply(const StmtList& block) {
    return std::ranges::any_of(block, [](const Stmt& stmt) {
      return (stmt.kind == StmtKind::kMatMul && stmt.matmul.async) || HasAsyncMultiply(stmt.body) ||
             HasAsyncMultiply(stmt.else_body);
    });
  }

  void WalkFor(const Stmt& stmt, double times) {
    const Loop& loop = kernel_.loop(stmt.loop);
    double trips = facts_.TripsOf(stmt.loop), outer_lanes = lanes_;
    loops_.push_back({stmt.loop, trips, false});
    if (loop.role == LoopRole::kVector) {
      lanes_ = trips;
    } else {
      if (loop.role == LoopRole::kGrid) work_.tasks *= trips;
      if (loop.role == LoopRole::kThread && !InThread(stmt.loop)) work_.threads *= trips;
      if (loop.role == LoopRole::kSerial) {
        work_[Pipe::kBranch] += times * trips;
        if (uses_async_) AddTiles(stmt, trips);
      }
      times *= trips;
    }
    Walk(stmt.body, times);
    lanes_ = outer_lanes;
    loops_.pop_back();
    auto chain = chains_.find(static_cast<uint32_t>(stmt.loop));
    if (chain == chains_.end()) return;
    work_.chain += chain->second.others;
    work_.sums += chain->second.sums;
  }

  // Records the tiles of a block: the iterations of its outermost loop. Warpgroups that take turns
  // have loops of their own tiles, which depend on the thread.
  void AddTiles(const Stmt& stmt, double trips) {
    ValueId extent = kernel_.loop(stmt.loop).extent;
    for (const ArrayAccess::Around& around : loops_) {
      if (around.loop == stmt.loop) continue;
      LoopRole role = kernel_.loop(around.loop).role;
      if (role == LoopRole::kSerial) return;
      if (role == LoopRole::kThread && facts_.DependsOn(extent, around.loop)) return;
    }
    if (trips <= 0 || !HasAsync(stmt.body)) return;
    double most = facts_.MaxTripsOf(stmt.loop);
    work_.most_tiles = std::max(work_.most_tiles, most);
    work_.imbalance = std::max(work_.imbalance, most / trips);
  }
  static bool HasAsync(const StmtList& block) {
    return std::ranges::any_of(block, [](const Stmt& stmt) {
      return stmt.kind == StmtKind::kAsync || HasAsync(stmt.body) || HasAsync(stmt.else_body);
    });
  }

  // Threads of a block are counted at the first thread loop of each nesting depth.
  bool InThread(LoopId) {
    size_t depth = 0;
    for (const ArrayAccess::Around& around : loops_)
      depth += kernel_.loop(around.loop).role == LoopRole::kThread ? 1 : 0;
    if (depth <= thread_depths_) return true;
    thread_depths_ = depth;
    return false;
  }

  // LinearOf, computed once per value; null if there is none. Stays valid.
  const LinearIndex* Linear(ValueId index) const {
    if (linear_numbers_.empty()) linear_numbers_.resize(kernel_.nodes.size());
    uint32_t& number = linear_numbers_[static_cast<size_t>(index)];
    if (number == 0) {
      linear_.push_back(LinearOf(kernel_, index));
      number = static_cast<uint32_t>(linear_.size());
    }
    const std::optional<LinearIndex>& found = linear_[number - 1];
    return found ? &*found : nullptr;
  }

  bool IsLane(LoopId loop) const { return kernel_.loop(loop).role == LoopRole::kVector; }

  // Access pattern of the lanes; on a GPU also of the threads.
  Pattern PatternOf(ValueId index) const {
    bool by_lane = lanes_ > 1 && divergence_.ByLane(index);
    bool by_thread = machine_.is_gpu() && divergence_.ByThread(index);
    if (!by_lane && !by_thread) return Pattern::kOne;
    const LinearIndex* linear = Linear(index);
    if (linear == nullptr) return Pattern::kAnywhere;
    int64_t step = 1;
    for (const auto& [value, factor] : linear->terms) {
      const ScalarNode& node = kernel_.node(value);
      if (node.prim != Prim::kLoop) {
        if (divergence_.ByLane(value)) return Pattern::kAnywhere;
      } else if (IsLane(node.loop()) && factor != 1) {
        step = factor;
      }
    }
    if (step == 1) return Pattern::kNeighbours;
    bool few = !machine_.is_gpu() && step >= 2 && step <= kMaxStep;
    return few ? Pattern::kStrided : Pattern::kAnywhere;
  }
  // Number of bounds of a contiguous index that is clamped at its ends, which CPUs load under a
  // mask. 0 if the index does not have this form.
  int EndsWithin(ValueId index, double bytes) const {
    if (machine_.is_gpu() || bytes < kMinMaskedBytes) return 0;
    std::optional<ClampedIndex> clamped =
        ClampedOf(kernel_, index, [&](ValueId id) { return divergence_.ByLane(id); });
    if (!clamped || PatternOf(clamped->inner) != Pattern::kNeighbours) return 0;
    return (clamped->low ? 1 : 0) + (clamped->high ? 1 : 0);
  }
  // Per bound: load the boundary element, broadcast it and the lane count, compare and select.
  void AddEnds(int ends, double vectors, double times) {
    constexpr double kIndexOps = 4;  // operations, by the structure of the emitted code
    work_[Pipe::kLoad] += times * ends;
    work_[Pipe::kIndex] += times * ends * kIndexOps;
    work_[Pipe::kSimple] += times * ends * (2 + 2 * vectors);
  }
  // Stride between adjacent lanes, in elements.
  double StepOf(ValueId index) const {
    double step = 0;
    if (const LinearIndex* linear = Linear(index))
      for (const auto& [value, factor] : linear->terms)
        if (kernel_.node(value).prim == Prim::kLoop && IsLane(kernel_.node(value).loop()))
          step += static_cast<double>(factor);
    return step;
  }

  // Number of contiguous elements that the innermost loops access in sequence.
  double RunOf(ValueId index) const {
    const LinearIndex* linear = Linear(index);
    if (linear == nullptr) return 1;
    double run = 1, streams = 1;
    // Lanes advance together, wherever their loop is.
    for (bool lanes : {true, false}) {
      for (size_t i = loops_.size(); i-- > 0;) {
        if (IsLane(loops_[i].loop) != lanes) continue;
        double factor = 0;
        for (const auto& [value, times] : linear->terms)
          factor += static_cast<double>(times) * FactorIn(value, loops_[i].loop);
        double trips = std::max(loops_[i].trips, 1.0);
        if (factor != 0 && factor != run && (lanes || factor < 0 || streams * trips > kStreams))
          return run;
        (factor == run ? run : streams) *= factor == 0 ? 1 : trips;
      }
    }
    return run;
  }
  // The increment of a value per iteration of a loop, ignoring clamping. -1 if it is not linear.
  double FactorIn(ValueId value, LoopId loop) const {
    const ScalarNode& node = kernel_.node(value);
    if (node.prim == Prim::kLoop) return node.loop() == loop ? 1 : 0;
    if (!facts_.DependsOn(value, loop)) return 0;
    if (node.prim != Prim::kMin && node.prim != Prim::kMax) return -1;
    size_t moving = kernel_.IsConstant(node.operands[0]) ? 1 : 0;
    if (!kernel_.IsConstant(node.operands[1 - moving])) return -1;
    const LinearIndex* linear = Linear(node.operands[moving]);
    double factor = 0;
    if (linear)
      for (const auto& [inner, times] : linear->terms)
        factor += static_cast<double>(times) * std::max(FactorIn(inner, loop), 0.0);
    return factor == 0 ? -1 : factor;
  }

  // Whether an element of a register array lives in a register: its index is known when the kernel
  // is compiled. On CPUs the index is linear, because the lanes of a vector are.
  bool IsInRegisters(ArrayId array, ValueId index) const {
    if (kernel_.array(array).space != Space::kRegisters) return false;
    if (machine_.is_gpu()) return IsUnrolled(index);
    const LinearIndex* linear = Linear(index);
    return linear != nullptr && std::ranges::all_of(linear->terms, [&](const auto& term) {
             return kernel_.node(term.first).prim == Prim::kLoop && IsUnrolled(term.first);
           });
  }
  // Whether an index follows from constants and the variables of unrolled loops.
  bool IsUnrolled(ValueId index) const {
    const ScalarNode& node = kernel_.node(index);
    if (node.prim == Prim::kConst) return true;
    if (node.prim == Prim::kLoop) {
      LoopRole role = kernel_.loop(node.loop()).role;
      return role == LoopRole::kVector || role == LoopRole::kUnrolled;
    }
    if (node.arity() == 0 || node.type != ScalarType::kIndex || node.prim == Prim::kLoad ||
        node.prim == Prim::kRead)
      return false;
    return std::ranges::all_of(kernel_.operands(index),
                               [&](ValueId operand) { return IsUnrolled(operand); });
  }

  void AddValue(ValueId id, double times) {
    if (!skipped_.empty() && skipped_[static_cast<size_t>(id)]) return;
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kLoad) return AddAccess(node.array(), node.operands[0], false, times);
    bool by_lane = lanes_ > 1 && divergence_.ByLane(id);
    if (node.type == ScalarType::kIndex) {
      // Folded into the address computation.
      if (by_lane && PatternOf(id) == Pattern::kNeighbours) return;
      bool free = !by_lane && (node.prim == Prim::kAdd || node.prim == Prim::kMul);
      if (free) {
        work_[Pipe::kIndex] += times;
        return;
      }
    }
    double lanes = by_lane ? lanes_ : 1;
    // Vectors occupy whole registers.
    if (by_lane && !machine_.is_gpu())
      lanes = std::max(
          lanes, static_cast<double>(machine_.vector_bits) / std::max(InfoOf(node.type).bits, 32));
    AddPrim(work_, kernel_, id, times, lanes, machine_);
  }

  // Adds the operations of the access and records it for AddTraffic, which sees all accesses of an
  // array together.
  void AddAccess(ArrayId array, ValueId index, bool is_store, double times) {
    const Array& a = kernel_.array(array);
    if (IsInRegisters(array, index)) return;
    if (fillers_ > 0 && a.space == Space::kShared) {
      // Their swizzled rows have no bank conflicts.
      work_.panel_bytes += times * lanes_ * static_cast<double>(BytesOf(a.type));
      bool is_word = lanes_ * static_cast<double>(BytesOf(a.type)) <= kRegisterBytes;
      double moves = is_word ? 1 : lanes_;
      if (!is_store && RatesOf(machine_).latency_ns > 0)
        work_.panel_ops +=
            times * moves * kPanelMoveNs * kIndependentPanelOps / RatesOf(machine_).latency_ns;
      return;
    }
    Pattern pattern = PatternOf(index);
    // Results on their way to copies back, in swizzled rows.
    if (multipliers_ > 0 && is_store && a.space == Space::kShared && pattern == Pattern::kAnywhere)
      pattern = Pattern::kNeighbours;
    ThreadStrides strides;
    if (machine_.is_gpu() && a.space == Space::kArgument)
      if (const LinearIndex* linear = Linear(index))
        strides = ThreadStridesOf(kernel_, *linear, loops_, divergence_);
    auto bytes = static_cast<double>(BytesOf(a.type));
    if (strides.step * bytes >= kSectorBytes && lanes_ * bytes < kVectorBytes)
      pattern = Pattern::kAnywhere;
    bool per_lane = divergence_.PerLane(array) && lanes_ > 1;
    bool reads_anywhere = pattern == Pattern::kAnywhere && !is_store && !per_lane;
    int ends = reads_anywhere ? EndsWithin(index, bytes) : 0;
    if (ends > 0) pattern = Pattern::kNeighbours;
    if (pattern == Pattern::kAnywhere) {
      work_[is_store ? Pipe::kScatter : Pipe::kGather] += times * lanes_;
      AddPanelLoads(a, is_store, times * lanes_);
    } else {
      bool vector = pattern != Pattern::kOne || per_lane;
      double vectors =
          vector ? std::ceil(lanes_ * bytes * 8 / static_cast<double>(machine_.vector_bits)) : 1;
      AddEnds(ends, vectors, times);
      bool strided = pattern == Pattern::kStrided && !per_lane;
      // A strided load also loads the elements in between. A strided store stores its own only.
      if (strided) work_[Pipe::kSimple] += times * vectors * (is_store ? 1 : StepOf(index) - 1);
      if (strided && !is_store) vectors *= StepOf(index);
      work_[is_store ? Pipe::kStore : Pipe::kLoad] += times * vectors;
      AddPanelLoads(a, is_store, times * vectors);
    }
    ArrayAccess access{
        .array = array, .is_store = is_store, .block = 1, .run = RunOf(index), .loops = loops_};
    if (strides.run > 0) access.sector_fraction = std::min(1.0, strides.run * bytes / kSectorBytes);
    for (ArrayAccess::Around& around : access.loops)
      around.moves = facts_.DependsOn(index, around.loop);
    accesses_.push_back(std::move(access));
  }

  void AddPanelLoads(const Array& array, bool is_store, double accesses) {
    if (is_store || array.space != Space::kArgument) return;
    if (fillers_ > 0) work_.panel_loads += accesses / fillers_;
    // Small arrays, such as a bias, stay in the L1 cache.
    bool is_large =
        static_cast<double>(array.size * BytesOf(array.type)) > RatesOf(machine_).l1_bytes;
    if (multipliers_ > 0 && is_large) work_.result_loads += accesses / multipliers_;
  }

  // Copies have traffic only: the bulk copy engine makes them.
  void AddAsync(const Stmt& stmt, double times) {
    const AsyncOp& op = *stmt.async;
    if (op.kind == AsyncKind::kArrive || op.kind == AsyncKind::kWait) work_[Pipe::kLoad] += times;
    if (!HasCopy(op.kind)) return;
    bool is_store = op.kind == AsyncKind::kCopyBack;
    ArrayAccess access{.array = is_store ? op.copy.to : op.copy.from,
                       .is_store = is_store,
                       .block = static_cast<double>(op.copy.Elements()),
                       .run = static_cast<double>(op.copy.dimensions[0].box),
                       .loops = {}};
    // One thread of the block starts the copy, or of each warp that multiplies.
    double copies = copying_;
    for (ArrayAccess::Around around : loops_) {
      if (kernel_.loop(around.loop).role == LoopRole::kThread) {
        if (!is_store && multipliers_ == 0) continue;
        double share = multipliers_ > 0 ? multipliers_ / work_.threads : 1;
        around.trips *= share / static_cast<double>(kWarpSize);
      }
      access.loops.push_back(around);
      copies *= around.trips;
    }
    double bytes =
        copies * access.block * static_cast<double>(BytesOf(kernel_.array(op.copy.to).type));
    work_.panel_bytes += bytes;
    if (!is_store) (multipliers_ > 0 ? work_.result_bytes : work_.copied_bytes) += bytes;
    for (ArrayAccess::Around& around : access.loops)
      for (const TileCopy::Dimension& dimension : op.copy.dimensions)
        around.moves = around.moves || facts_.DependsOn(dimension.at, around.loop);
    accesses_.push_back(std::move(access));
  }

  // A multiply statement of one thread: each operand block is traversed once, accumulators are in
  // memory.
  void AddProduct(const Stmt& stmt, double times) {
    const MatrixMultiply& product = stmt.matmul;
    const Array& lhs = kernel_.array(product.lhs);
    double depth = facts_.Mean(product.depth);
    if (product.async) return AddAsyncMultiply(work_, product, lhs, times * depth);
    if (product.IsBlockWide())
      return AddBlockMultiply(work_, product, lhs.type, times * depth, machine_);
    ScalarType type = lhs.type;
    double rows = static_cast<double>(product.rows), columns = static_cast<double>(product.columns);
    Pipe pipe = BytesOf(type) < 4   ? Pipe::kMultiply16
                : BytesOf(type) > 4 ? Pipe::kMultiply64
                                    : Pipe::kMultiply;
    work_[pipe] += times * rows * columns * depth;
    // Accumulators are loaded from and stored to memory.
    int sum_bits = pipe == Pipe::kMultiply64 ? 64 : 32;
    double sums = times * rows * VectorsOf(columns, sum_bits, machine_);
    if (!product.overwrite) work_[Pipe::kLoad] += sums;
    work_[Pipe::kStore] += sums;
    work_[Pipe::kBranch] += times;
    auto add = [&](ArrayId array, ValueId index, double block, bool is_store) {
      ArrayAccess access{
          .array = array, .is_store = is_store, .block = block, .run = block, .loops = loops_};
      for (ArrayAccess::Around& around : access.loops)
        around.moves = facts_.DependsOn(index, around.loop);
      accesses_.push_back(std::move(access));
    };
    add(product.lhs, product.lhs_index, rows * depth, false);
    add(product.rhs, product.rhs_index, depth * columns, false);
    add(stmt.array, stmt.index, rows * columns, true);
  }

  // A store to registers of a value computed from their old contents (a recurrence): the next
  // iteration depends on it.
  void AddChain(const Stmt& stmt, double times) {
    const Array& array = kernel_.array(stmt.array);
    if (array.space != Space::kRegisters || machine_.is_gpu()) return;
    ++chain_walk_;
    known_chains_.resize(kernel_.nodes.size());
    Chain found = ChainFrom(stmt.value, stmt.array);
    if (found.others < 0) return;
    if (!IsInRegisters(stmt.array, stmt.index)) found.others += 1;  // store-to-load forwarding
    double strided = 1;
    const ArrayAccess::Around* inner = nullptr;
    for (const ArrayAccess::Around& around : loops_) {
      LoopRole role = kernel_.loop(around.loop).role;
      if (role == LoopRole::kVector) continue;
      if (role != LoopRole::kGrid && facts_.DependsOn(stmt.index, around.loop))
        strided *= std::max(around.trips, 1.0);
      if (role == LoopRole::kSerial) inner = &around;
    }
    if (inner == nullptr || found.all() == 0) return;
    Chain& chain =
        chains_.try_emplace(static_cast<uint32_t>(inner->loop), Chain{0, 0}).first->second;
    if (times / strided * found.all() > chain.all())
      chain = {times / strided * found.sums, times / strided * found.others};
  }

  // The longest chain of operations from a read of the array to the value. others < 0 if there is
  // none.
  Chain ChainFrom(ValueId id, ArrayId array, int depth = 0) {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kRead) return node.array() == array ? Chain{0, 0} : Chain{};
    constexpr int kMaxDepth = 200;  // levels of operands (chosen: bounds the recursion)
    if (node.arity() == 0 || node.prim == Prim::kLoad || depth > kMaxDepth) return {};
    KnownChain& known = known_chains_[static_cast<size_t>(id)];
    if (known.walk == chain_walk_) return known.chain;
    Chain most;
    for (ValueId operand : kernel_.operands(id)) {
      Chain chain = ChainFrom(operand, array, depth + 1);
      if (chain.all() > most.all()) most = chain;
    }
    if (most.others >= 0 && node.prim != Prim::kBitcast) {
      bool sum = IsFloat(node.type) && (node.prim == Prim::kAdd || node.prim == Prim::kSub);
      (sum ? most.sums : most.others) += 1;
    }
    known = {most, chain_walk_};
    return most;
  }

  const Kernel& kernel_;
  const Machine& machine_;
  IndexFacts facts_;
  Placement placement_;
  ColdPaths cold_paths_;
  Divergence divergence_;
  // Not computed, because a target instruction covers them; empty: none.
  std::vector<bool> skipped_;
  bool uses_async_ = machine_.is_gpu() && UsesAsync(kernel_);
  double copying_ = 1;      // how often the conditions around a copy hold for its thread
  double fillers_ = 0;      // threads of a block that run the statement and fill panels
  double multipliers_ = 0;  // threads of a block that run it and use asynchronous multiplies
  Work work_;
  // Per value: the number of its entry in linear_, from 1 on; 0: not computed.
  mutable std::vector<uint32_t> linear_numbers_;
  mutable std::deque<std::optional<LinearIndex>> linear_;
  std::vector<ArrayAccess> accesses_;
  std::vector<ArrayAccess::Around> loops_;  // open loops
  std::unordered_map<uint32_t, Chain> chains_;
  struct KnownChain {
    Chain chain;
    uint32_t walk = 0;  // the walk in which it was found
  };
  std::vector<KnownChain> known_chains_;  // per value
  uint32_t chain_walk_ = 0;
  double lanes_ = 1;
  size_t thread_depths_ = 0;
};

}  // namespace

Work WorkOf(const Kernel& kernel, int64_t grid, const Machine& machine) {
  return KernelWorkCounter(kernel, grid, machine).Count();
}

}  // namespace tokamak
