// Splits the contracted dimension K of dots with few tiles, so that all SMs of a GPU multiply:
//
//   dot(x, y)  ->  convert(reduce(dot(reshape x [S, K/S], reshape y [S, K/S]), 0))
//
// S is a batch dimension of the new dot, whose results are f32. The reshapes are views of the same
// memory, and the reduce fuses with what follows. Weight gradients have this form: 768 x 3072
// results of 8192 samples are 144 tiles for 132 SMs, each of which is busy for all of K.
//
// S depends on the sizes and the machine only: the order of the sum is reproducible.

#include "passes/target/split_dots.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "analysis/dot_chains.h"
#include "cost/rates.h"
#include "gen/contract.h"
#include "gen/gpu/tensor_tiling.h"
#include "gen/library/dot.h"
#include "gen/region.h"
#include "passes/passes.h"
#include "passes/target/swap_sides.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Slices at most, and K of a slice at least. Chosen: beyond, storing and adding partial sums costs
// more than a tile that is computed by several SMs can gain.
constexpr int64_t kMaxDepthSlices = 64, kMinSliceDepth = 256;
// K of a slice is a multiple of this many elements: the start of a slice is aligned for the bulk
// copy engine (TileCopy::kAlignment for 16-bit elements).
constexpr int64_t kSliceUnit = TileCopy::kAlignment / 2;
// Ratio of the predicted times after the split and before it, at most. Chosen: the estimates are
// not more accurate.
constexpr double kMaxSplitTime = 0.9;
// With fewer rows or columns, a library keeps the dot. Chosen: half of the rows of a tile.
constexpr int64_t kMinSplitRows = 64;

bool IsSplittable(const Instr& dot, const DotDimensions& dot_dims, const Machine& machine) {
  const DotAttrs& attrs = dot_dims.attrs;
  ElementType type = dot.shape().type();
  bool fits = type == ElementType::kF32 || type == ElementType::kBF16 || type == ElementType::kF16;
  if (!fits || !attrs.lhs_batch.empty() || HasControlDependencies(dot) ||
      attrs.lhs_contracting.empty() || !AreAdjacent(attrs.lhs_contracting) ||
      !AreAdjacent(attrs.rhs_contracting))
    return false;
  auto work = static_cast<double>(dot_dims.m) * static_cast<double>(dot_dims.n) *
              static_cast<double>(dot_dims.k);
  if (PrefersKernelInLoop(dot, work) || !AmortizesLibraryCall(dot, machine)) return false;
  return std::min(dot_dims.m, dot_dims.n) >= kMinSplitRows || PrefersTensorContract(dot, machine);
}

// Microseconds of storing the partial sums, reading them again, and the launch.
double SumSlicesUs(double sums, const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  double bytes = 2 * sums * static_cast<double>(sizeof(float));
  return CopyUs(bytes, rates) + rates.graph_gap_us;
}

// gpu::WhyNoTensorDot of a dot whose operands are in memory: as views of other arrays, or else
// themselves, stored in this order by their producers.
std::string WhyNoTensorDot(const Instr& dot, const DotDimensions& dot_dims, const Machine& machine,
                           gpu::TensorTiling& tiling) {
  gpu::TensorDot tensor{dot, dot_dims, {true, true}};
  for (size_t i : {0, 1}) tensor.views[i] = gpu::OperandViewOf(*dot.operand(i));
  std::string why = gpu::WhyNoTensorDot(tensor, machine, tiling);
  if (!why.empty() || (tiling.lhs.IsBulk() && tiling.rhs.IsBulk())) return why;
  if (!tiling.lhs.IsBulk()) tensor.views[0] = {};
  if (!tiling.rhs.IsBulk()) tensor.views[1] = {};
  return gpu::WhyNoTensorDot(tensor, machine, tiling);
}

// Whether no value that follows from the first dot is used outside of the chain.
bool StaysInside(const Instr& first, const ChainSlice& slice) {
  std::unordered_set<const Instr*> inside(slice.instrs.begin(), slice.instrs.end()),
      seen = {&first};
  std::vector<const Instr*> open = {&first};
  while (!open.empty()) {
    const Instr* next = open.back();
    open.pop_back();
    if (next == slice.instrs.back()) continue;
    if (next->parent()->root() == next) return false;
    for (const Instr* user : next->users()) {
      if (!inside.contains(user)) return false;
      if (seen.insert(user).second) open.push_back(user);
    }
  }
  return true;
}

// Microseconds that are saved if one kernel computes this dot and the first dots of its chain,
// without their results in memory; 0 if there is no such kernel. It has one tile along K of the
// first dot and along the columns of this one, and a block for each tile along the other dimension.
// Each block multiplies all of K.
double ChainSavesUs(const Instr& dot, const DotDimensions& dot_dims, const Machine& machine) {
  if (std::min(dot_dims.m, dot_dims.n) > TileCopy::kMaxBox ||
      std::max(dot_dims.m, dot_dims.n) <= TileCopy::kMaxBox)
    return 0;
  for (ChainReductions reductions : {ChainReductions::kInside, ChainReductions::kGiven}) {
    std::optional<ChainSlice> slice = ChainSliceOf(dot, reductions);
    if (!slice || DotDimensions(slice->chain.scores()).k > TileCopy::kMaxBox) continue;
    double us = 0;
    for (const DotChain::First& first : slice->chain.firsts) {
      const Instr& scores = *first.dot;
      if (!StaysInside(scores, *slice)) continue;
      DotDimensions sizes(scores);
      gpu::TensorTiling tiling;
      if (WhyNoTensorDot(scores, sizes, machine, tiling).empty())
        us += gpu::TensorTime(tiling, sizes, machine);
      auto bytes = static_cast<double>(scores.shape().ByteSize());
      us += CopyUs(2 * bytes, RatesOf(machine));
    }
    return us;
  }
  return 0;
}

class DotSplitter {
 public:
  DotSplitter(Instr& dot, const Machine& machine)
      : dot_(dot), machine_(machine), dot_dims_(dot), make_(dot, Editor::Naming::kUnnamed) {}

  // Whether slices are faster; sets their number and both times.
  bool IsWorthwhile() {
    if (IsSupported()) split_ = ChooseDepthSplit(dot_, machine_);
    return split_.slices > 1;
  }

  // Makes the new dot; false if the library would compute it.
  bool MakeSlices() {
    DotAttrs attrs = dot_dims_.attrs;
    Instr *lhs = Sliced(0, attrs.lhs_contracting), *rhs = Sliced(1, attrs.rhs_contracting);
    attrs.lhs_batch = {attrs.lhs_contracting[0]};
    attrs.rhs_batch = {attrs.rhs_contracting[0]};
    attrs.lhs_contracting = {attrs.lhs_contracting[0] + 1};
    attrs.rhs_contracting = {attrs.rhs_contracting[0] + 1};
    Dims dims = dot_.shape().dims();
    dims.insert(dims.begin(), split_.slices);
    partial_ =
        make_.Make(Op::kDot, Shape::Array(ElementType::kF32, dims), {lhs, rhs}, std::move(attrs));
    partial_->set_name(dot_.name() + ".slices");
    if (CanUseContract(*partial_, machine_) && PrefersGenerator(*partial_, machine_)) return true;
    make_.Discard();
    return false;
  }

  // Adds the slices and replaces the dot.
  void Finish() {
    Instr* zero = make_.Constant(Literal::Scalar(ElementType::kF32, 0));
    Instr* sum =
        make_.Make(Op::kReduce, Shape::Array(ElementType::kF32, dot_.shape().dims()),
                   {partial_, zero}, DimensionsAttrs{{0}}, AdditionFor(dot_, ElementType::kF32));
    Instr* result = make_.Converted(sum, dot_.shape().type());
    result->set_name(dot_.name());
    make_.Replace(result);
  }

  const DepthSplit& split() const { return split_; }

 private:
  bool IsSupported() {
    if (dot_.op() != Op::kDot || !CanUseContract(dot_, machine_)) return false;
    gpu::TensorTiling tiling;
    // The producer's threads would fill the panels no faster in slices.
    return WhyNoTensorDot(dot_, dot_dims_, machine_, tiling).empty() && tiling.lhs.IsBulk() &&
           tiling.rhs.IsBulk();
  }

  // The operand with its contracted dimensions as [slices, K / slices].
  Instr* Sliced(size_t i, const Dims& contracting) {
    Dims dims = dot_.operand(i)->shape().dims();
    auto begin = dims.begin() + contracting[0];
    begin = dims.erase(begin, begin + static_cast<int64_t>(contracting.size()));
    begin = dims.insert(begin, dot_dims_.k / split_.slices);
    dims.insert(begin, split_.slices);
    return make_.Reshaped(dot_.operand(i), dims);
  }

  Instr& dot_;
  const Machine& machine_;
  DotDimensions dot_dims_;
  Editor make_;
  Instr* partial_ = nullptr;
  DepthSplit split_;
};

}  // namespace

DepthSplit ChooseDepthSplit(const Instr& dot, const Machine& machine) {
  DotDimensions dot_dims(dot);
  if (!IsSplittable(dot, dot_dims, machine)) return {};
  gpu::TensorTiling tiling;
  if (!WhyNoTensorDot(dot, dot_dims, machine, tiling).empty()) return {};
  DepthSplit best{.before_us = gpu::TensorTime(tiling, dot_dims, machine)};
  best.after_us = kMaxSplitTime * best.before_us - ChainSavesUs(dot, dot_dims, machine);
  DotDimensions sizes = dot_dims;
  for (int64_t slices = 2; slices <= kMaxDepthSlices && slices * kMinSliceDepth <= dot_dims.k;
       ++slices) {
    if (dot_dims.k % (slices * kSliceUnit) != 0) continue;
    sizes.batch = slices;
    sizes.k = dot_dims.k / slices;
    double us = gpu::TensorTime(tiling, sizes, machine) +
                SumSlicesUs(static_cast<double>(slices * dot_dims.m * dot_dims.n), machine);
    if (us >= best.after_us) continue;
    best.after_us = us;
    best.slices = slices;
  }
  return best;
}

// Record contraction.split-depth, by cost. Batched dots keep their K: their batch fills the SMs, or
// SplitK has taken them.
Result<Changed> SplitDots(Module& module, PassContext& context) {
  if (!context.machine().async_multiply) return Changed::kNo;
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() != Op::kDot) continue;
      if (!DotSplitter(*instr, context.machine()).IsWorthwhile()) continue;
      // Here, because legalize-dots finds a reduce between the dot and its transpose.
      changed |= SwapSides(*instr, context);
      DotSplitter splitter(*instr, context.machine());
      if (!splitter.IsWorthwhile() || !splitter.MakeSlices()) continue;
      context.AcceptedByCost("contraction.split-depth", *instr, splitter.split().before_us,
                             splitter.split().after_us,
                             std::to_string(splitter.split().slices) + " slices of K");
      splitter.Finish();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
