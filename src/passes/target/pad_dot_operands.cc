// Aligns the rows of dot operands for the bulk copy engine of GPUs, which needs multiples of 16
// bytes:
//
//   dot(x [8192, 30522], y)  ->  dot(slice(pad(x) [8192, 30528]), y)
//
// The values are the same; only the array in memory between pad and slice has other rows. The
// kernel that computes x stores the padded array, or a copy of x is made. The slice is part of the
// dot's kernel, which reads the padded array in place (gen/gpu/operand_view.h). Without it, the
// threads of the producer load every element of x once per tile of the dot.

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>
#include <vector>

#include "cost/rates.h"
#include "gen/contract.h"
#include "gen/gpu/tensor_tiling.h"
#include "gen/library/dot.h"
#include "gen/region.h"
#include "passes/passes.h"
#include "passes/target/split_dots.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Ratio of the predicted times after padding and before it, at most. Chosen: the estimates are not
// more accurate.
constexpr double kMaxPaddedTime = 0.9;
// Factor of the time of kernels with synchronous multiplies, which need no alignment. Measured on
// H200: 0.59 ms against 0.18 for 4096 x 4096 x 4096 bf16.
constexpr double kSynchronousTime = 3.3;

// The dimensions of an array after its rows were padded to multiples of 16 bytes.
Dims AlignedDims(const Shape& shape) {
  Dims dims = shape.dims();
  int64_t unit = TileCopy::kAlignment * 8 / InfoOf(shape.type()).bits;
  dims.back() = RoundUp(dims.back(), unit);
  return dims;
}

// A dot, and which of its operands are worth padding.
struct PaddableDot {
  Instr* dot = nullptr;
  std::array<bool, 2> pads{};
  // Elements of an access of the producer's threads to the operands as they are, and after padding.
  std::array<int64_t, 2> lanes{}, padded_lanes{};
  gpu::TensorTiling tiling{};  // without sizes
  // The time if padding allows K to be split (split_dots.h).
  double split_us = std::numeric_limits<double>::infinity();
};

PaddableDot PaddableOf(Instr& dot, const Machine& machine) {
  PaddableDot paddable{.dot = &dot};
  if (dot.op() != Op::kDot || !CanUseContract(dot, machine)) return paddable;
  DotDimensions dot_dims(dot);
  auto work = static_cast<double>(dot_dims.batch) * static_cast<double>(dot_dims.m) *
              static_cast<double>(dot_dims.n) * static_cast<double>(dot_dims.k);
  if (PrefersKernelInLoop(dot, work) || !AmortizesLibraryCall(dot, machine)) return paddable;
  gpu::TensorTiling& tiling = paddable.tiling;
  gpu::TensorDot tensor{dot, dot_dims, {true, true}};
  for (size_t i : {0, 1}) tensor.views[i] = gpu::OperandViewOf(*dot.operand(i));
  if (!gpu::WhyNoTensorDot(tensor, machine, tiling).empty()) return paddable;
  for (size_t i : {0, 1}) {
    const gpu::TensorOperand& operand = i == 0 ? tiling.lhs : tiling.rhs;
    if (operand.IsBulk()) continue;
    const Shape& shape = dot.operand(i)->shape();
    bool is_aligned = AlignedDims(shape) == shape.dims();
    DotOperand side(dot, dot_dims, i);
    paddable.lanes[i] = paddable.padded_lanes[i] = gpu::ProducerLanes(side, tiling.form, i);
    gpu::OperandView padded{dot.operand(i), RowMajorStrides(AlignedDims(shape))};
    for (const auto& order : ContractingOrders(dot_dims.attrs))
      paddable.pads[i] |=
          !is_aligned && gpu::TensorOperandOf(side, i == 0 ? order.first : order.second, padded,
                                              StorageType(shape.type()))
                             .IsBulk();
    if (paddable.pads[i]) paddable.padded_lanes[i] = 0;
  }
  // The library takes the other ones as they are.
  DepthSplit split;
  if (paddable.padded_lanes == std::array<int64_t, 2>{}) split = ChooseDepthSplit(dot, machine);
  if (split.slices > 1) paddable.split_us = split.after_us;
  if (split.slices == 1 && !PrefersTensorContract(dot, machine)) paddable.pads = {};
  return paddable;
}

class OperandPadder {
 public:
  OperandPadder(Computation& computation, PassContext& context)
      : computation_(computation), context_(context) {}

  bool Run() {
    for (Instr* instr : computation_.Instrs()) {
      PaddableDot paddable = PaddableOf(*instr, context_.machine());
      if (!paddable.pads[0] && !paddable.pads[1]) continue;
      dots_.push_back(paddable);
      for (size_t i : {0, 1})
        if (paddable.pads[i]) ++dots_of_[instr->operand(i)];
    }
    bool changed = false;
    for (const PaddableDot& paddable : dots_) changed |= TryPad(paddable);
    return changed;
  }

 private:
  bool TryPad(const PaddableDot& paddable) {
    Instr& dot = *paddable.dot;
    DotDimensions dot_dims(dot);
    const Machine& machine = context_.machine();
    double before_us =
        std::min(gpu::TensorTime(paddable.tiling, dot_dims, machine, paddable.lanes),
                 kSynchronousTime * gpu::TensorTime(paddable.tiling, dot_dims, machine));
    double after_us =
        std::min(gpu::TensorTime(paddable.tiling, dot_dims, machine, paddable.padded_lanes),
                 paddable.split_us);
    for (size_t i : {0, 1})
      if (paddable.pads[i]) after_us += StoreCopyUs(*dot.operand(i));
    // Small kernels can share a launch, unless one waits for the array of the other.
    if (after_us > kMaxPaddedTime * before_us || after_us + RatesOf(machine).wait_us > before_us) {
      context_.Rejected("contraction.pad-operand", dot, nullptr, "by cost");
      return false;
    }
    std::string sides;
    for (size_t i : {0, 1}) {
      if (!paddable.pads[i]) continue;
      sides += (sides.empty() ? "" : ", ") + std::string(i == 0 ? "lhs" : "rhs");
    }
    context_.AcceptedByCost("contraction.pad-operand", dot, before_us, after_us, sides);
    std::array operands = {dot.operand(0), dot.operand(1)};
    for (size_t i : {0, 1})
      if (paddable.pads[i]) dot.set_operand(i, Padded(*operands[i]));
    return true;
  }

  // The share of one dot of the time of a copy: nothing if there is a padded array, or the kernel
  // that computes the operand can store it.
  double StoreCopyUs(const Instr& operand) {
    if (padded_.contains(&operand)) return 0;
    auto dots = static_cast<double>(dots_of_[&operand]);
    bool is_fusible = operand.info().Is(kElementwise) && operand.op() != Op::kConstant;
    if (is_fusible && operand.users().size() <= static_cast<size_t>(dots_of_[&operand])) return 0;
    const Rates& rates = RatesOf(context_.machine());
    double bytes = 2 * static_cast<double>(operand.shape().ByteSize());
    return (CopyUs(bytes, rates) + rates.graph_gap_us) / dots;
  }

  // A slice of the padded operand. Each dot has one of its own, so that it can be part of the dot's
  // kernel; the padded array is shared.
  Instr* Padded(Instr& operand) {
    Editor make = Editor::Beside(operand);
    const Dims dims = operand.shape().dims(), aligned = AlignedDims(operand.shape());
    ElementType type = operand.shape().type();
    Instr*& stored = padded_[&operand];
    if (stored == nullptr) {
      PadAttrs pad{Dims(dims.size(), 0), Dims(dims.size(), 0), Dims(dims.size(), 0)};
      pad.high.back() = aligned.back() - dims.back();
      Instr* zero = make.Constant(Literal::Scalar(type, 0));
      stored = make.Make(Op::kPad, Shape::Array(type, aligned), {&operand, zero}, pad);
      stored->set_name(operand.name() + ".padded");
    }
    return make.Make(Op::kSlice, Shape::Array(type, dims), {stored},
                     SliceAttrs{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)});
  }

  Computation& computation_;
  PassContext& context_;
  std::vector<PaddableDot> dots_;
  std::unordered_map<const Instr*, int64_t> dots_of_;  // paddable operands of dots
  std::unordered_map<const Instr*, Instr*> padded_;
};

}  // namespace

// Record contraction.pad-operand, by cost. Must run after the simplifications, which remove a slice
// of a pad.
Result<Changed> PadDotOperands(Module& module, PassContext& context) {
  if (!context.machine().async_multiply) return Changed::kNo;
  return EditComputations(
      module, [&](Computation& computation) { return OperandPadder(computation, context).Run(); });
}

}  // namespace tokamak
