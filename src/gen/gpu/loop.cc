// The GPU loop generator: each element of the roots independently. A thread takes a vector of
// adjacent elements, a 16-byte access; adjacent threads take adjacent vectors. If that would not be
// coalesced or aligned for some array, threads take shorter vectors or single elements. A block has
// several vectors per thread, with all loads in flight. Coordinates come from divisions by
// constants, which compile to multiplications. Where rows allow no whole vectors, that is much work
// for each element, and a block takes a part of one row instead.

#include <algorithm>

#include "cost/work.h"
#include "gen/cuts.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/remove_index_clamps.h"
#include "gen/roots.h"
#include "kernel/divergence.h"
#include "kernel/linear.h"

namespace tokamak::gpu {
namespace {

// Vectors per thread, and single elements or short vectors per thread. Chosen: 32 bytes in flight
// of each thread, and 16; more loads in flight take registers. Minimum number of them per SM for
// which a thread processes several. Chosen: 2048 threads per SM, 16 times over, so all SMs stay
// full to the end. kLoopMaxUnroll bounds the schedules of a tuner.
constexpr int64_t kLoopUnroll = 2, kSingleUnroll = 4, kMuchWork = 16 * 2048, kLoopMaxUnroll = 16;

// Code size (kernel values) below which the growth by segments does not matter. Chosen: some 10 KiB
// of instructions (16 bytes each), which fit the instruction cache of an SM.
constexpr size_t kGpuLoopFewNodes = 600;
// Minimum ratio of aligned accesses to others. Chosen: one shifted vector in three costs less than
// scalar accesses everywhere.
constexpr int64_t kAlignedPerOther = 2;
// Minimum ratio of a row to the threads that its last block leaves idle, for blocks of one row
// each. Chosen: idle threads end at once, which costs less than a division in each thread.
constexpr int64_t kRowPerIdle = 8;
// Arrays smaller than this fraction of the elements are read repeatedly and fit in caches. Chosen:
// half still excludes broadcast operands, and includes operands of a concatenate.
constexpr int64_t kSmallArrayDivisor = 2;

bool HasSegments(const FusedRegion& region) {
  return std::any_of(region.instrs.begin(), region.instrs.end(), [](const Instr* instr) {
    return instr->op() == Op::kPad || instr->op() == Op::kConcatenate;
  });
}

// Whether a region consists of elementwise ops, slices and pads, so that all clamps stem from pads.
bool IsStencil(const FusedRegion& region) {
  bool pads = false;
  for (const Instr* instr : region.instrs) {
    Op op = instr->op();
    pads = pads || op == Op::kPad;
    if (!instr->info().Is(kElementwise) && op != Op::kPad && op != Op::kSlice &&
        op != Op::kBroadcast && op != Op::kConstant && op != Op::kIota)
      return false;
  }
  return pads;
}

// Whether the lanes of a loop access each array at one address, or at adjacent addresses starting
// at an aligned one; `nearly`: also next to an aligned address, if most accesses are aligned. Small
// arrays that fit in caches do not count.
class WideAccess {
 public:
  WideAccess(const Kernel& kernel, int64_t lanes, int64_t count)
      : kernel_(kernel), divergence_(kernel), lanes_(lanes), count_(count) {
    Walk(kernel.body);
    for (const ScalarNode& node : kernel.nodes)
      if (node.prim == Prim::kLoad) Look(node.array(), node.operands[0]);
  }
  bool everywhere() const { return everywhere_ && beside_ == 0; }
  bool nearly() const { return everywhere_ && kAlignedPerOther * beside_ <= aligned_; }

 private:
  void Walk(const StmtList& block) {
    for (const Stmt& stmt : block) {
      if (stmt.kind == StmtKind::kStore) Look(stmt.array, stmt.index);
      for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
        Walk(*inner);
    }
  }

  void Look(ArrayId array, ValueId index) {
    if (kernel_.array(array).size < count_ / kSmallArrayDivisor || !divergence_.ByLane(index))
      return;
    std::optional<LinearIndex> linear = LinearOf(kernel_, index);
    int64_t off = linear ? (linear->constant % lanes_ + lanes_) % lanes_ : 0;
    bool wide = linear && (off <= 1 || off == lanes_ - 1);
    for (size_t i = 0; wide && i < linear->terms.size(); ++i) {
      auto [value, factor] = linear->terms[i];
      if (kernel_.node(value).prim == Prim::kLoop && divergence_.ByLane(value)) {
        wide = factor == 1;
      } else {
        int64_t stride = ranges_.Of(kernel_, value).stride % lanes_;
        wide = !divergence_.ByLane(value) && stride * (factor % lanes_) % lanes_ == 0;
      }
    }
    everywhere_ = everywhere_ && wide;
    ++(off == 0 ? aligned_ : beside_);
  }

  const Kernel& kernel_;
  Divergence divergence_;
  RangeTable ranges_;
  int64_t lanes_, count_;
  int64_t aligned_ = 0, beside_ = 0;
  bool everywhere_ = true;
};

// Whether threads divide indices by numbers that are no powers of two.
bool DividesInThreads(const Kernel& kernel) {
  std::vector<bool> varies(kernel.nodes.size());  // within a block
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (node.prim == Prim::kLoop) varies[i] = kernel.loop(node.loop()).role != LoopRole::kGrid;
    for (size_t k = 0; k < static_cast<size_t>(node.arity()); ++k)
      if (varies[static_cast<size_t>(node.operands[k])]) varies[i] = true;
    if (node.prim != Prim::kDiv && node.prim != Prim::kRem) continue;
    const ScalarNode& by = kernel.node(node.operands[1]);
    bool is_shift = by.prim == Prim::kConst && (by.bits & (by.bits - 1)) == 0;
    if (varies[i] && node.type == ScalarType::kIndex && !is_shift) return true;
  }
  return false;
}

class LoopBuilder {
 public:
  // `schedule`: null for the preferred one. Its vector is `lanes`.
  LoopBuilder(const FusedRegion& region, const Schedule* schedule, const Machine& machine,
              int64_t lanes, const std::string& name)
      : region_(region),
        schedule_(schedule),
        machine_(machine),
        lanes_(lanes),
        dims_(DomainOf(*region.roots[0]).dims()),
        b_(name, Dialect::kGpu),
        emitter_(b_, region) {}

  // The linear indices at which the code of an element changes: pad, concatenate.
  std::vector<int64_t> FindCuts() {
    ValueId variable = kNoValue;
    int64_t count = ProductOf(dims_, 0, dims_.size());
    b_.For("i", LoopRole::kGrid, b_.Index(count), [&](Scalar i) {
      variable = i.id();
      StoreRoots(b_, emitter_, region_, Delinearized(b_, i, dims_), i);
    });
    return CutsOf(b_.kernel(), variable, count);
  }

  // Blocks of one row of the last dimension each: what depends on the row alone is computed once,
  // and no thread divides. A reason if rows do not fill blocks.
  BuildOutcome BuildRowBlocks() {
    int64_t rows = dims_.size() < 2 ? 1 : ProductOf(dims_, 0, dims_.size() - 1);
    if (rows == 1 || dims_.back() % lanes_ != 0) return {std::nullopt, "it has no rows"};
    int64_t vectors = dims_.back() / lanes_;
    Threads use = ThreadsFor(rows * vectors);
    auto is_filled = [&] {
      int64_t idle = CeilDiv(vectors, use.of_vectors()) * use.of_vectors() - vectors;
      return idle * kRowPerIdle <= vectors;
    };
    while (schedule_ == nullptr && use.unroll > 1 && !is_filled()) use.unroll /= 2;
    if (!is_filled()) return {std::nullopt, "its rows do not fill blocks"};
    int64_t blocks = CeilDiv(vectors, use.of_vectors());
    b_.For("block", LoopRole::kGrid, b_.Index(rows * blocks), [&](Scalar g) {
      Scalar row = g / b_.Index(blocks), first = g % b_.Index(blocks) * b_.Index(use.of_vectors());
      b_.For("t", LoopRole::kThread, b_.Index(use.threads), [&](Scalar t) {
        auto within_row = [&] {
          ForVectors(use, first, t, [&](Scalar vector) {
            b_.If(vector < b_.Index(vectors), [&] { RowVector(row, vector); });
          });
        };
        if (use.unroll == 1) return within_row();
        // Without conditions, the loads of all vectors are in flight at once.
        auto whole = [&] {
          ForVectors(use, first, t, [&](Scalar vector) { RowVector(row, vector); });
        };
        b_.If(first <= b_.Index(vectors - use.of_vectors()), whole, within_row, /*uniform=*/true);
      });
    });
    return Finished(rows * blocks, use);
  }

  // `cuts`: elements at which a new segment starts.
  BuildOutcome Build(const std::vector<int64_t>& cuts) {
    vectors_ = ProductOf(dims_, 0, dims_.size()) / lanes_;
    for (int64_t cut : AlignedCuts(cuts, lanes_, vectors_ * lanes_)) ends_.push_back(cut / lanes_);
    ends_.push_back(vectors_);
    // The minor dimensions that contain whole vectors.
    split_ = dims_.size();
    row_ = 1;
    while (split_ > 0 && (row_ == 1 || row_ % lanes_ != 0)) row_ *= dims_[--split_];
    Threads use = ThreadsFor(vectors_);
    int64_t grid = CeilDiv(vectors_, use.of_vectors());
    b_.For("block", LoopRole::kGrid, b_.Index(grid), [&](Scalar g) {
      Scalar first = g * b_.Index(use.of_vectors());
      b_.For("t", LoopRole::kThread, b_.Index(use.threads),
             [&](Scalar t) { ForVectors(use, first, t, [&](Scalar vector) { Vector(vector); }); });
    });
    return Finished(grid, use);
  }

 private:
  struct Threads {
    int64_t threads, unroll;  // of a block; vectors of a thread
    int64_t of_vectors() const { return threads * unroll; }
  };
  Threads ThreadsFor(int64_t vectors) const {
    if (schedule_ != nullptr) return {schedule_->threads, schedule_->unroll};
    int64_t count = vectors * lanes_;
    bool is_short = lanes_ < VectorWidthFor(region_, machine_, count, count);
    int64_t unroll = lanes_ == 1 || is_short ? kSingleUnroll : kLoopUnroll;
    if (vectors < machine_.cores * kMuchWork) unroll = 1;
    return {BlockSizeFor(vectors, kBlockThreads, kFewBlockThreads, machine_), unroll};
  }

  // The vectors of a thread, which are `threads` apart; those of the block begin at `first`.
  template <typename Body>
  void ForVectors(const Threads& use, Scalar first, Scalar t, Body&& body) {
    if (use.unroll == 1) return body(first + t);
    b_.For("u", LoopRole::kUnrolled, b_.Index(use.unroll),
           [&](Scalar u) { body(first + u * b_.Index(use.threads) + t); });
  }

  BuildOutcome Finished(int64_t grid, const Threads& use) {
    BuildOutcome outcome = FinishRegionKernel(b_, emitter_, region_, grid, /*writes_once=*/true);
    if (!outcome.built) return outcome;
    FinalizeGpuKernel(outcome.built->kernel);
    outcome.built->schedule = {.kind = GeneratorKind::kLoop,
                               .threads = use.threads,
                               .vector = lanes_,
                               .unroll = use.unroll,
                               .staging = Staging::kMemory};
    return outcome;
  }

  void RowVector(Scalar row, Scalar vector) {
    Coordinates at = Delinearized(b_, row, Dims(dims_.begin(), dims_.end() - 1));
    ForLanes(b_, lanes_, [&](Scalar lane) {
      Coordinates all = at;
      all.push_back(vector * b_.Index(lanes_) + lane);
      StoreRoots(b_, emitter_, region_, all, row * b_.Index(dims_.back()) + all.back());
    });
  }

  // Each segment has its own code, in which range analysis resolves the conditions.
  void Vector(Scalar vector) {
    int64_t begin = 0;
    for (int64_t end : ends_) {
      if (ends_.size() == 1) {
        VectorOf(vector, end);
      } else {
        b_.If(b_.Index(begin) <= vector,
              [&] { VectorOf(GreaterOf(vector, b_.Index(begin)), end); });
      }
      begin = end;
    }
  }

  void VectorOf(Scalar vector, int64_t end) {
    b_.If(vector < b_.Index(end), [&] {
      if (ends_.size() > 1) vector = LesserOf(vector, b_.Index(end - 1));
      Dims outer(dims_.begin(), dims_.begin() + static_cast<int64_t>(split_));
      Dims inner(dims_.begin() + static_cast<int64_t>(split_), dims_.end());
      outer.push_back(row_ / lanes_);
      Coordinates at = Delinearized(b_, vector, outer);
      Scalar first = at.back() * b_.Index(lanes_);
      at.pop_back();
      ForLanes(b_, lanes_, [&](Scalar lane) {
        Coordinates all = at, rest = Delinearized(b_, first + lane, inner);
        all.insert(all.end(), rest.begin(), rest.end());
        StoreRoots(b_, emitter_, region_, all, vector * b_.Index(lanes_) + lane);
      });
    });
  }

  const FusedRegion& region_;
  const Schedule* schedule_;
  const Machine& machine_;
  int64_t lanes_;
  const Dims& dims_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  int64_t vectors_ = 1, row_ = 1;
  std::vector<int64_t> ends_;  // ends of segments, in vectors
  size_t split_ = 0;
};

// Stencils with vector accesses: a thread loads the vectors around its own and a few single
// elements.
BuildOutcome BuildStencil(const FusedRegion& region, const Schedule* schedule,
                          const Machine& machine, int64_t lanes, const std::string& name) {
  std::vector<int64_t> cuts = LoopBuilder(region, schedule, machine, 1, name).FindCuts();
  if (cuts.size() > kMaxCuts) cuts.clear();
  BuildOutcome outcome = LoopBuilder(region, schedule, machine, lanes, name).Build(cuts);
  if (!outcome.built) return outcome;
  std::optional<Kernel> kernel = RemoveIndexClamps(outcome.built->kernel);
  int64_t count = DomainOf(*region.roots[0]).ElementCount();
  if (!kernel || !WideAccess(*kernel, lanes, count).nearly())
    return {std::nullopt, "its accesses are strided"};
  outcome.built->kernel = std::move(*kernel);
  return outcome;
}

// Why the schedule does not fit; empty if it does. `widest`: lanes that the arrays allow.
std::string WhyNotLoopSchedule(const Schedule& to, int64_t widest) {
  auto is_power = [](int64_t x) { return CeilPowerOfTwo(x) == x; };
  if (to.tile_columns != 1 || to.staging != Staging::kMemory)
    return "tile, staging: elements are in memory without tiles";
  if (!is_power(to.vector) || to.vector > widest)
    return "vector: not a power of two up to " + std::to_string(widest);
  if (to.threads > kMaxThreadsPerBlock)
    return "threads: at most " + std::to_string(kMaxThreadsPerBlock);
  return to.unroll <= kLoopMaxUnroll ? "" : "unroll: at most " + std::to_string(kLoopMaxUnroll);
}

BuildOutcome BuildLoop(const FusedRegion& region, const Schedule* schedule, const Machine& machine,
                       const std::string& name) {
  if (!WhyNoLoopKernel(region).empty())
    return schedule == nullptr ? BuildMultiSizeLoop(region, machine, name)
                               : BuildOutcome{std::nullopt, "its roots have several sizes"};
  int64_t count = DomainOf(*region.roots[0]).ElementCount();
  int64_t lanes = VectorWidthFor(region, machine, count, count);
  if (schedule != nullptr) {
    if (std::string why = WhyNotLoopSchedule(*schedule, lanes); !why.empty())
      return {std::nullopt, why};
    lanes = schedule->vector;
  }
  // Rows that are not aligned to whole vectors may be to shorter ones.
  if (IsStencil(region))
    for (int64_t few = lanes; few > 1; few = schedule == nullptr ? few / 2 : 1) {
      BuildOutcome outcome = BuildStencil(region, schedule, machine, few, name);
      if (outcome.built) return outcome;
    }
  BuildOutcome outcome = LoopBuilder(region, schedule, machine, lanes, name).Build({});
  while (outcome.built && lanes > 1 &&
         !WideAccess(outcome.built->kernel, lanes, count).everywhere()) {
    if (schedule != nullptr)
      return {std::nullopt, "vector: smaller, because its accesses are strided"};
    lanes /= 2;
    outcome = LoopBuilder(region, schedule, machine, lanes, name).Build({});
  }
  if (!outcome.built) return outcome;
  std::vector<int64_t> cuts;
  if (HasSegments(region)) cuts = LoopBuilder(region, schedule, machine, lanes, name).FindCuts();
  if (cuts.empty() && DividesInThreads(outcome.built->kernel)) {
    // With whole vectors, several elements share a division.
    if (lanes == VectorWidthFor(region, machine, count, count) && lanes > 1) return outcome;
    BuildOutcome rows = LoopBuilder(region, schedule, machine, lanes, name).BuildRowBlocks();
    if (rows.built && rows.built->may_alias.size() >= outcome.built->may_alias.size()) return rows;
  }
  if (cuts.empty() || cuts.size() > kMaxCuts) return outcome;
  BuildOutcome segments = LoopBuilder(region, schedule, machine, lanes, name).Build(cuts);
  bool longer = segments.built &&
                segments.built->kernel.nodes.size() >
                    std::max(kGpuLoopFewNodes, kMaxGrowth * outcome.built->kernel.nodes.size());
  return segments.built && !longer &&
                 segments.built->may_alias.size() >= outcome.built->may_alias.size()
             ? std::move(segments)
             : std::move(outcome);
}

// Elements of a thread have registers of their own. The schedule with fewer of them, if that is
// cheaper because more threads fit on an SM.
BuildOutcome WithFewerRegisters(BuildOutcome outcome, const FusedRegion& region,
                                const Machine& machine, const std::string& name) {
  // Registers of a thread. Chosen: two blocks of kBlockThreads threads have as many.
  constexpr double kManyRegisters = 128;
  auto work_of = [&](const BuildOutcome& of) {
    return WorkOf(of.built->kernel, of.built->grid, machine);
  };
  Work work = work_of(outcome);
  double us = EstimateCost(work, machine).total();
  while (work.thread_registers > kManyRegisters) {
    Schedule next = *outcome.built->schedule;
    if (next.unroll == 1 && next.vector == 1) break;
    (next.unroll > 1 ? next.unroll : next.vector) /= 2;
    BuildOutcome fewer = BuildLoop(region, &next, machine, name);
    if (!fewer.built || fewer.built->may_alias.size() < outcome.built->may_alias.size()) break;
    work = work_of(fewer);
    double fewer_us = EstimateCost(work, machine).total();
    if (fewer_us >= us) break;
    us = fewer_us;
    outcome = std::move(fewer);
  }
  return outcome;
}

}  // namespace

BuildOutcome BuildElementwise(const FusedRegion& region, const Schedule* schedule,
                              const Machine& machine, const std::string& name) {
  BuildOutcome outcome = BuildLoop(region, schedule, machine, name);
  if (schedule != nullptr || !outcome.built || !outcome.built->schedule) return outcome;
  return WithFewerRegisters(std::move(outcome), region, machine, name);
}

std::vector<Schedule> LoopSchedules(const FusedRegion& region, const Machine& machine) {
  std::vector<Schedule> all;
  if (BuildOutcome tiled = gpu::BuildTranspose(region, nullptr, machine, "probe"); tiled.built) {
    all.push_back(*tiled.built->schedule);
    if (all[0].vector > 1) {
      all.push_back(all[0]);
      all.back().vector = 1;
    }
  }
  BuildOutcome preferred = gpu::BuildElementwise(region, nullptr, machine, "probe");
  if (!preferred.built || !preferred.built->schedule) return all;
  const Schedule first = *preferred.built->schedule;
  all.push_back(first);
  auto change = [&](int64_t threads, int64_t vector, int64_t unroll) {
    Schedule next = first;
    next.threads = threads;
    next.vector = vector;
    next.unroll = unroll;
    if (std::find(all.begin(), all.end(), next) == all.end() &&
        WhyNotLoopSchedule(next, first.vector).empty())
      all.push_back(next);
  };
  change(2 * first.threads, first.vector, first.unroll);
  change(std::max<int64_t>(first.threads / 2, 1), first.vector, first.unroll);
  change(first.threads, std::max<int64_t>(first.vector / 2, 1), first.unroll);
  change(first.threads, first.vector, 2 * first.unroll);
  change(first.threads, first.vector, std::max<int64_t>(first.unroll / 2, 1));
  return all;
}

}  // namespace tokamak::gpu
