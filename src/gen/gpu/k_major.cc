#include "gen/gpu/k_major.h"

#include <algorithm>
#include <cmath>

#include "cost/rates.h"
#include "cost/units.h"
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

// Microseconds of storing the operand in f32.
double CopyUs(const Instr& operand, const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  double bytes = static_cast<double>(operand.shape().ByteSize()) +
                 static_cast<double>(operand.shape().ElementCount()) * sizeof(float);
  return bytes / BandwidthAt(rates.all, bytes).copy / kNsPerUs + rates.graph_gap_us;
}

// Microseconds of reading both operands and storing the results. The multiplies hide it in part.
double MemoryUs(const Instr& dot, const Machine& machine) {
  auto bytes = static_cast<double>(dot.shape().ByteSize());
  for (const Instr* operand : dot.operands())
    bytes += static_cast<double>(operand->shape().ByteSize());
  return bytes / BandwidthAt(RatesOf(machine).all, bytes).copy / kNsPerUs;
}

}  // namespace

bool ChooseKMajorCopies(const Instr& dot, const Machine& machine, KMajorCopies& choice) {
  if (!machine.async_multiply || !MultipliesTf32(dot, machine)) return false;
  DotDimensions dot_dims(dot);
  TensorDot tensor{dot, dot_dims, {true, true}};
  for (size_t i : {0, 1}) tensor.views[i] = OperandViewOf(*dot.operand(i));
  TensorTiling tiling;
  if (!WhyNoTensorDot(tensor, machine, tiling).empty()) return false;
  std::array<int64_t, 2> lanes{};
  for (size_t i : {0, 1})
    if ((i == 0 ? tiling.lhs : tiling.rhs).source == PanelSource::kComputed)
      lanes[i] = ProducerLanes(DotOperand(dot, dot_dims, i), tiling.form, i);
  auto is_across = [&](size_t i) {
    const TensorOperand& operand = i == 0 ? tiling.lhs : tiling.rhs;
    return operand.IsBulk() && (!operand.is_k_major || operand.stored != ScalarType::kF32);
  };
  double memory_us = MemoryUs(dot, machine);
  choice = {};
  choice.before_us = choice.after_us =
      std::hypot(TensorTime(tiling, dot_dims, machine, lanes), memory_us);
  double laid_us = TensorTime(KMajorTiling(tiling, {true, true}), dot_dims, machine);
  choice.library_us =
      std::hypot(laid_us * (is_across(0) && is_across(1) ? kLibraryAcross : 1), memory_us);
  // Rows of the copies are aligned for the bulk copy engine.
  constexpr int64_t kAligned = TileCopy::kAlignment / sizeof(float);
  if (dot_dims.k % kAligned != 0) return true;
  // Small kernels can share a launch, unless one waits for the array of the other.
  double most =
      std::min(kMaxCopiedTime * choice.before_us, choice.before_us - RatesOf(machine).wait_us);
  for (std::array<bool, 2> copies :
       {std::array{true, false}, std::array{false, true}, std::array{true, true}}) {
    if ((copies[0] && !is_across(0)) || (copies[1] && !is_across(1))) continue;
    std::array<int64_t, 2> others{copies[0] ? 0 : lanes[0], copies[1] ? 0 : lanes[1]};
    double us =
        std::hypot(TensorTime(KMajorTiling(tiling, copies), dot_dims, machine, others), memory_us);
    for (size_t i : {0, 1})
      if (copies[i]) us += CopyUs(*dot.operand(i), machine);
    if (us >= std::min(choice.after_us, most)) continue;
    choice.after_us = us;
    choice.copies = copies;
  }
  return true;
}

}  // namespace tokamak::gpu
