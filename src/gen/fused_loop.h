#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/independent.h"
#include "gen/element.h"
#include "gen/generator.h"

// Whole-loop kernels: all iterations of a while loop in one kernel.
//
// The loop's iterations are independent along some dimensions (analysis/independent.h), for example
// along the batch of a simulated environment or of an RNN. Each point of these parallel dimensions
// runs all iterations without communication:
//
//   for each point p (grid, threads, vector lanes)
//     load the carried values of p into registers
//     for each iteration (serial)
//       compute the next values from those registers, loop-invariant inputs and the counter
//       store row `iteration` of stacked outputs (scan outputs) at p
//     store the carried values of p
//
// This file is the code for one point. The loops over the points depend on the machine:
// fused_loop.cc (CPU), gpu/fused_loop.cc and gpu/fused_loop_distributed.cc (GPU, several threads
// per point).

namespace tokamak {

// Elements per point that a kernel may keep in registers. Chosen: GPU threads have at most 255
// registers, and the body needs some.
inline constexpr int64_t kMostHeld = 96;

class FusedLoopFrame;

// Threads of a warp that run the iterations of one point together. They distribute the terms of dot
// products; each of them computes everything else redundantly.
struct FusedLoopGroup {
  int64_t threads = 1;  // per point
  int64_t points = 1;   // per block
  Scalar member, slot;  // index of the thread in its group; index of the point in its block
};

// Distribution of the elements of points over the threads of a block. Carried values of a point
// have `elements` elements or a multiple of it; a thread owns element `element` and those at
// multiples of `elements` after it. Warps compute the dot products for the elements of their
// threads; the operands are exchanged through shared memory. The lanes of a warp cover `units`
// adjacent elements of `rows` points. If several lanes own the same element, they are a
// FusedLoopGroup.
struct FusedLoopMapping {
  int64_t elements = 0;  // 0: a thread owns all elements of its point
  int64_t units = 1, rows = 1;
  Scalar element, first_element;  // element of this thread; first element of its warp
  Scalar row, lane;               // index of the point in the block; lane index in the warp
  Scalar iteration;
};

// State shared by the emitters of a loop body and of the loops nested in it.
struct FusedLoopContext {
  KernelBuilder& b;
  const IndependentLoop& form;
  ElementEmitter& top;  // emits loads from memory
  Coordinates point;
  std::string failure;        // the first failure; empty if none
  int64_t held = 0;           // registers in use, in elements
  FusedLoopGroup group = {};  // default: one thread per point
  FusedLoopMapping thread_map = {};
  std::vector<FusedLoopFrame*> frames = {};

  void Fail(const std::string& why) {
    if (failure.empty()) failure = why;
  }
  // Drops memoized values when a kernel block closes (ElementEmitter::Forget).
  void Forget();
};

// A dot of a vector in registers with a matrix. It is too large to unroll: the kernel loops over
// the contracted dimension, with the vector and the sums in local arrays.
struct FusedLoopDot {
  const Instr* dot = nullptr;
  const std::vector<int>* axes = nullptr;  // parallel axis of each result dimension, or -1
  size_t vector = 0;                       // index of the operand that is the vector
  int64_t taps = 0, sums = 0;

  Dims SumDims() const;  // sizes of the result dimensions that are not parallel axes
  Dims TapDims() const;
};
std::optional<FusedLoopDot> ProductOf(const IndependentLoop& form, const Instr& dot);
// The same for a dot of any size.
std::optional<FusedLoopDot> LargeDotOf(const IndependentLoop& form, const Instr& dot);
// The coordinates in an operand of a dot, from the result coordinates `at` and the contracted
// coordinates `tap`.
Coordinates OperandCoordinates(const Instr& dot, size_t operand, const Coordinates& at,
                               const Coordinates& tap);
// The dots of the loop and its nested loops that threads can compute together. Empty if a nested
// loop has an unknown trip count: its threads could diverge.
std::vector<FusedLoopDot> DotsToDistribute(const FusedLoopRegion& region);

// The elements of an array that belong to a point: its coordinates along the parallel axes, and all
// indices along the other dimensions, row-major. With a FusedLoopMapping, only those of the thread.
class OwnElements {
 public:
  OwnElements(const FusedLoopContext& context, const Shape& shape, const CarryForm& form);
  int64_t count() const { return count_; }
  bool is_distributed() const { return element_stride_ > 0; }
  Coordinates At(FusedLoopContext& context, int64_t element) const;
  // Selects the element of `values` at the coordinates.
  Element Find(FusedLoopContext& context, const std::vector<Element>& values,
               const Coordinates& at) const;

 private:
  Element FindDistributed(FusedLoopContext& context, const std::vector<Element>& values,
                          const Coordinates& at) const;

  const Shape& shape_;
  const CarryForm& form_;
  int64_t count_ = 1;
  int64_t element_stride_ = 0;  // stride between the elements of a thread; 0: it owns all of them
  Dims own_;                    // dimensions that are not parallel axes
};
// The constant offset of an index from the thread's element, if it is constant.
std::optional<int64_t> BehindElement(FusedLoopContext& context, Scalar index);

// The carried values of a loop while it runs.
class CarriedValues {
 public:
  // `first` supplies the initial values; part i is carried value i.
  CarriedValues(FusedLoopContext& context, const WhileLoop& loop,
                const std::vector<CarryForm>& forms, std::optional<int64_t> trip_count,
                std::shared_ptr<ElementSource> first);

  // From here on At returns the values of `iteration`, or, if it is nullopt, the final values.
  void Read(std::optional<Scalar> iteration);
  Element At(size_t i, const Coordinates& at) const;
  bool IsHeld(size_t i) const { return !registers_[i].empty(); }
  // Whether some carried value in registers is an array that is the same for all points.
  bool HoldsUniformArray() const;
  const OwnElements& Own(size_t i) const { return own_[i]; }
  void Store(size_t i, const std::vector<Element>& values);

 private:
  Element Counted(size_t i) const;

  FusedLoopContext& context_;
  const std::vector<CarryForm>& forms_;
  std::optional<int64_t> trip_count_;
  std::shared_ptr<ElementSource> first_;
  // Counters, which are computed from the iteration and need no register.
  std::vector<std::optional<Induction>> counters_;
  std::vector<OwnElements> own_;
  std::vector<std::vector<std::array<ArrayId, 2>>> registers_;
  std::vector<std::vector<Element>> now_;
  std::optional<Scalar> iteration_;
};

// Emits elements of a computation inside the loop: the body, a branch or a nested body. Nested
// loops and branches are emitted on construction, so all other instructions are pure values.
class FusedLoopFrame {
 public:
  // `given` supplies the parameters, one part each.
  FusedLoopFrame(FusedLoopContext& context, const Computation& computation,
                 std::shared_ptr<ElementSource> given);
  ~FusedLoopFrame();
  Element At(const Instr& instr, const Coordinates& at, size_t part = 0);
  // The coordinates that a dynamic-update-slice writes for the element `at` of its update.
  Coordinates UpdateIndex(const Instr& update, const Coordinates& at);
  void Forget() { emitter_.Forget(); }

 private:
  void Add(const Instr& instr);
  // An operand element of the dot, in the accumulator type.
  Scalar FactorOf(const FusedLoopDot& product, size_t operand, Scalar tap, Scalar sum);
  void AddDot(const FusedLoopDot& product);
  void AddDistributedDot(const FusedLoopDot& product);
  void AddLoop(const Instr& instr);
  void AddBranches(const Instr& instr);
  std::vector<Element> Reduced(const Instr& reduce, const Coordinates& at);
  Element Contracted(const Instr& dot, const Coordinates& at);
  Element ZeroOf(const Instr& instr, size_t part);

  FusedLoopContext& context_;
  ElementEmitter emitter_;
  std::vector<std::unique_ptr<FusedLoopFrame>> branches_;
  std::vector<std::unique_ptr<CarriedValues>> loops_;
};

// Called with the body of each iteration before the carried values change.
class IterationObserver {
 public:
  virtual ~IterationObserver() = default;
  virtual void Look(FusedLoopFrame& body) = 0;
};
// A range of iterations of a loop with known trip count.
struct IterationRange {
  Scalar from, count;
};
// Emits the iterations of a loop in sequence: all, or those of `span`. `watcher` may be null.
void EmitIterations(FusedLoopContext& context, const WhileLoop& loop,
                    std::optional<int64_t> trip_count, CarriedValues& carried,
                    IterationObserver* watcher, const IterationRange* span = nullptr);

// An ElementSource that calls a function (at, part) -> Element.
template <typename Fn>
std::shared_ptr<ElementSource> SourceOf(Fn fn) {
  struct FunctionSource : ElementSource {
    explicit FunctionSource(Fn f) : fn(std::move(f)) {}
    Element At(const Coordinates& at, size_t part) override { return fn(at, part); }
    Fn fn;
  };
  return std::make_shared<FunctionSource>(std::move(fn));
}

// Whether the iterations overwrite a stacked value completely, so that its initial value is dead.
bool IsCovered(const FusedLoopRegion& region, size_t carry);
// Whether an iteration may overwrite a row that an earlier iteration stacked. If several threads
// run the same point redundantly, a slow one could then restore an older value, so only one may
// write.
bool RestacksRows(const FusedLoopRegion& region);

// The kernel of a loop: its arguments, the code for one point, its results.
class FusedLoopKernel : private IterationObserver {
 public:
  FusedLoopKernel(KernelBuilder& b, const FusedLoopRegion& region);
  // Several threads run each point.
  void SetThreadGroup(FusedLoopGroup group) { context_->group = group; }
  // Distributes the elements of a point over threads.
  void Spread(const FusedLoopMapping& thread_map) { context_->thread_map = thread_map; }
  // The point is also run elsewhere; results are stored only where this condition holds.
  void WriteWhere(Scalar alone) { alone_ = alone; }
  // Emits all iterations of one point. `first`: whether this point stores the values that are the
  // same for all points.
  void Run(const Coordinates& point, Scalar first);
  // The same in three steps: before the first iteration, some iterations, after the last one.
  // Between them the values of a point are kept in local arrays, at index `slot` of `slots`.
  void Begin(const Coordinates& point, Scalar slot, int64_t slots);
  void Continue(const Coordinates& point, Scalar slot, Scalar first, const IterationRange& span);
  void End(const Coordinates& point, Scalar slot, Scalar first);
  BuildOutcome Finish(int64_t grid, bool exact);

 private:
  struct Output {
    size_t carry;
    ArrayId array;
  };
  // The start values of a point: from the local arrays if the value is cached, else from memory.
  std::shared_ptr<ElementSource> CachedAt(Scalar slot);
  CarriedValues Carried(const Coordinates& point, Scalar first,
                        std::shared_ptr<ElementSource> begin);
  void Cache(CarriedValues& carried, Scalar slot);
  void WriteResults(CarriedValues& carried);
  // Stores the rows that an iteration stacks.
  void Look(FusedLoopFrame& body) override;
  // Whether this point stores an array. Points that differ only along axes that the array lacks
  // compute the same elements of it; one of them stores.
  Scalar Writes(const CarryForm& form, const OwnElements& own);
  void StoreAt(const Output& output, const Coordinates& at, const Element& value);
  const Shape& ShapeOf(size_t carry) const;

  KernelBuilder& b_;
  const FusedLoopRegion& region_;
  FusedRegion read_;  // region of the emitter for loads
  std::unique_ptr<ElementEmitter> top_;
  std::unique_ptr<FusedLoopContext> context_;
  std::vector<Output> outputs_;
  Scalar first_, alone_;                                     // for the current point
  std::vector<std::vector<std::array<ArrayId, 2>>> cached_;  // per carried value and element
};

// CPU: runs some iterations of a block of points before it moves on to the next block. The rows
// read and stacked per iteration are then long enough for the hardware prefetcher. Rejected if
// there is little to read and stack.
BuildOutcome BuildBlockedFusedLoop(const FusedLoopRegion& region, const Machine& machine,
                                   int64_t lanes, const std::string& name);

}  // namespace tokamak
