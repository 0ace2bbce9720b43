// The GPU columns generator: reductions over any dimensions and small dots, plus the elementwise
// code that uses their results. Adjacent threads have adjacent results, one vector each:
//
//   for each tile of results (a block: x along the results, y along the reduced elements)
//     each thread reduces elements y, y + Y, ... of its results in registers
//     the sums of all y are combined through shared memory with a fixed tree by one thread, which
//     stores the result
//
// Ordered reductions and small dots have one thread per result. Roots with an element for each one
// that is reduced are stored on the way. Where vectors are narrow, a thread has several of a row of
// results, and computes only once for them what depends on the reduced row.

#include <algorithm>

#include "gen/column_reductions.h"
#include "gen/gpu/gpu.h"

namespace tokamak::gpu {
namespace {

// Threads along the results: at most a warp, whose accesses are then contiguous, and at least as
// many as use whole memory sectors: 8 elements of 4 bytes (hardware: 32 bytes).
constexpr int64_t kMaxX = kWarpSize, kMinX = 8;
// Minimum elements that a thread reduces before more threads share a result. Chosen: with fewer,
// the reduction in shared memory costs more than it saves.
constexpr int64_t kMinReducedPerThread = 4;
// Loads in flight, by preference and at most. Chosen: together with the other warps of an SM, four
// cover the memory latency; more take registers from other blocks.
constexpr int64_t kColumnsUnroll = 4, kColumnsMaxUnroll = 16;
// Maximum sums per result. Chosen: one thread adds them up while the others wait.
constexpr int64_t kMaxY = 32;
// Blocks per SM for which narrower vectors and blocks are preferred. Chosen: one block waits at
// barriers or for memory while the other computes.
constexpr int64_t kColumnBlocksPerSm = 2;
// Vectors of a thread, at most. Chosen: as many elements as a 16-byte access has at most.
constexpr int64_t kMaxInner = 8;
// Divides kBlockThreads for blocks whose threads share no result. Chosen: without barriers, smaller
// blocks fill the SMs more evenly.
constexpr int64_t kSmallerBlocks = 2;

class ColumnsBuilder {
 public:
  ColumnsBuilder(const FusedRegion& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        columns_(b_, emitter_, region) {}

  // Sets the schedule; null: the preferred one. Returns why there is no kernel.
  std::string Prepare(const Schedule* requested) {
    if (std::string why = AnalyzeColumnReductions(region_, column_reductions_); !why.empty())
      return why;
    Prefer();
    return requested == nullptr || *requested == Chosen() ? "" : Change(*requested);
  }

  // A tile is the results of a block, and the threads that share each of them.
  Schedule Chosen() const {
    return {.kind = GeneratorKind::kColumns,
            .tile_columns = x_ * inner_ * lanes_,
            .tile_depth = y_,
            .inner_columns = inner_,
            .threads = x_ * y_,
            .vector = lanes_,
            .unroll = unroll_,
            .staging = Staging::kMemory};
  }

  BuildOutcome Build(const Schedule* requested) {
    if (std::string why = Prepare(requested); !why.empty()) return {std::nullopt, why};
    int64_t blocks = results_ / lanes_ / Vectors() * TilesOfRow();
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      auto row = [&](Scalar y) {
        b_.For("x", LoopRole::kThread, b_.Index(x_), [&](Scalar x) {
          block_ = g;
          EmitBlock(x, y);
        });
      };
      if (y_ == 1) return row(b_.Index(0));
      b_.For("y", LoopRole::kThread, b_.Index(y_), row);
    });
    BuildOutcome outcome = FinishBlockKernel(b_, emitter_, region_, blocks);
    if (!outcome.built) return outcome;
    // The last block may visit some elements twice. Results of several threads are stored once.
    bool stores_elements = !column_reductions_.element_roots.empty();
    if (IsExact() || (y_ > 1 && !stores_elements)) FindMayAlias(*outcome.built);
    outcome.built->schedule = Chosen();
    return outcome;
  }

 private:
  // Chooses the preferred schedule.
  void Prefer() {
    results_ = ProductOf(column_reductions_.dims, 0, column_reductions_.dims.size());
    can_reassociate_ =
        column_reductions_.dots.empty() &&
        std::all_of(column_reductions_.reducers.begin(), column_reductions_.reducers.end(),
                    [](const Reducer& reducer) { return reducer.can_reassociate; });
    reduced_count_ = 1;
    bool along_results = false;  // adjacent results read adjacent elements
    if (!column_reductions_.reducers.empty()) {
      const Reducer& like = column_reductions_.reducers[0];
      for (int64_t d : like.reduced_dims) {
        reduced_dims_.push_back(like.input().dim(static_cast<size_t>(d)));
        reduced_count_ *= reduced_dims_.back();
      }
      along_results = !like.kept_dims.empty() && like.kept_dims.back() == like.input().rank() - 1;
    }
    if (can_reassociate_ && along_results)
      widest_ = VectorWidthFor(region_, machine_, column_reductions_.dims.back(),
                               reduced_count_ * results_);
    lanes_ = widest_;
    // If the inputs fit in the cache, vector accesses save little: prefer more threads.
    while (lanes_ > 1 && !ReadsLarge() &&
           results_ / lanes_ < kMinX * kColumnBlocksPerSm * machine_.cores)
      lanes_ /= 2;
    vectors_ = results_ / lanes_;
    length_ = along_results ? column_reductions_.dims.back() : 0;
    if (!can_reassociate_) {
      x_ = BlockSizeFor(vectors_, kBlockThreads, kFewBlockThreads, machine_);
      return;
    }
    x_ = std::min(kMaxX, vectors_);
    while (x_ > kMinX && vectors_ < x_ * kColumnBlocksPerSm * machine_.cores) x_ = CeilDiv(x_, 2);
    y_ = FloorPowerOfTwo(std::clamp<int64_t>(reduced_count_ / kMinReducedPerThread, 1,
                                             std::min(kMaxY, kBlockThreads / x_)));
    if (y_ == 1 && vectors_ > x_) x_ = std::min(kBlockThreads / kSmallerBlocks, vectors_);
    PreferInner();
  }

  // As many vectors as fit into a wide access, where the rows' alignment or many operations make
  // them narrower, while blocks remain.
  void PreferInner() {
    if (length_ == 0 || !ReadsLarge() || lanes_ < widest_) return;
    FusedRegion arrays = region_;
    arrays.instrs.clear();
    int64_t aligned =
        VectorWidthFor(arrays, machine_, FloorPowerOfTwo(length_), reduced_count_ * results_);
    inner_ = std::clamp<int64_t>(aligned / lanes_, 1, kMaxInner);
    while (inner_ > 1 && (length_ / lanes_ < x_ * inner_ ||
                          vectors_ < x_ * inner_ * kColumnBlocksPerSm * machine_.cores))
      inner_ /= 2;
    unroll_ = std::max<int64_t>(kColumnsUnroll / inner_, 1);
  }

  // Changes the preferred schedule to another one. Returns why it does not fit.
  std::string Change(const Schedule& to) {
    auto is_power = [](int64_t x) { return CeilPowerOfTwo(x) == x; };
    if (to.staging != Staging::kMemory) return "staging: elements are in memory";
    if (!is_power(to.vector) || to.vector > widest_)
      return "vector: not a power of two up to " + std::to_string(widest_);
    lanes_ = to.vector;
    vectors_ = results_ / lanes_;
    inner_ = to.inner_columns;
    if (!is_power(inner_) || inner_ > kMaxInner || (inner_ > 1 && length_ == 0))
      return "inner: not a power of two up to " + std::to_string(kMaxInner) +
             ", or elements of a row of results are not adjacent";
    x_ = to.tile_columns / (lanes_ * inner_);
    if (to.tile_columns % (lanes_ * inner_) != 0 || x_ < 1 || x_ > Vectors())
      return "tile: its columns are not a multiple of a vector up to " + std::to_string(results_);
    y_ = to.tile_depth;
    if (!is_power(y_) || y_ > (can_reassociate_ ? kMaxY : 1) || y_ > reduced_count_)
      return "tile: its depth is a power of two up to " + std::to_string(kMaxY) +
             " and to the reduced elements, and 1 for dots and ordered reductions";
    if (to.threads != x_ * y_) return "threads: the tile has " + std::to_string(x_ * y_);
    if (to.threads > kMaxThreadsPerBlock)
      return "threads: at most " + std::to_string(kMaxThreadsPerBlock);
    unroll_ = to.unroll;
    if (unroll_ > kColumnsMaxUnroll) return "unroll: at most " + std::to_string(kColumnsMaxUnroll);
    return SharedBytes() <= kStaticSharedBytes
               ? ""
               : "tile: its sums take more than " + std::to_string(kStaticSharedBytes) +
                     " bytes of shared memory";
  }

  // Of the sums of all threads that share results.
  int64_t SharedBytes() const {
    int64_t bytes = 0;
    for (const Reducer& reducer : column_reductions_.reducers)
      for (size_t i = 0; i < reducer.input_count; ++i) {
        ElementType type = AccumulatorElementType(reducer.type(i));
        bytes += BytesOf(ComputeType(type)) * (IsComplex(type) ? 2 : 1);
      }
    return y_ == 1 ? 0 : bytes * y_ * Width();
  }

  bool ReadsLarge() const {
    return std::any_of(region_.inputs.begin(), region_.inputs.end(), [&](const Instr* input) {
      return input->shape().ElementCount() >= reduced_count_ * results_;
    });
  }

  // ---- indices: with several vectors per thread, tiles are in a row of results, and an index is a
  // column of it; otherwise it is row-major

  int64_t Width() const { return x_ * inner_ * lanes_; }
  // Vectors of a row of results, or of all results.
  int64_t Vectors() const { return inner_ > 1 ? length_ / lanes_ : vectors_; }
  int64_t TilesOfRow() const { return CeilDiv(Vectors(), x_ * inner_); }
  // Whether no block has threads beyond the results.
  bool IsExact() const { return Vectors() % (x_ * inner_) == 0; }

  Coordinates ResultAt(Scalar index) {
    if (inner_ == 1) return Delinearized(b_, index, column_reductions_.dims);
    Dims dims = column_reductions_.dims;
    dims.pop_back();
    Coordinates at = Delinearized(b_, row_, dims);
    at.push_back(index);
    return at;
  }
  Scalar LinearOf(Scalar index) { return inner_ == 1 ? index : row_ * b_.Index(length_) + index; }
  // The number of a thread's vector, which may be beyond the results.
  Scalar NumberOf(Scalar v) {
    Scalar number = begin_ + x_at_;
    return inner_ == 1 ? number : number + v * b_.Index(x_);
  }
  // The index of its first element. Threads beyond the results reduce those of the last ones.
  Scalar FirstOf(Scalar v) {
    return LesserOf(NumberOf(v), b_.Index(Vectors() - 1)) * b_.Index(lanes_);
  }
  template <typename Body>
  void ForVectors(Body&& body) {
    if (inner_ == 1) return body(b_.Index(0));
    b_.For("v", LoopRole::kUnrolled, b_.Index(inner_), body);
  }

  void EmitBlock(Scalar x, Scalar y) {
    x_at_ = x;
    if (inner_ > 1) row_ = block_ / b_.Index(TilesOfRow());
    begin_ = (inner_ == 1 ? block_ : block_ % b_.Index(TilesOfRow())) * b_.Index(x_ * inner_);
    std::vector<Accumulators> sums;
    for (const Reducer& reducer : column_reductions_.reducers)
      sums.emplace_back(b_, emitter_, reducer, inner_ * lanes_);
    if (!sums.empty()) Reduce(sums, y);
    for (const Instr* dot : column_reductions_.dots) Contract(*dot, FirstOf(b_.Index(0)));
    if (!emitter_.failure().empty()) return;
    if (y_ > 1) return JoinAndStore(sums, y);
    ForVectors([&](Scalar v) {
      IfOwn(v, [&] {
        ForLanes(b_, lanes_, [&](Scalar lane) {
          Scalar index = FirstOf(v) + lane;
          Coordinates at = ResultAt(index);
          for (Accumulators& sum : sums) columns_.Bind(sum, at, sum.Read(SumOf(v, lane)));
          columns_.BindDots(at, b_.Index(0));
          StoreRoots(at, LinearOf(index));
        });
      });
    });
  }

  // The accumulator of a vector's lane.
  Scalar SumOf(Scalar v, Scalar lane) { return inner_ == 1 ? lane : v * b_.Index(lanes_) + lane; }

  void StoreRoots(const Coordinates& at, Scalar linear) {
    columns_.StoreRoots(at, column_reductions_.dims, linear, column_reductions_.element_roots);
  }

  // Threads beyond the results must not store elements twice.
  template <typename Body>
  void IfOwn(Scalar v, Body&& body) {
    if (column_reductions_.element_roots.empty() || IsExact()) return body();
    b_.If(NumberOf(v) < b_.Index(Vectors()), body);
  }

  void Reduce(std::vector<Accumulators>& sums, Scalar y) {
    ForVectors([&](Scalar v) {
      ForLanes(b_, lanes_, [&](Scalar lane) {
        for (Accumulators& sum : sums) sum.Write(SumOf(v, lane), sum.StartValue());
      });
    });
    auto accumulate = [&](Scalar step) {
      Scalar number = step * b_.Index(y_) + y;
      b_.If(number < b_.Index(reduced_count_), [&] {
        Coordinates reduced = Delinearized(b_, number, reduced_dims_);
        ForVectors([&](Scalar v) { IfOwn(v, [&] { Accumulate(sums, v, reduced); }); });
      });
    };
    ForSteps(b_, CeilDiv(reduced_count_, y_), unroll_, reduced_count_ / y_ / unroll_, accumulate);
  }

  void Accumulate(std::vector<Accumulators>& sums, Scalar v, const Coordinates& reduced) {
    auto input_at = [&](Scalar index) {
      return InputCoordinates(column_reductions_.reducers[0], ResultAt(index), reduced);
    };
    Scalar first = FirstOf(v);
    ForLanes(b_, lanes_, [&](Scalar lane) {
      Coordinates at = input_at(first + lane);
      for (Accumulators& sum : sums) sum.Accumulate(SumOf(v, lane), at, {});
      for (const ElementRoot& root : column_reductions_.element_roots) StoreValue(root, at);
    });
    for (const ElementRoot& root : column_reductions_.element_roots)
      if (root.root != root.value) StorePadding(root, first, input_at);
  }

  // ---- roots with an element for each one that is reduced

  // Coordinates in the root's value of a reduced element.
  Coordinates ValueCoordinates(const ElementRoot& root, const Coordinates& at) {
    const Dims &dims = column_reductions_.reducers[0].input().dims(),
               &of = root.value->shape().dims();
    return dims == of ? at : Delinearized(b_, Linearized(b_, at, dims), of);
  }

  void StoreValue(const ElementRoot& root, const Coordinates& at) {
    Coordinates here = ValueCoordinates(root, at);
    emitter_.Store(*root.root, 0, here, emitter_.At(*root.value, here));
  }

  // The thread that has the end of a row of elements stores the padding after it.
  template <typename InputAt>
  void StorePadding(const ElementRoot& root, Scalar first, InputAt&& input_at) {
    int64_t length = root.value->shape().dims().back(),
            padding = root.root->shape().dims().back() - length;
    Scalar end = first + b_.Index(lanes_);
    b_.If(end % b_.Index(length) == b_.Index(0), [&] {
      Coordinates here = ValueCoordinates(root, input_at(end - b_.Index(1)));
      b_.For("pad", LoopRole::kUnrolled, b_.Index(padding), [&](Scalar i) {
        here.back() = b_.Index(length) + i;
        emitter_.Store(*root.root, 0, here, emitter_.At(*root.root->operand(1), {}));
      });
    });
  }

  // ---- dots: one thread per result

  void Contract(const Instr& dot, Scalar first) {
    DotSum sum = columns_.AddSum(dot, 1);
    columns_.WriteZero(sum, b_.Index(0));
    Dims dims = IndexMapOf(dot, 0)->IteratedSizes();
    b_.For("k", LoopRole::kSerial, b_.Index(ProductOf(dims, 0, dims.size())), [&](Scalar k) {
      Element before = columns_.Read(sum, b_.Index(0));
      Coordinates contracted = Delinearized(b_, k, dims);
      columns_.AddTerm(sum, b_.Index(0), ResultAt(first), contracted, before);
    });
  }

  // ---- results

  // Sums of all threads in shared memory: for row y, result i of the block is at y * width + i.
  void JoinAndStore(std::vector<Accumulators>& sums, Scalar y) {
    int64_t width = Width();
    std::vector<std::vector<ElementArrays>> shared;
    for (Accumulators& sum : sums) shared.push_back(AddSharedArray(sum.reducer(), y_ * width));
    ForVectors([&](Scalar v) {
      ForLanes(b_, lanes_, [&](Scalar lane) {
        Scalar vector = inner_ == 1 ? x_at_ : v * b_.Index(x_) + x_at_;
        Scalar index = y * b_.Index(width) + vector * b_.Index(lanes_) + lane;
        for (size_t s = 0; s < sums.size(); ++s) {
          std::vector<Element> values = sums[s].Read(SumOf(v, lane));
          for (size_t i = 0; i < values.size(); ++i)
            StoreElement(b_, shared[s][i], index, values[i]);
        }
      });
    });
    b_.Barrier(BarrierScope::kBlock);
    // All threads finish results, in several steps if a block has more results than threads.
    int64_t threads = x_ * y_;
    Scalar number = y * b_.Index(x_) + x_at_;
    int64_t count = inner_ == 1 ? results_ : length_;
    for (int64_t begin = 0; begin < width; begin += threads) {
      Scalar result = number + b_.Index(begin);
      Scalar index = begin_ * b_.Index(lanes_) + result;
      b_.If((result < b_.Index(width)) & (index < b_.Index(count)), [&] {
        Coordinates at = ResultAt(index);
        for (size_t s = 0; s < sums.size(); ++s)
          columns_.Bind(sums[s], at, JoinShared(sums[s], shared[s], result, width));
        StoreRoots(at, LinearOf(index));
      });
    }
  }

  std::vector<ElementArrays> AddSharedArray(const Reducer& reducer, int64_t size) {
    std::vector<ElementArrays> arrays;
    for (size_t i = 0; i < reducer.input_count; ++i) {
      ElementType type = AccumulatorElementType(reducer.type(i));
      arrays.push_back(LocalElements(b_, "sums", type, Space::kShared, size));
    }
    return arrays;
  }

  std::vector<Element> JoinShared(Accumulators& sum, const std::vector<ElementArrays>& shared,
                                  Scalar result, int64_t width) {
    std::vector<std::vector<Element>> all;
    for (int64_t i = 0; i < y_; ++i) {
      std::vector<Element> values;
      for (size_t k = 0; k < shared.size(); ++k) {
        Scalar index = result + b_.Index(i * width);
        values.push_back(ReadElement(b_, shared[k], sum.reducer().type(k), index));
      }
      all.push_back(std::move(values));
    }
    for (size_t half = all.size() / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) all[i] = sum.CombinePair(all[i], all[i + half]);
    return all[0];
  }

  const FusedRegion& region_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ColumnEmitter columns_;
  ColumnReductions column_reductions_;
  Dims reduced_dims_;
  bool can_reassociate_ = false;
  int64_t results_ = 1, reduced_count_ = 1;
  int64_t widest_ = 1;  // lanes of the widest vector that the arrays allow
  int64_t length_ = 0;  // of a row of adjacent results; 0 if adjacent ones read
                        // strided elements
  // Lanes of a vector; vectors of all results, and of a thread; threads along the results and per
  // result; reduced elements of a thread in flight.
  int64_t lanes_ = 1, vectors_ = 1, inner_ = 1, x_ = 1, y_ = 1, unroll_ = kColumnsUnroll;
  // Of a block: its row of results, and the number of its first vector. Of a thread: x.
  Scalar block_, row_, begin_, x_at_;
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
  auto with = [&](int64_t x, int64_t y, int64_t vector, int64_t unroll) {
    Schedule next = first;
    next.tile_columns = x * first.inner_columns * vector;
    next.tile_depth = y;
    next.threads = x * y;
    next.vector = vector;
    next.unroll = unroll;
    return next;
  };
  int64_t vector = first.vector, x = first.tile_columns / (first.inner_columns * vector),
          y = first.tile_depth, unroll = first.unroll;
  auto half = [](int64_t n) { return std::max<int64_t>(n / 2, 1); };
  std::vector<Schedule> near = {with(2 * x, y, vector, unroll),   with(half(x), y, vector, unroll),
                                with(x, 2 * y, vector, unroll),   with(x, half(y), vector, unroll),
                                with(x, y, half(vector), unroll), with(x, y, vector, 2 * unroll),
                                with(x, y, vector, half(unroll))};
  for (int64_t inner : {half(first.inner_columns), 2 * first.inner_columns}) {
    Schedule next = first;
    next.inner_columns = inner;
    next.tile_columns = x * inner * vector;
    near.push_back(next);
  }
  return FittingSchedules(first, near, [&](const Schedule& schedule) {
    return ColumnsBuilder(region, machine, "probe").Prepare(&schedule).empty();
  });
}

}  // namespace tokamak::gpu
