#include "gen/gpu/k_major.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost/rates.h"
#include "gen/contract.h"
#include "gen/dot_operand.h"

namespace tokamak::gpu {
namespace {

// Ratio of the predicted times after the copies and before them, at most. Chosen: the estimates
// are not more accurate.
constexpr double kMaxCopiedTime = 0.95;
// Time of cuBLAS, relative to the one for operands with K contiguous, if it is contiguous in
// neither. Measured on H200: 540 us against 350 (4096 x 4096 x 4096), 198 against 108 (8192 x 3072
// x 768).
constexpr double kLibraryAcross = 1.5;

// Microseconds of storing the operand with elements of this many bytes.
double StoreCopyUs(const Instr& operand, int64_t element_bytes, const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  auto bytes = static_cast<double>(operand.shape().ByteSize() +
                                   operand.shape().ElementCount() * element_bytes);
  return CopyUs(bytes, rates) + rates.graph_gap_us;
}

// Microseconds of reading both operands and storing the results. The multiplies hide it in part.
double MemoryUs(const Instr& dot, const Machine& machine) {
  auto bytes = static_cast<double>(dot.shape().ByteSize());
  for (const Instr* operand : dot.operands())
    bytes += static_cast<double>(operand->shape().ByteSize());
  return CopyUs(bytes, RatesOf(machine));
}

// Whether the free and the contracted dimensions of an operand are each one dimension in memory.
bool IsMatrix(const DotOperand& side) {
  OperandView view = OperandViewOf(*side.instr);
  return view.array != nullptr && LinearizedStride(*side.dims, view.strides, *side.free) &&
         LinearizedStride(*side.dims, view.strides, *side.contracting);
}

}  // namespace

bool ChooseKMajorCopies(const Instr& dot, const Machine& machine, KMajorCopies& choice) {
  if (!machine.async_multiply) return false;
  std::vector<TensorForm> forms = FormsOf(dot, machine);
  if (forms.empty() || forms[0].Products() > 1) return false;
  const TensorForm& form = forms[0];
  DotDimensions dot_dims(dot);
  TensorDot tensor{dot, dot_dims, {true, true}};
  for (size_t i : {0, 1}) {
    tensor.views[i] = OperandViewOf(*dot.operand(i));
    tensor.affine[i] = AffineViewOf(*dot.operand(i));
  }
  TensorTiling tiling;
  if (!WhyNoTensorDot(tensor, machine, tiling).empty()) return false;
  std::array<int64_t, 2> lanes{};
  double library_copies_us = 0;
  for (size_t i : {0, 1}) {
    if ((i == 0 ? tiling.lhs : tiling.rhs).source != PanelSource::kComputed) continue;
    DotOperand side(dot, dot_dims, i);
    lanes[i] = ProducerLanes(side, tiling.form, i);
    // A library needs a copy of what is no matrix.
    if (!IsMatrix(side)) library_copies_us += StoreCopyUs(*side.instr, form.bytes(), machine);
  }
  auto is_across = [&](size_t i) {
    const TensorOperand& operand = i == 0 ? tiling.lhs : tiling.rhs;
    return form.IsKMajorOnly() && operand.IsBulk() &&
           (!operand.is_k_major || operand.stored != form.types[i]);
  };
  // Whether the bulk copy engine cannot address the operand as it is in memory.
  auto is_copied = [&](size_t i) {
    return is_across(i) || !(i == 0 ? tiling.lhs : tiling.rhs).IsBulk();
  };
  if (!form.IsKMajorOnly() && !is_copied(0) && !is_copied(1)) return false;
  double memory_us = MemoryUs(dot, machine);
  choice = {.form = form};
  choice.before_us = choice.after_us =
      std::hypot(TensorTime(tiling, dot_dims, machine, lanes), memory_us);
  double laid_us = TensorTime(KMajorTiling(tiling, form, {true, true}), dot_dims, machine);
  // The choice between a library and 16-bit factors is made elsewhere (PrefersTensorContract).
  choice.library_us =
      form.IsKMajorOnly()
          ? std::hypot(laid_us * (is_across(0) && is_across(1) ? kLibraryAcross : 1), memory_us) +
                library_copies_us
          : std::numeric_limits<double>::infinity();
  // Rows of the copies are aligned for the bulk copy engine.
  int64_t aligned = TileCopy::kAlignment / form.bytes();
  if (dot_dims.k % aligned != 0) return true;
  // Small kernels can share a launch, unless one waits for the array of the other.
  double most =
      std::min(kMaxCopiedTime * choice.before_us, choice.before_us - RatesOf(machine).wait_us);
  for (std::array<bool, 2> copies :
       {std::array{true, false}, std::array{false, true}, std::array{true, true}}) {
    if ((copies[0] && !is_copied(0)) || (copies[1] && !is_copied(1))) continue;
    std::array<int64_t, 2> others{copies[0] ? 0 : lanes[0], copies[1] ? 0 : lanes[1]};
    double us = std::hypot(
        TensorTime(KMajorTiling(tiling, form, copies), dot_dims, machine, others), memory_us);
    for (size_t i : {0, 1})
      if (copies[i]) us += StoreCopyUs(*dot.operand(i), form.bytes(), machine);
    if (us >= std::min(choice.after_us, most)) continue;
    choice.after_us = us;
    choice.copies = copies;
  }
  return true;
}

}  // namespace tokamak::gpu
