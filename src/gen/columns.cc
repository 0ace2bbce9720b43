// The CPU columns generator: reductions over any dimensions and small dots, plus the elementwise
// code that uses their results. Lanes hold adjacent results, and one lane reduces all elements of a
// result in order:
//
//   for some vectors of results (grid)
//     for the reduced elements (serial)
//       for each vector, for each lane: accumulate
//     for each vector, for each lane: store
//
// So it also handles reductions that must run in order. For a large input several adjacent vectors
// are processed together: the rows of the input are far apart, and a memory access fetches a whole
// cache line and triggers the prefetcher anyway.

#include <algorithm>

#include "gen/column_reductions.h"
#include "gen/dot_dimensions.h"
#include "gen/roots.h"

namespace tokamak {
namespace {

// Input bytes from which several vectors are processed together. Chosen: smaller inputs stay in the
// L2 cache, where short runs cost no bandwidth. Elements per result from which it pays off. Chosen:
// with fewer, initializing and storing the sums dominates. Maximum number of vectors. Chosen: a run
// of up to 1 KiB per row is prefetched by hardware, and the sums stay in the L1 cache. Tasks per
// core that are left to distribute. Chosen: they even out cores of unequal speed.
constexpr int64_t kColumnsLargeInput = 1 << 20, kColumnsLongColumn = 16, kColumnsMostVectors = 16,
                  kColumnsTasksPerCore = 4;

// Operations per reduced element up to which kUnrolledRows or kUnrolledFewRows rows are unrolled,
// and these numbers of rows. Chosen: unrolled rows load and store each sum once per several rows,
// which only pays off while the elements are cheap; more rows would need more registers than there
// are. kMaxUnrolledRows, kColumnsMaxVectors (of results per task) bound the schedules of a tuner.
// kHalvedToOne: half of so many vectors of a row is one, so rows are not unrolled (structure).
constexpr int64_t kHalvedToOne = 2;
constexpr int64_t kLittle = 4, kSome = 16, kUnrolledRows = 8, kUnrolledFewRows = 4,
                  kMaxUnrolledRows = 16, kColumnsMaxVectors = 64;

// A range of adjacent dimensions that one loop covers.
struct Run {
  size_t begin = 0, end = 0;
};

std::vector<Run> RunsOf(const Dims& dimensions) {
  std::vector<Run> runs;
  for (int64_t dimension : dimensions) {
    auto d = static_cast<size_t>(dimension);
    if (!runs.empty() && runs.back().end == d) {
      ++runs.back().end;
    } else {
      runs.push_back({d, d + 1});
    }
  }
  return runs;
}

class ColumnsBuilder {
 public:
  ColumnsBuilder(const FusedRegion& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        b_(name),
        emitter_(b_, region),
        columns_(b_, emitter_, region) {}

  // Sets the schedule; null: the preferred one. Returns why there is no kernel.
  std::string Prepare(const Schedule* requested) {
    ColumnReductions found;
    if (std::string why = AnalyzeColumnReductions(region_, found); !why.empty()) return why;
    if (!found.element_roots.empty())
      return "a root has another number of elements than its reductions";
    reducers_ = std::move(found.reducers);
    dots_ = std::move(found.dots);
    dims_ = std::move(found.dims);
    int64_t results = ProductOf(dims_, 0, dims_.size());
    for (const Instr* instr : region_.instrs)
      if (instr->shape().IsArray() && instr->shape().ElementCount() > results)
        flops_ += instr->info().flops_per_element;
    FindRow();
    lanes_ = MaxLanes();
    vectors_ = VectorsAtATime();
    vectors_per_block_ = VectorsPerBlock(VectorCount());
    if (ReducesSeveralRows())
      unroll_ = flops_ <= kLittle ? kUnrolledRows : flops_ <= kSome ? kUnrolledFewRows : 1;
    return requested == nullptr || *requested == Chosen() ? "" : Change(*requested);
  }

  // A tile is the results of a task, and of each row of them `inner` adjacent ones.
  Schedule Chosen() const {
    return {.kind = GeneratorKind::kColumns,
            .tile_columns = vectors_per_block_ * width(),
            .inner_columns = width(),
            .vector = lanes_,
            .unroll = unroll_,
            .staging = Staging::kMemory};
  }

  BuildOutcome Build(const Schedule* requested) {
    if (std::string why = Prepare(requested); !why.empty()) return {std::nullopt, why};
    int64_t vector_count = VectorCount();
    int64_t grid_size = (vector_count + vectors_per_block_ - 1) / vectors_per_block_;
    b_.For("g", LoopRole::kGrid, b_.Index(grid_size), [&](Scalar g) {
      first_vector_ =
          LesserOf(g * b_.Index(vectors_per_block_), b_.Index(vector_count - vectors_per_block_));
      std::vector<Accumulators> sums;
      for (const Reducer& reducer : reducers_)
        sums.emplace_back(b_, emitter_, reducer, vectors_per_block_ * width());
      if (!sums.empty()) Reduce(sums);
      for (const Instr* dot : dots_) Contract(*dot);
      Finish(sums);
    });
    BuildOutcome outcome = FinishRegionKernel(b_, emitter_, region_, grid_size, false);
    if (outcome.built) outcome.built->schedule = Chosen();
    return outcome;
  }

 private:
  // A row is the last dimension if it is long enough, otherwise as many minor dimensions as needed.
  void FindRow() {
    size_t rank = dims_.size();
    split_ = rank == 0 ? 0 : rank - 1;
    while (split_ > 0 && ProductOf(dims_, split_, rank) < machine_.Lanes(32)) --split_;
    rows_ = ProductOf(dims_, 0, split_);
    row_ = ProductOf(dims_, split_, rank);
  }

  int64_t MaxLanes() const {
    return std::min(kRegistersOfVector * machine_.Lanes(32), FloorPowerOfTwo(row_));
  }
  int64_t VectorCount() const { return rows_ * StepsOfRow(); }
  // Whether one iteration may accumulate several rows of the input.
  bool ReducesSeveralRows() const {
    return vectors_ > 1 && !reducers_.empty() && RunsOf(reducers_[0].reduced_dims).size() == 1;
  }

  // Changes the preferred schedule to another one. Returns why it does not fit.
  std::string Change(const Schedule& to) {
    auto is_power = [](int64_t x) { return FloorPowerOfTwo(x) == x; };
    if (to.staging != Staging::kMemory) return "staging: elements are in memory";
    if (!is_power(to.vector) || to.vector > MaxLanes())
      return "vector: not a power of two up to " + std::to_string(MaxLanes());
    if (to.inner_columns % to.vector != 0 || to.inner_columns > row_)
      return "inner: not a multiple of a vector up to the " + std::to_string(row_) +
             " results of a row";
    lanes_ = to.vector;
    vectors_ = to.inner_columns / lanes_;
    if (vectors_ > 1 && !dots_.empty()) return "inner: one vector for dots";
    vectors_per_block_ = to.tile_columns / to.inner_columns;
    if (to.tile_columns % to.inner_columns != 0 || vectors_per_block_ > VectorCount())
      return "tile: not a multiple of inner up to all results";
    if (to.tile_columns > kColumnsMaxVectors * lanes_)
      return "tile: more than " + std::to_string(kColumnsMaxVectors) + " vectors";
    unroll_ = to.unroll;
    if (unroll_ > (ReducesSeveralRows() ? kMaxUnrolledRows : 1))
      return "unroll: at most " + std::to_string(kMaxUnrolledRows) +
             ", and 1 unless a row has several vectors and one range of dimensions is reduced";
    return "";
  }

  int64_t VectorsAtATime() const {
    if (reducers_.empty() || !dots_.empty()) return 1;
    const Reducer& like = reducers_[0];
    bool along = !like.kept_dims.empty() && like.kept_dims.back() + 1 == like.input().rank();
    int64_t count = ProductOf(dims_, 0, dims_.size());
    if (!along || like.input().ByteSize() < kColumnsLargeInput ||
        like.input().ElementCount() / count < kColumnsLongColumn)
      return 1;
    int64_t vectors = std::min(kColumnsMostVectors, row_ / lanes_);
    auto grid = [&] { return rows_ * ((row_ + vectors * lanes_ - 1) / (vectors * lanes_)); };
    while (vectors > 1 && grid() < kColumnsTasksPerCore * machine_.cores) vectors /= 2;
    // Balance the widths: the last one overlaps the one before and recomputes its results.
    int64_t steps = grid() / rows_ * lanes_;
    return (row_ + steps - 1) / steps;
  }

  // Adjacent results of one row that are computed together.
  int64_t width() const { return vectors_ * lanes_; }
  int64_t StepsOfRow() const { return (row_ + width() - 1) / width(); }

  // Vectors of results per grid iteration. Machines with short vectors need several for
  // instruction-level parallelism (of other rows if rows are short). Cheap reductions need enough
  // independent sums to cover the latency of an addition.
  int64_t VectorsPerBlock(int64_t vector_count) const {
    // Grid iterations per core. Chosen: the last one to finish delays the kernel by at most 1/8.
    // Sums in flight. Chosen: latency (4 cycles) times additions per cycle (2) of CPU cores.
    constexpr int64_t kChunksPerCore = 8, kSums = 8;
    if (vectors_ > 1) return 1;
    int64_t vectors = machine_.HasShortVectors() ? InterleaveFactor(machine_) : 1;
    if (lanes_ >= machine_.Lanes(32) && flops_ <= kLittle && reducers_.size() + dots_.size() == 1)
      vectors = kSums;
    int64_t beside = std::min(vectors * machine_.Lanes(32) / lanes_, vector_count);
    bool is_parallel = vector_count * lanes_ * Depth() >= kMinParallelWork;
    int64_t grid_size = is_parallel ? kChunksPerCore * machine_.cores : 1;
    while (beside > 1 && vector_count / beside < grid_size) beside /= 2;
    if (beside <= 1) return 1;
    // The last iteration overlaps the one before and recomputes its results: take the count, or one
    // more, that overlaps least.
    auto evened = [&](int64_t most) {
      int64_t count = (vector_count + most - 1) / most;
      return (vector_count + count - 1) / count;
    };
    auto all = [&](int64_t some) { return (vector_count + some - 1) / some * some; };
    int64_t even = evened(beside), more = evened(beside + 1);
    return all(more) < all(even) ? more : even;
  }

  // Elements reduced into one result.
  int64_t Depth() const {
    if (!dots_.empty()) return DotDimensions(*dots_[0]).k;
    const Reducer& like = reducers_[0];
    return like.input().ElementCount() / std::max<int64_t>(ProductOf(dims_, 0, dims_.size()), 1);
  }

  // The coordinates of a lane's result.
  Coordinates ResultAt(Scalar lane) {
    auto split = static_cast<int64_t>(split_);
    Coordinates at = Delinearized(b_, row_at_, Dims(dims_.begin(), dims_.begin() + split));
    Coordinates rest = Delinearized(b_, begin_ + lane, Dims(dims_.begin() + split, dims_.end()));
    at.insert(at.end(), rest.begin(), rest.end());
    return at;
  }

  template <typename Body>
  void ForLanes(Body&& body) {
    auto vector = [&](Scalar begin) {
      if (lanes_ == 1) return body(begin);
      b_.For("l", LoopRole::kVector, b_.Index(lanes_), [&](Scalar l) { body(begin + l); });
    };
    auto emit_vector = [&](Scalar p) {
      Scalar here = first_vector_ + p, steps = b_.Index(StepsOfRow()), sums = p * b_.Index(width());
      row_at_ = here / steps;
      begin_ = LesserOf(here % steps * b_.Index(width()), b_.Index(row_ - width())) - sums;
      if (vectors_ == 1) return vector(sums);
      b_.For("v", LoopRole::kSerial, b_.Index(vectors_),
             [&](Scalar v) { vector(sums + v * b_.Index(lanes_)); });
    };
    if (vectors_per_block_ == 1) return emit_vector(b_.Index(0));
    b_.For("p", LoopRole::kUnrolled, b_.Index(vectors_per_block_), emit_vector);
  }

  // Loops over some dimensions of an array; `body` receives their coordinates in order.
  template <typename Body>
  void ForRuns(const std::vector<Run>& runs, const Dims& dims, Coordinates at, Body&& body) {
    if (at.size() == 0 && runs.empty()) return body(at);
    size_t done = 0, next = 0;
    for (; next < runs.size() && done < at.size(); ++next)
      done += runs[next].end - runs[next].begin;
    if (next == runs.size()) return body(at);
    const Run& run = runs[next];
    b_.For("r", LoopRole::kSerial, b_.Index(ProductOf(dims, run.begin, run.end)), [&](Scalar r) {
      Coordinates all = at;
      Coordinates own = Delinearized(b_, r,
                                     Dims(dims.begin() + static_cast<int64_t>(run.begin),
                                          dims.begin() + static_cast<int64_t>(run.end)));
      all.insert(all.end(), own.begin(), own.end());
      ForRuns(runs, dims, all, body);
    });
  }

  void Reduce(std::vector<Accumulators>& sums) {
    const Reducer& like = reducers_[0];
    ForLanes([&](Scalar lane) {
      for (Accumulators& sum : sums) sum.Write(lane, sum.StartValue());
    });
    if (ReducesSeveralRows()) return ReduceRows(sums);
    ForRuns(RunsOf(like.reduced_dims), like.input().dims(), {},
            [&](const Coordinates& reduced) { AccumulateAll(sums, {reduced}); });
  }

  // Accumulates the elements at these coordinates into each lane, in sequence.
  void AccumulateAll(std::vector<Accumulators>& sums,
                     const std::vector<Coordinates>& vector_count) {
    ForLanes([&](Scalar lane) {
      for (const Coordinates& reduced : vector_count) {
        Coordinates at = InputCoordinates(reducers_[0], ResultAt(lane), reduced);
        for (Accumulators& sum : sums) sum.Accumulate(lane, at, {});
      }
    });
  }

  // The sums of many vectors exceed the registers: each is loaded and stored once per few rows.
  void ReduceRows(std::vector<Accumulators>& sums) {
    const int64_t at_once = unroll_;
    const Reducer& like = reducers_[0];
    Run run = RunsOf(like.reduced_dims)[0];
    const Dims& dims = like.input().dims();
    Dims own(dims.begin() + static_cast<int64_t>(run.begin),
             dims.begin() + static_cast<int64_t>(run.end));
    int64_t rows = ProductOf(own, 0, own.size());
    auto accumulate = [&](int64_t first, int64_t times, int64_t count) {
      b_.For("r", LoopRole::kSerial, b_.Index(times), [&](Scalar r) {
        std::vector<Coordinates> vector_count;
        for (int64_t i = 0; i < count; ++i)
          vector_count.push_back(Delinearized(b_, r * b_.Index(count) + b_.Index(first + i), own));
        AccumulateAll(sums, vector_count);
      });
    };
    int64_t whole = rows / at_once;
    if (whole > 0) accumulate(0, whole, at_once);
    if (rows % at_once != 0) accumulate(whole * at_once, rows % at_once, 1);
  }

  void Contract(const Instr& dot) {
    const DotAttrs& attrs = dot.attrs<DotAttrs>();
    const Dims& lhs = dot.operand(0)->shape().dims();
    DotSum sum = columns_.AddSum(dot, vectors_per_block_ * lanes_);
    ForLanes([&](Scalar lane) { columns_.WriteZero(sum, lane); });
    std::vector<Run> runs;  // one run per dimension: lhs and rhs may order them differently
    for (int64_t d : attrs.lhs_contracting)
      runs.push_back({static_cast<size_t>(d), static_cast<size_t>(d) + 1});
    ForRuns(runs, lhs, {}, [&](const Coordinates& contracted) {
      ForLanes([&](Scalar lane) {
        Element before = columns_.Read(sum, lane);
        columns_.AddTerm(sum, lane, ResultAt(lane), contracted, before);
      });
    });
  }

  void Finish(std::vector<Accumulators>& sums) {
    ForLanes([&](Scalar lane) {
      Coordinates at = ResultAt(lane);
      for (Accumulators& sum : sums) columns_.Bind(sum, at, sum.Read(lane));
      columns_.BindDots(at, lane);
      columns_.StoreRoots(at, dims_, row_at_ * b_.Index(row_) + (begin_ + lane));
    });
  }

  const FusedRegion& region_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ColumnEmitter columns_;
  std::vector<Reducer> reducers_;
  std::vector<const Instr*> dots_;
  Dims dims_;
  int64_t flops_ = 0;  // operations per reduced element
  size_t split_ = 0;
  int64_t rows_ = 1, row_ = 1;
  // Lanes of a vector; vectors of a row that are computed together; how many of those a task has;
  // reduced elements per iteration.
  int64_t lanes_ = 1, vectors_ = 1, vectors_per_block_ = 1, unroll_ = 1;
  // begin_: start of the results in the row, minus the index of their first accumulator.
  Scalar first_vector_, row_at_, begin_;
};

}  // namespace

BuildOutcome BuildColumns(const FusedRegion& region, const Schedule* schedule,
                          const Machine& machine, const std::string& name) {
  return ColumnsBuilder(region, machine, name).Build(schedule);
}

std::vector<Schedule> ColumnsSchedules(const FusedRegion& region, const Machine& machine) {
  ColumnsBuilder preferred(region, machine, "probe");
  if (!preferred.Prepare(nullptr).empty()) return {};
  const Schedule first = preferred.Chosen();
  auto with = [&](int64_t vector, int64_t vectors, int64_t at_once, int64_t unroll) {
    Schedule next = first;
    next.vector = vector;
    next.inner_columns = vector * vectors;
    next.tile_columns = next.inner_columns * at_once;
    next.unroll = unroll;
    return next;
  };
  int64_t vector = first.vector, vectors = first.inner_columns / vector,
          at_once = first.tile_columns / first.inner_columns, unroll = first.unroll;
  auto half = [](int64_t x) { return std::max<int64_t>(x / 2, 1); };
  int64_t unroll_of_half = vectors > kHalvedToOne ? unroll : 1;
  std::vector<Schedule> near = {with(vector, vectors, 2 * at_once, unroll),
                                with(vector, vectors, half(at_once), unroll),
                                with(vector, 2 * vectors, half(at_once), unroll),
                                with(vector, half(vectors), at_once, unroll_of_half),
                                with(half(vector), vectors, 2 * at_once, unroll),
                                with(vector, vectors, at_once, 2 * unroll),
                                with(vector, vectors, at_once, half(unroll))};
  return FittingSchedules(first, near, [&](const Schedule& schedule) {
    return ColumnsBuilder(region, machine, "probe").Prepare(&schedule).empty();
  });
}

}  // namespace tokamak
