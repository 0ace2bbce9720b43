#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/independent.h"
#include "gen/element.h"
#include "gen/generator.h"

// Whole-loop kernels: all iterations of a while loop in one kernel. (A "loop kernel", kLoop, is an
// elementwise kernel and has nothing to do with this.)
//
// The iterations are serial: each needs the values of the one before. Parallelism comes from
// dimensions of the carried values along which the computation is independent
// (analysis/independent.h), for example the batch of simulated environments or of an RNN. A point
// is one index of these parallel dimensions, the axes of the loop. A dimension of an array is along
// one of the axes, or every point has the whole dimension (CarryForm::axes). No point reads a value
// of another point:
//
//   for each point p (grid, threads, vector lanes)
//     load the carried values of p into registers
//     for each iteration (serial)
//       compute the next values from those registers, loop-invariant inputs and the counter
//       store row `iteration` of the stacked outputs at p (see below)
//     store the carried values of p
//
// Stacked outputs are the `ys` of a jax.lax.scan, which is a while loop here; not those of the scan
// instruction of scan.h.
//
// This file is the code for one point. The loops over the points depend on the machine:
//   whole_loop.cc, whole_loop_blocked.cc   CPU: points are vector lanes; no synchronization
//   gpu/whole_loop.cc                      GPU: one thread per point, no synchronization; or a
//                                          WholeLoopGroup per point, with warp barriers
//   gpu/whole_loop_distributed.cc          GPU: a thread block, launched as a cluster if it is
//                                          large (kernel/cluster.h), runs several points. Its
//                                          threads own elements of them (WholeLoopMapping) and
//                                          exchange the vectors of dots through shared memory, with
//                                          one block barrier per dot and iteration
//   gpu/whole_loop_tiled.cc                GPU: a thread block runs a tile of points and multiplies
//                                          the vectors of all of them at once (whole_loop_tiles.h)
//
// Synchronization contract. Barriers and shuffles are in the code of dots only (EmitMatVec,
// EmitDistributedMatVec, EmitTileDot), nowhere else in that of a point, except for one block
// barrier before the first iteration with tiles (LoadMatrices). There is no grid barrier. All
// threads of a block reach them in every iteration: the trip count must be known
// (DotsToDistribute), branches compute both sides and select, and threads beyond the last point run
// the last point again without storing (SetStorePredicate). Vectors that are exchanged without
// tiles are double-buffered by the parity of the iteration: a warp that is one iteration ahead
// writes the other half, and cannot be two ahead because of the barrier.

namespace tokamak {

// Elements of carried values that one thread may keep in registers: all of its point or, with a
// WholeLoopMapping, those that it owns. Loops with more are rejected. Chosen, for all machines: a
// GPU thread has at most 255 registers, an f64 or complex element takes two, and the body needs
// some.
inline constexpr int64_t kMaxRegisterElements = 96;

class WholeLoopFrame;
class WholeLoopTiles;
struct WholeLoopTileDot;

// Adjacent threads of a warp that compute the same values redundantly, except for dots. Without a
// WholeLoopMapping they run one point together: each computes some results of a dot, or, if there
// are few results, sums a share of the terms of each, which shuffles combine; results are shared
// through shared memory, with a warp barrier. With a WholeLoopMapping they own the same elements of
// one point, because a warp has more lanes than elements and points to cover.
struct WholeLoopGroup {
  int64_t threads = 1;  // in a group
  int64_t points = 1;   // per thread block; with a WholeLoopMapping see warp_points instead
  Scalar member;        // index of the thread in its group
  // Index of the point in its thread block; with a WholeLoopMapping use the field of that struct.
  Scalar point_in_block;
};

// Distribution of the elements of points over the threads of a block. Carried values of a
// point have `elements_per_point` elements or a multiple of it; a thread owns element `element` of
// one point and those at multiples of `elements_per_point` after it. The lanes of a warp cover
// `warp_elements` adjacent elements of `warp_points` points, so a thread block covers `warp_points`
// points and has elements_per_point / warp_elements warps. Example: elements_per_point = 128 (the
// state of an RNN), warp_elements = 4, warp_points = 2, 32 warps:
//
//   warp w owns elements 4w .. 4w+3 of points 0 and 1
//   lanes        0-3  4-7  8-11  12-15  16-19  20-23  24-27  28-31     8 positions of 4 lanes, each
//   point          0    1     0      1      0      1      0      1     of them a WholeLoopGroup
//   element       4w   4w   4w+1   4w+1   4w+2   4w+2   4w+3   4w+3
//
// Each warp computes the results of the dots for its elements and points, with its columns of the
// weights in registers for all iterations; the operand vectors are exchanged through shared memory.
struct WholeLoopMapping {
  int64_t elements_per_point = 0;              // 0: a thread owns all elements of its point
  int64_t warp_elements = 1, warp_points = 1;  // elements and points that a warp covers
  Scalar element, first_element;               // element of this thread; first element of its warp
  Scalar point_in_block, lane;  // index of the point in the block; lane index in the warp
  Scalar iteration;             // the current iteration (EmitIterations sets it), for the buffers
};

// State shared by the emitters of a loop body and of the loops and branches nested in it.
struct WholeLoopContext {
  KernelBuilder& b;
  const LoopIndependence& independence;
  ElementEmitter& memory_emitter;  // emits loads from memory
  Coordinates point;
  std::string failure;            // the first failure; empty if none
  int64_t register_elements = 0;  // registers in use, in elements
  WholeLoopGroup group = {};      // default: one thread per point
  WholeLoopMapping thread_map = {};
  WholeLoopTiles* tiles = nullptr;           // null: no dots are multiplied in tiles
  Scalar thread = {};                        // with tiles: index of the thread in the block
  std::vector<WholeLoopFrame*> frames = {};  // all that exist, for ClearMemo

  void Fail(const std::string& why) {
    if (failure.empty()) failure = why;
  }
  // The coordinates along the dimensions that are no parallel axis (axes[d] < 0). Fails if the
  // others are those of another point.
  Coordinates InPoint(const std::vector<int>& axes, const Coordinates& at);
  // Drops the memoized values of all frames when the body of a loop or branch closes
  // (ElementEmitter::ClearMemo).
  void ClearMemo();
};

// A dot that is, for each point, the product of a vector and a matrix.
struct WholeLoopMatVec {
  const Instr* dot = nullptr;
  // The axis of each result dimension, or -1. Points into LoopIndependence::dots.
  const std::vector<int>* axes = nullptr;
  size_t vector = 0;               // index of the operand that is the vector
  int64_t terms = 0, results = 0;  // terms of a sum (contracted elements, K); results per point

  Dims ResultDims() const;  // sizes of the result dimensions that are not parallel axes
  // The coordinates of operand `operand` in product `term` of sum `sum`. `term`: linear index over
  // the contracted dimensions. `sum`: linear index of a result of the point, over ResultDims().
  Coordinates CoordinatesOf(KernelBuilder& b, size_t operand, const Coordinates& point, Scalar term,
                            Scalar sum) const;
};
// The dot as a WholeLoopMatVec if it is too large to unroll and small enough for local arrays: the
// kernel then loops over the contracted dimension, with the vector and the sums in local arrays
// (EmitMatVec). `independence`: the analysis of the whole loop.
std::optional<WholeLoopMatVec> LoopedMatVecOf(const LoopIndependence& independence,
                                              const Instr& dot);
// The same for a dot of any size; nullopt if it is not the product of a vector and a matrix.
std::optional<WholeLoopMatVec> MatVecOf(const LoopIndependence& independence, const Instr& dot);
// Whether a dot has so few products that they are unrolled if it can be.
bool IsUnrolledDot(const LoopIndependence& independence, const Instr& dot);
// Why the matrix of a dot differs between points or iterations; empty if it does not.
std::string WhyNotInvariantMatrix(const WholeLoopRegion& region, const WholeLoopMatVec& product);
// Whether a loop body has a nested loop of unknown trip count.
bool HasUnknownLoop(const Computation& computation);
// The dots of the loop and its nested loops that threads can compute together. Empty if the loop or
// a nested one has an unknown trip count: threads of different points could then diverge, and not
// all of them would reach a barrier.
std::vector<WholeLoopMatVec> DotsToDistribute(const WholeLoopRegion& region);

// The elements of an array that belong to a point: its coordinates along the parallel axes, and all
// indices along the other dimensions, row-major. With a WholeLoopMapping, only those of the thread.
class PointElements {
 public:
  PointElements(const WholeLoopContext& context, const Shape& shape, const CarryForm& form);
  int64_t count() const { return count_; }
  bool is_distributed() const { return element_stride_ > 0; }
  Coordinates At(WholeLoopContext& context, int64_t element) const;
  // Returns the element of `values` (one per element of the point) at the coordinates; emits a
  // chain of selects if a coordinate is dynamic. Fails the context if another point or thread owns
  // it.
  Element SelectAt(WholeLoopContext& context, const std::vector<Element>& values,
                   const Coordinates& at) const;

 private:
  Element SelectDistributed(WholeLoopContext& context, const std::vector<Element>& values,
                            const Coordinates& at) const;

  const Shape& shape_;
  const CarryForm& form_;
  int64_t count_ = 1;
  int64_t element_stride_ = 0;  // stride between the elements of a thread; 0: it owns all of them
  Dims own_;  // sizes of the dimensions that are along no axis: the elements of a point
};
// index - WholeLoopMapping::element, if it is a compile-time constant.
std::optional<int64_t> OffsetFromOwnElement(WholeLoopContext& context, Scalar index);

// The carried values of a loop while it runs. The first of these that applies to a carried value:
//   counter      an Induction (analysis/loops.h) in a loop of known trip count: computed from the
//                iteration, no register
//   kInvariant   (CarryForm::kind) supplied by the initial value
//   kStacked     written to memory only (IterationObserver); reading it fails the context
//   kHeld        in registers, one per element that the point (or thread) owns
class CarriedValues {
 public:
  // `initial` supplies the initial values; index i is carried value i.
  CarriedValues(WholeLoopContext& context, const WhileLoop& loop,
                const std::vector<CarryForm>& forms, std::optional<int64_t> trip_count,
                std::shared_ptr<ElementSource> initial);

  // Emits reads of the registers; from here on At returns these values. `iteration` is the loop
  // variable of the open iteration, for the counters; nullopt after the last iteration.
  void ReadRegisters(std::optional<Scalar> iteration);
  Element At(size_t i, const Coordinates& at) const;
  // Whether carried value i is in registers.
  bool InRegisters(size_t i) const { return !registers_[i].empty(); }
  // Whether some carried value in registers is an array that is the same for all points.
  bool HasUniformArray() const;
  const PointElements& ElementsOf(size_t i) const { return own_[i]; }
  void Store(size_t i, const std::vector<Element>& values);

 private:
  // The value of a counter.
  Element CounterValue(size_t i) const;

  WholeLoopContext& context_;
  const std::vector<CarryForm>& forms_;
  std::optional<int64_t> trip_count_;
  std::shared_ptr<ElementSource> initial_;
  // Counters, which are computed from the iteration and need no register.
  std::vector<std::optional<Induction>> counters_;
  std::vector<PointElements> own_;
  std::vector<std::vector<ElementArrays>> registers_;
  std::vector<std::vector<Element>> current_;
  std::optional<Scalar> iteration_;
};

// Emits elements of a computation inside the loop: the body, a branch or a nested body. Some
// instructions are emitted on construction, in the order of the computation: nested loops; dots
// that are distributed (MatVecOf, with a WholeLoopMapping) or looped (LoopedMatVecOf); and
// instructions of these kinds inside branches and calls. All others, among them reductions and
// unrolled dots, are pure values, which At emits.
class WholeLoopFrame {
 public:
  // `parameters` supplies the parameters: index i is parameter i.
  WholeLoopFrame(WholeLoopContext& context, const Computation& computation,
                 std::shared_ptr<ElementSource> parameters);
  ~WholeLoopFrame();
  Element At(const Instr& instr, const Coordinates& at, size_t result_index = 0);
  // The coordinates that a dynamic-update-slice writes for the element `at` of its update.
  Coordinates UpdateDestination(const Instr& update, const Coordinates& at);
  void ClearMemo() { emitter_.ClearMemo(); }

 private:
  // Emits the statements of an instruction, if it has any, and sets the source of its elements,
  // unless emitter_ has code for them.
  void EmitInstr(const Instr& instr);
  // An operand element of the dot, in the accumulator type (WholeLoopMatVec::CoordinatesOf).
  Scalar FactorOf(const WholeLoopMatVec& product, size_t operand, Scalar term, Scalar sum);
  void EmitMatVec(const WholeLoopMatVec& product);
  void EmitDistributedMatVec(const WholeLoopMatVec& product);
  void EmitTileDot(const WholeLoopTileDot& dot);
  void EmitNestedLoop(const Instr& instr);
  void EmitBranches(const Instr& instr);
  std::vector<Element> EmitReduce(const Instr& reduce, const Coordinates& at);
  Element EmitUnrolledDot(const Instr& dot, const Coordinates& at);
  Element ZeroOf(const Instr& instr, size_t result_index);

  WholeLoopContext& context_;
  ElementEmitter emitter_;
  std::vector<std::unique_ptr<WholeLoopFrame>> branches_;
  std::vector<std::unique_ptr<CarriedValues>> loops_;
};

// A callback of EmitIterations, for stores of stacked outputs.
class IterationObserver {
 public:
  virtual ~IterationObserver() = default;
  // Called in the code of the iteration, after its body and before the carried values change.
  virtual void OnIteration(WholeLoopFrame& body) = 0;
};
// A range of iterations of a loop with known trip count.
struct IterationRange {
  Scalar from, count;
};
// Emits the iterations of a loop in sequence: all, or those of `range`. `observer` may be null.
void EmitIterations(WholeLoopContext& context, const WhileLoop& loop,
                    std::optional<int64_t> trip_count, CarriedValues& carried,
                    IterationObserver* observer, const IterationRange* range = nullptr);

// An ElementSource that calls a function (at, index) -> Element.
template <typename Fn>
std::shared_ptr<ElementSource> SourceOf(Fn fn) {
  struct FunctionSource : ElementSource {
    explicit FunctionSource(Fn f) : fn(std::move(f)) {}
    Element At(const Coordinates& at, size_t index) override { return fn(at, index); }
    Fn fn;
  };
  return std::make_shared<FunctionSource>(std::move(fn));
}

// Whether the iterations overwrite a stacked value completely, so that its initial value is dead.
bool IsFullyOverwritten(const WholeLoopRegion& region, size_t carry);
// Whether an iteration may overwrite a row that an earlier iteration stacked. If a point is run
// twice, by overlapping vectors in different tasks, that is a write race: a lagging task would
// overwrite the newer value with an older one. Only one of them may then store (SetStorePredicate).
bool MayOverwriteStackedRows(const WholeLoopRegion& region);

// The kernel of a loop: its arguments, the code for one point, its results.
class WholeLoopKernel : private IterationObserver {
 public:
  WholeLoopKernel(KernelBuilder& b, const WholeLoopRegion& region);
  // Several threads run each point.
  void SetThreadGroup(WholeLoopGroup group) { context_->group = group; }
  // Distributes the elements of a point over threads.
  void SetThreadMapping(const WholeLoopMapping& thread_map) { context_->thread_map = thread_map; }
  // Multiplies dots in tiles. `thread`: index of the thread in the block.
  void SetTiles(WholeLoopTiles& tiles, Scalar thread) {
    context_->tiles = &tiles;
    context_->thread = thread;
  }
  // The condition under which the following points store results. Needed if a point may be run more
  // than once: by the threads beyond the last point, or by the last task, which overlaps the one
  // before it. Without a call every point stores.
  void SetStorePredicate(Scalar predicate) { store_predicate_ = predicate; }
  // Emits all iterations of one point. `stores_uniform`: a pred, true for exactly one point and
  // thread of the kernel, which stores the values that are the same for all points.
  void Run(const Coordinates& point, Scalar stores_uniform);
  // The same in three steps of one kernel: before the first iteration, some iterations, after the
  // last one. From step to step the values of a point are in local arrays, at index `slot` of
  // `slots`.
  void Begin(const Coordinates& point, Scalar slot, int64_t slots);
  void Continue(const Coordinates& point, Scalar slot, Scalar stores_uniform,
                const IterationRange& range);
  void End(const Coordinates& point, Scalar slot, Scalar stores_uniform);
  BuildOutcome Finish(int64_t grid, bool writes_once);

 private:
  struct Output {
    size_t carry;
    ArrayId array;
  };
  // Supplies the values of a point before a step: from the local arrays if the value is cached
  // there, else the initial values, from memory.
  std::shared_ptr<ElementSource> CachedAt(Scalar slot);
  CarriedValues MakeCarriedValues(const Coordinates& point, Scalar stores_uniform,
                                  std::shared_ptr<ElementSource> begin);
  void Cache(CarriedValues& carried, Scalar slot);
  void LoadMatrices();
  void WriteResults(CarriedValues& carried);
  // Stores the rows that an iteration stacks.
  void OnIteration(WholeLoopFrame& body) override;
  // Whether this point stores an array. Points that differ only along axes that the array lacks
  // compute the same elements of it; one of them stores.
  Scalar StorePredicate(const CarryForm& form, const PointElements& own);
  void StoreAt(const Output& output, const Coordinates& at, const Element& value);
  const Shape& ShapeOf(size_t carry) const;

  KernelBuilder& b_;
  const WholeLoopRegion& region_;
  bool overwrites_rows_;     // an iteration may store a stacked row that an earlier one stored
  FusedRegion load_region_;  // region of the emitter for loads
  std::unique_ptr<ElementEmitter> memory_emitter_;
  std::unique_ptr<WholeLoopContext> context_;
  std::vector<Output> outputs_;
  Scalar stores_uniform_, store_predicate_;         // for the current point
  std::vector<std::vector<ElementArrays>> cached_;  // per carried value and element
};

// CPU: a task runs a few iterations for all its points (up to kBlockPoints), in vectors of `lanes`,
// then the next few. The segments of rows that are read and stacked are then long enough for the
// hardware prefetcher. Rejected if the iterations read and stack less than kMinBytes, or too
// little per iteration (whole_loop_blocked.cc); BuildWholeLoop then uses the plain form.
BuildOutcome BuildBlockedWholeLoop(const WholeLoopRegion& region, const Machine& machine,
                                   int64_t lanes, const std::string& name);

}  // namespace tokamak
