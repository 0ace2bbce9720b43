#include "gen/gpu/operand_tensor.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "gen/dot_dimensions.h"

namespace tokamak::gpu {
namespace {

// The strides of an operand along K and along its free dimensions; none if they are not one
// dimension in memory.
struct OperandStrides {
  std::optional<int64_t> depth, free;
};

OperandStrides StridesOf(const Dims& dims, const Dims& strides, const Dims& free,
                         const Dims& contracting) {
  return {LinearizedStride(dims, strides, contracting), LinearizedStride(dims, strides, free)};
}

// Whether the bulk copy engine reads an operand with these strides.
bool IsTensor(const OperandStrides& strides, int64_t depth, int64_t free) {
  if (!strides.depth || !strides.free) return false;
  return (*strides.depth == 1 && depth > 1) || (*strides.free == 1 && free > 1);
}

// Adds a dimension; false if its stride is not a multiple of 16 bytes.
bool AddDimension(TensorOperand& operand, TensorOperand::Dimension dimension, int64_t bytes) {
  int64_t unit = TileCopy::kAlignment / bytes;
  // The stride of a single element is arbitrary.
  if (dimension.size == 1) dimension.stride = unit;
  if (!operand.dimensions.empty() && dimension.stride % unit != 0) return false;
  operand.dimensions.push_back(dimension);
  return true;
}

// The element `start` as coordinates, such that no dimension reaches beyond the stride of a larger
// one. False if the first byte of a box would not be a multiple of 16 (TileCopy::kAlignment).
bool SetStarts(TensorOperand& operand, int64_t start, int64_t bytes) {
  std::vector<TensorOperand::Dimension*> dimensions;
  for (TensorOperand::Dimension& dimension : operand.dimensions)
    if (dimension.size > 1 || &dimension == &operand.dimensions[0])
      dimensions.push_back(&dimension);
  std::ranges::stable_sort(dimensions, std::greater(),
                           [](const TensorOperand::Dimension* d) { return d->stride; });
  for (TensorOperand::Dimension* dimension : dimensions) {
    dimension->start = start / dimension->stride;
    start %= dimension->stride;
  }
  return operand.dimensions[0].start % (TileCopy::kAlignment / bytes) == 0;
}

// The batch dimensions, as one if their strides allow it.
bool AddBatch(TensorOperand& operand, const Dims& dims, const Dims& strides, const Dims& batch,
              int64_t bytes) {
  using Along = TensorOperand::Dimension::Along;
  if (SizeAlong(dims, batch) == 1) return true;
  if (std::optional<int64_t> stride = LinearizedStride(dims, strides, batch))
    return AddDimension(
        operand,
        {.along = Along::kBatch, .is_all = true, .size = SizeAlong(dims, batch), .stride = *stride},
        bytes);
  for (size_t i = batch.size(); i-- > 0;) {
    auto d = static_cast<size_t>(batch[i]);
    if (dims[d] == 1) continue;
    if (!AddDimension(operand,
                      {.along = Along::kBatch, .batch = i, .size = dims[d], .stride = strides[d]},
                      bytes))
      return false;
  }
  return operand.dimensions.size() <= TileCopy::kMaxRank;
}

}  // namespace

TensorOperand TensorOperandOf(const DotOperand& side, const Dims& contracting, bool is_input,
                              ScalarType type) {
  OperandView view;
  if (is_input) view = {side.instr, RowMajorStrides(*side.dims)};
  return TensorOperandOf(side, contracting, view, type);
}

TensorOperand TensorOperandOf(const DotOperand& side, const Dims& contracting,
                              const OperandView& view, ScalarType type) {
  using Along = TensorOperand::Dimension::Along;
  TensorOperand none;
  none.is_k_major = none.panels_are_k_major = side.k_is_minor;
  none.source = PanelSource::kComputed;
  const Dims& dims = *side.dims;
  if (view.array == nullptr) return none;
  OperandStrides strides = StridesOf(dims, view.strides, *side.free, contracting);
  int64_t depth = SizeAlong(dims, contracting), rows = SizeAlong(dims, *side.free);
  if (!IsTensor(strides, depth, rows)) return none;
  TensorOperand operand;
  operand.array = view.array;
  operand.is_k_major = operand.panels_are_k_major = *strides.depth == 1 && depth > 1;
  operand.stored = type;
  TensorOperand::Dimension along_depth{
      .along = Along::kDepth, .size = depth, .stride = *strides.depth};
  TensorOperand::Dimension along_free{.along = Along::kFree, .size = rows, .stride = *strides.free};
  if (!operand.is_k_major) std::swap(along_depth, along_free);
  int64_t bytes = BytesOf(type);
  bool fits = AddDimension(operand, along_depth, bytes) &&
              AddDimension(operand, along_free, bytes) &&
              AddBatch(operand, dims, view.strides, *side.batch, bytes);
  return fits && SetStarts(operand, view.start, bytes) ? operand : none;
}

}  // namespace tokamak::gpu
