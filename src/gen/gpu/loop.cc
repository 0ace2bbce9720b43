// The loop of a GPU: every element of the roots by itself. A thread takes a vector of neighbours,
// which is one access of 16 bytes; neighbouring threads take neighbouring vectors. Where an array
// would not be read or written so, a thread takes elements one by one, so that those of
// neighbouring threads are neighbours. A block takes several times as many vectors as it has
// threads, all loads of a thread in flight. Coordinates come from divisions by constants, which are
// multiplications there.

#include <algorithm>

#include "gen/cuts.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/unclamped.h"
#include "gen/roots.h"
#include "kernel/linear.h"
#include "kernel/variance.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kLoopThreads = 256, kLoopFewThreads = 64;
// Vectors of a thread, when there are enough for all multiprocessors many times over.
constexpr int64_t kLoopUnroll = 2, kSingleUnroll = 4, kMuchWork = 16 * 2048;

// Pieces that are worth code of their own, and how much longer it may be for them.
constexpr size_t kMaxCuts = 8, kMaxGrowth = 3, kLoopFewNodes = 600;

bool HasPieces(const Region& region) {
  return std::any_of(region.instrs.begin(), region.instrs.end(), [](const Instr* instr) {
    return instr->op() == Op::kPad || instr->op() == Op::kConcatenate;
  });
}

// Whether it is made of elements, pieces and pads alone: then only pads limit where is read.
bool IsStencil(const Region& region) {
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

// Whether the lanes of a loop access each array at one place, or at neighbouring places of which
// the first is aligned; nearly: or lies beside such a place, where most are aligned. Small arrays,
// which caches hold, do not count.
class WideAccess {
 public:
  WideAccess(const Kernel& kernel, int64_t lanes, int64_t count)
      : kernel_(kernel), variance_(kernel), lanes_(lanes), count_(count) {
    Walk(kernel.body);
    for (const ScalarNode& node : kernel.nodes)
      if (node.prim == Prim::kLoad) Look(node.array(), node.operands[0]);
  }
  bool everywhere() const { return everywhere_ && beside_ == 0; }
  bool nearly() const { return everywhere_ && 2 * beside_ <= aligned_; }

 private:
  void Walk(const Block& block) {
    for (const Stmt& stmt : block) {
      if (stmt.kind == StmtKind::kStore) Look(stmt.array, stmt.index);
      for (const Block* inner : {&stmt.head, &stmt.body, &stmt.otherwise}) Walk(*inner);
    }
  }

  void Look(ArrayId array, ValueId index) {
    if (kernel_.array(array).size < count_ / 2 || !variance_.ByLane(index)) return;
    std::optional<LinearIndex> linear = LinearOf(kernel_, index);
    int64_t off = linear ? (linear->constant % lanes_ + lanes_) % lanes_ : 0;
    bool wide = linear && (off <= 1 || off == lanes_ - 1);
    for (size_t i = 0; wide && i < linear->terms.size(); ++i) {
      auto [value, factor] = linear->terms[i];
      if (kernel_.node(value).prim == Prim::kLoop && variance_.ByLane(value)) {
        wide = factor == 1;
      } else {
        int64_t stride = ranges_.Of(kernel_, value).stride % lanes_;
        wide = !variance_.ByLane(value) && stride * (factor % lanes_) % lanes_ == 0;
      }
    }
    everywhere_ = everywhere_ && wide;
    ++(off == 0 ? aligned_ : beside_);
  }

  const Kernel& kernel_;
  Variance variance_;
  RangeTable ranges_;
  int64_t lanes_, count_;
  int64_t aligned_ = 0, beside_ = 0;
  bool everywhere_ = true;
};

class LoopBuilder {
 public:
  LoopBuilder(const Region& region, const Machine& machine, int64_t lanes, const std::string& name)
      : region_(region),
        machine_(machine),
        lanes_(lanes),
        dims_(DomainOf(*region.roots[0]).dims()),
        b_(name, Dialect::kGpu),
        emitter_(b_, region) {}

  // Where the code of elements changes, going through all of them: a pad, a concatenation.
  std::vector<int64_t> FindCuts() {
    ValueId variable = kNoValue;
    int64_t count = ProductOf(dims_, 0, dims_.size());
    b_.For("i", LoopRole::kGrid, b_.Index(count), [&](Scalar i) {
      variable = i.id();
      StoreRoots(b_, emitter_, region_, Delinearized(b_, i, dims_), i);
    });
    return CutsOf(b_.kernel(), variable, count);
  }

  // `cuts`: elements where another piece of code begins.
  BuildOutcome Build(const std::vector<int64_t>& cuts) {
    vectors_ = ProductOf(dims_, 0, dims_.size()) / lanes_;
    for (int64_t cut : AlignedCuts(cuts, lanes_, vectors_ * lanes_)) ends_.push_back(cut / lanes_);
    ends_.push_back(vectors_);
    // The last dimensions that hold whole vectors.
    split_ = dims_.size();
    row_ = 1;
    while (split_ > 0 && (row_ == 1 || row_ % lanes_ != 0)) row_ *= dims_[--split_];
    int64_t threads = ThreadsFor(vectors_, kLoopThreads, kLoopFewThreads, machine_);
    int64_t unroll = lanes_ == 1 ? kSingleUnroll : kLoopUnroll;
    if (vectors_ < machine_.cores * kMuchWork) unroll = 1;
    int64_t grid = CeilDiv(vectors_, threads * unroll);
    b_.For("block", LoopRole::kGrid, b_.Index(grid), [&](Scalar g) {
      b_.For("t", LoopRole::kThread, b_.Index(threads), [&](Scalar t) {
        if (unroll == 1) return Vector(g * b_.Index(threads) + t);
        b_.For("u", LoopRole::kUnrolled, b_.Index(unroll), [&](Scalar u) {
          Vector(g * b_.Index(threads * unroll) + u * b_.Index(threads) + t);
        });
      });
    });
    BuildOutcome outcome = FinishLoop(b_, emitter_, region_, grid, /*exact=*/true);
    if (outcome.built) FinishKernel(outcome.built->kernel);
    return outcome;
  }

 private:
  // Each piece of the elements by code of its own, which knows where it is.
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

  const Region& region_;
  const Machine& machine_;
  int64_t lanes_;
  const Dims& dims_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  int64_t vectors_ = 1, row_ = 1;
  std::vector<int64_t> ends_;  // of pieces, in vectors
  size_t split_ = 0;
};

// Neighbours in vectors: a thread reads the vectors around its own, and few elements beside them.
BuildOutcome BuildStencil(const Region& region, const Machine& machine, int64_t lanes,
                          const std::string& name) {
  std::vector<int64_t> cuts = LoopBuilder(region, machine, 1, name).FindCuts();
  if (cuts.size() > kMaxCuts) cuts.clear();
  BuildOutcome outcome = LoopBuilder(region, machine, lanes, name).Build(cuts);
  if (!outcome.built) return outcome;
  std::optional<Kernel> kernel = Unclamped(outcome.built->kernel);
  int64_t count = DomainOf(*region.roots[0]).ElementCount();
  if (!kernel || !WideAccess(*kernel, lanes, count).nearly())
    return {std::nullopt, "its neighbours lie apart"};
  outcome.built->kernel = std::move(*kernel);
  return outcome;
}

}  // namespace

BuildOutcome BuildLoop(const Region& region, const Machine& machine, const std::string& name) {
  if (!WhyNoLoop(region).empty()) return BuildStacked(region, machine, name);
  int64_t count = DomainOf(*region.roots[0]).ElementCount();
  int64_t lanes = LanesFor(region, machine, count, count);
  if (lanes > 1 && IsStencil(region)) {
    BuildOutcome outcome = BuildStencil(region, machine, lanes, name);
    if (outcome.built) return outcome;
  }
  BuildOutcome outcome = LoopBuilder(region, machine, lanes, name).Build({});
  if (outcome.built && lanes > 1 && !WideAccess(outcome.built->kernel, lanes, count).everywhere()) {
    lanes = 1;
    outcome = LoopBuilder(region, machine, lanes, name).Build({});
  }
  if (!outcome.built || !HasPieces(region)) return outcome;
  std::vector<int64_t> cuts = LoopBuilder(region, machine, lanes, name).FindCuts();
  if (cuts.empty() || cuts.size() > kMaxCuts) return outcome;
  BuildOutcome pieces = LoopBuilder(region, machine, lanes, name).Build(cuts);
  bool longer =
      pieces.built && pieces.built->kernel.nodes.size() >
                          std::max(kLoopFewNodes, kMaxGrowth * outcome.built->kernel.nodes.size());
  return pieces.built && !longer && pieces.built->in_place.size() >= outcome.built->in_place.size()
             ? std::move(pieces)
             : std::move(outcome);
}

}  // namespace tokamak::gpu
