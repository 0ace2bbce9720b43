// gather, torch-index-select.

#include <algorithm>

#include "interp/data_movement.h"
#include "interp/evaluators.h"
#include "interp/index_vectors.h"
#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

bool IsAmong(const Dims& dims, size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
}

}  // namespace

// The offset_dims of the result index into one slice, the others index the start indices. The
// dimensions of the slice, in order, are those of the operand that are neither collapsed nor
// batching.
Result<Value> MakeGather(const Instr& instr, const Value& operand, const Value& indices,
                         const GatherAttrs& attrs, const Dims& slice_sizes) {
  const Dims &from = operand.dims(), from_strides = StridesOf(from);
  IndexVectors vectors(indices, attrs.index_vector_dim);
  Dims slice_dims, slice_strides;
  bool empty = false;  // empty slices but a nonempty result: its elements are 0, as in XLA
  for (size_t d = 0; d < from.size(); ++d) {
    if (IsAmong(attrs.collapsed_slice_dims, d) || IsAmong(attrs.operand_batching_dims, d)) {
      empty = empty || slice_sizes[d] == 0;
      continue;
    }
    slice_dims.push_back(slice_sizes[d]);
    slice_strides.push_back(from_strides[d]);
  }
  size_t rank = attrs.offset_dims.size() + vectors.dims().size();
  Dims dims(rank);
  for (size_t d = 0, slice = 0, batch = 0; d < rank; ++d)
    dims[d] = IsAmong(attrs.offset_dims, d) ? slice_dims[slice++] : vectors.dims()[batch++];
  TOK_RETURN_IF_ERROR(CheckFits(instr, operand.type(), dims));
  if (empty || ProductOf(dims) == 0) {
    return DispatchStorage(operand.type(), [&]<typename T>() -> Result<Value> {
      std::vector<T> zeros(static_cast<size_t>(ProductOf(dims)));
      return Value::Array(ResultShape(instr, dims), std::move(zeros));
    });
  }
  Dims strides = StridesOf(dims), to_slice, to_batch;
  for (size_t d = 0; d < rank; ++d)
    (IsAmong(attrs.offset_dims, d) ? to_slice : to_batch).push_back(strides[d]);

  return DispatchStorage(operand.type(), [&]<typename T>() -> Result<Value> {
    std::vector<T> elements(static_cast<size_t>(ProductOf(dims)));
    const T* source = operand.Data<T>().data();
    Dims at(vectors.dims().size(), 0);
    do {
      int64_t base = 0, target = 0;
      for (size_t i = 0; i < attrs.start_index_map.size(); ++i) {
        size_t d = static_cast<size_t>(attrs.start_index_map[i]);
        int64_t start = std::clamp<int64_t>(vectors.At(at, i), 0, from[d] - slice_sizes[d]);
        base += start * from_strides[d];
      }
      for (size_t i = 0; i < attrs.operand_batching_dims.size(); ++i) {
        base += vectors.Coordinate(at, attrs.start_indices_batching_dims[i]) *
                from_strides[static_cast<size_t>(attrs.operand_batching_dims[i])];
      }
      for (size_t d = 0; d < at.size(); ++d) target += at[d] * to_batch[d];
      if (slice_dims.empty()) {
        elements[static_cast<size_t>(target)] = source[base];
      } else {
        CopyStrided(slice_dims, source, StridedView{base, slice_strides}, elements.data(),
                    StridedView{target, to_slice});
      }
    } while (NextIndex(at, vectors.dims()));
    return Value::Array(ResultShape(instr, dims), std::move(elements));
  });
}

Result<Value> EvalGather(const Instr& instr, std::span<const Value> operands, Context&) {
  const GatherAttrs& attrs = instr.attrs<GatherAttrs>();
  return MakeGather(instr, operands[0], operands[1], attrs, attrs.slice_sizes);
}

// result[batch..., outer..., index..., inner...] = x[batch..., outer..., y[batch..., index...],
// inner...]: a gather whose indices may be negative (counted from the end).
Result<Value> EvalTorchIndexSelect(const Instr& instr, std::span<const Value> operands, Context&) {
  const TorchIndexSelectAttrs& attrs = instr.attrs<TorchIndexSelectAttrs>();
  const Dims &from = operands[0].dims(), index_dims = operands[1].dims();
  size_t rank = from.size(), batch = static_cast<size_t>(attrs.batch_dims);
  size_t along =
      static_cast<size_t>(attrs.dim < 0 ? attrs.dim + operands[0].shape().rank() : attrs.dim);
  // The result, and for each of its dimensions the stride into x and into y.
  Dims dims, from_strides, index_strides, own = StridesOf(from), index_own = StridesOf(index_dims);
  for (size_t d = 0; d < along; ++d) {
    dims.push_back(from[d]);
    from_strides.push_back(own[d]);
    index_strides.push_back(d < batch ? index_own[d] : 0);
  }
  for (size_t d = batch; d < index_dims.size(); ++d) {
    dims.push_back(index_dims[d]);
    from_strides.push_back(0);
    index_strides.push_back(index_own[d]);
  }
  for (size_t d = along + 1; d < rank; ++d) {
    dims.push_back(from[d]);
    from_strides.push_back(own[d]);
    index_strides.push_back(0);
  }
  TOK_RETURN_IF_ERROR(CheckFits(instr, operands[0].type(), dims));
  Dims picks = IntsOf(operands[1]);
  for (int64_t& pick : picks) {
    if (pick < 0) pick += from[along];
    pick = std::clamp<int64_t>(pick, 0, std::max<int64_t>(0, from[along] - 1));
  }
  return DispatchStorage(operands[0].type(), [&]<typename T>() -> Result<Value> {
    std::vector<T> elements(static_cast<size_t>(ProductOf(dims)));
    // An empty dimension to select from: the result is 0.
    if (from[along] == 0) return Value::Array(ResultShape(instr, dims), std::move(elements));
    const T* source = operands[0].Data<T>().data();
    size_t out = 0;
    ForEachRow<2>(dims, {StridedView{0, from_strides}, StridedView{0, index_strides}},
                  [&](std::array<int64_t, 2> at, int64_t count, std::array<int64_t, 2> step) {
                    for (int64_t i = 0; i < count; ++i) {
                      int64_t pick = picks[static_cast<size_t>(at[1] + i * step[1])];
                      elements[out++] = source[at[0] + i * step[0] + pick * own[along]];
                    }
                  });
    return Value::Array(ResultShape(instr, dims), std::move(elements));
  });
}

}  // namespace tokamak
