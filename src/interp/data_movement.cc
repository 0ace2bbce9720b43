// Ops that only move elements: each is an iteration of strided.h.

#include "interp/data_movement.h"

#include <algorithm>

#include "interp/evaluators.h"
#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

// A new array of the elements of `operand` at base + index * strides.
Value Moved(const Instr& instr, const Value& operand, const Dims& dims, const StridedView& view) {
  return DispatchStorage(operand.type(), [&]<typename T>() {
    return Value::Array(ResultShape(instr, dims),
                        ReadStrided(dims, operand.Data<T>().data(), view));
  });
}

// The start indices of dynamic-slice and dynamic-update-slice: one scalar per dimension, or (in old
// HLO) one vector; clamped so that the block fits.
Dims ClampedStarts(std::span<const Value> indices, const Dims& dims, const Dims& sizes) {
  Dims starts(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    bool vector = indices.size() == 1 && indices[0].shape().rank() == 1;
    const Value& from = vector ? indices[0] : indices[d];
    int64_t start = from.IntAt(vector ? static_cast<int64_t>(d) : 0);
    // An unsigned index past the signed range is still a large one.
    if (IsUnsigned(from.type()) && start < 0) start = INT64_MAX;
    starts[d] = std::clamp<int64_t>(start, 0, dims[d] - sizes[d]);
  }
  return starts;
}

int64_t OffsetOf(const Dims& index, const Dims& strides) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

}  // namespace

Result<Value> EvalCopy(const Instr&, std::span<const Value> operands, Context&) {
  return operands[0];
}

Result<Value> MakeIota(const Instr& instr, int64_t dimension, const Dims& dims) {
  ElementType type = instr.shape().type();
  TOK_RETURN_IF_ERROR(CheckFits(instr, type, dims));
  return DispatchStorage(type, [&]<typename T>() -> Result<Value> {
    std::vector<T> line(static_cast<size_t>(dims[static_cast<size_t>(dimension)]));
    for (size_t i = 0; i < line.size(); ++i) {
      if constexpr (std::is_same_v<T, double>) {
        line[i] = RoundToType(type, static_cast<double>(i));
      } else if constexpr (std::is_same_v<T, Complex>) {
        line[i] = Complex(RoundToType(RealPartOf(type), static_cast<double>(i)), 0);
      } else if constexpr (std::is_same_v<T, int64_t>) {
        line[i] = WrapSigned(type, static_cast<int64_t>(i));
      } else if constexpr (std::is_same_v<T, uint64_t>) {
        line[i] = WrapUnsigned(type, i);
      } else {
        line[i] = i != 0 ? 1 : 0;
      }
    }
    StridedView view{0, Dims(dims.size(), 0)};
    view.strides[static_cast<size_t>(dimension)] = 1;
    return Value::Array(ResultShape(instr, dims), ReadStrided(dims, line.data(), view));
  });
}

Result<Value> EvalIota(const Instr& instr, std::span<const Value>, Context&) {
  return MakeIota(instr, instr.attrs<IotaAttrs>().dimension, instr.shape().dims());
}

Result<Value> MakeBroadcast(const Instr& instr, const Value& operand, const Dims& dimensions,
                            const Dims& dims) {
  TOK_RETURN_IF_ERROR(CheckFits(instr, operand.type(), dims));
  Dims own = StridesOf(operand.dims());
  StridedView view{0, Dims(dims.size(), 0)};
  for (size_t i = 0; i < own.size(); ++i) {
    if (operand.dims()[i] != 1) view.strides[static_cast<size_t>(dimensions[i])] = own[i];
  }
  return Moved(instr, operand, dims, view);
}

Result<Value> EvalBroadcast(const Instr& instr, std::span<const Value> operands, Context&) {
  const Dims& dimensions = instr.attrs<DimensionsAttrs>().dimensions;
  Dims dims = instr.shape().dims();
  // A dynamic dimension of the program takes the size of the operand's.
  for (size_t i = 0; i < dimensions.size(); ++i) {
    int64_t& dim = dims[static_cast<size_t>(dimensions[i])];
    if (dim == kDynamic || operands[0].dims()[i] != 1) dim = operands[0].dims()[i];
  }
  return MakeBroadcast(instr, operands[0], dimensions, dims);
}

Result<Value> EvalReshape(const Instr& instr, std::span<const Value> operands, Context&) {
  Dims dims = instr.shape().dims();
  int64_t known = 1;
  size_t open = dims.size();
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == kDynamic) {
      open = d;
    } else {
      known *= dims[d];
    }
  }
  if (open < dims.size()) dims[open] = known > 0 ? operands[0].ElementCount() / known : 0;
  if (std::count(dims.begin(), dims.end(), kDynamic) > 0 ||
      ProductOf(dims) != operands[0].ElementCount()) {
    return RunError(ErrorCode::kBadRunTimeShape, instr,
                    "operand " + ToString(operands[0].shape()) + " does not fill the result " +
                        ToString(instr.shape()));
  }
  return operands[0].WithShape(ResultShape(instr, std::move(dims)));
}

Result<Value> EvalTranspose(const Instr& instr, std::span<const Value> operands, Context&) {
  const Dims& permutation = instr.attrs<DimensionsAttrs>().dimensions;
  const Dims& dims = operands[0].dims();
  return Moved(instr, operands[0], Permuted(dims, permutation),
               StridedView{0, Permuted(StridesOf(dims), permutation)});
}

Result<Value> EvalReverse(const Instr& instr, std::span<const Value> operands, Context&) {
  const Dims& dims = operands[0].dims();
  StridedView view{0, StridesOf(dims)};
  for (int64_t d : instr.attrs<DimensionsAttrs>().dimensions) {
    int64_t& stride = view.strides[static_cast<size_t>(d)];
    view.base += (dims[static_cast<size_t>(d)] - 1) * stride;
    stride = -stride;
  }
  return Moved(instr, operands[0], dims, view);
}

Value MakeSlice(const Instr& instr, const Value& operand, const Dims& starts, const Dims& sizes,
                const Dims& steps) {
  StridedView view{0, StridesOf(operand.dims())};
  for (size_t d = 0; d < sizes.size(); ++d) {
    view.base += starts[d] * view.strides[d];
    view.strides[d] *= steps[d];
  }
  return Moved(instr, operand, sizes, view);
}

Result<Value> EvalSlice(const Instr& instr, std::span<const Value> operands, Context&) {
  const SliceAttrs& attrs = instr.attrs<SliceAttrs>();
  Dims sizes(attrs.starts.size()), steps(attrs.starts.size(), 1);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d < attrs.strides.size()) steps[d] = attrs.strides[d];
    sizes[d] = std::max<int64_t>(0, (attrs.limits[d] - attrs.starts[d] + steps[d] - 1) / steps[d]);
  }
  return MakeSlice(instr, operands[0], attrs.starts, sizes, steps);
}

Result<Value> EvalDynamicSlice(const Instr& instr, std::span<const Value> operands, Context&) {
  const Dims& sizes = instr.attrs<DynamicSliceAttrs>().sizes;
  Dims starts = ClampedStarts(operands.subspan(1), operands[0].dims(), sizes);
  return MakeSlice(instr, operands[0], starts, sizes, Dims(sizes.size(), 1));
}

Result<Value> EvalDynamicUpdateSlice(const Instr& instr, std::span<const Value> operands,
                                     Context&) {
  const Value& update = operands[1];
  Dims dims = operands[0].dims(), strides = StridesOf(dims);
  Dims starts = ClampedStarts(operands.subspan(2), dims, update.dims());
  return DispatchStorage(update.type(), [&]<typename T>() -> Result<Value> {
    // Written in place if the operand has no other reference (see TakeData).
    std::vector<T> elements = std::move(const_cast<Value&>(operands[0])).template TakeData<T>();
    CopyStrided(update.dims(), update.Data<T>().data(), StridedView{0, StridesOf(update.dims())},
                elements.data(), StridedView{OffsetOf(starts, strides), strides});
    return Value::Array(ResultShape(instr, std::move(dims)), std::move(elements));
  });
}

Result<Value> EvalConcatenate(const Instr& instr, std::span<const Value> operands, Context&) {
  size_t along = static_cast<size_t>(instr.attrs<DimensionAttrs>().dimension);
  Dims dims = operands[0].dims();
  for (const Value& operand : operands.subspan(1)) dims[along] += operand.dims()[along];
  TOK_RETURN_IF_ERROR(CheckFits(instr, instr.shape().type(), dims));
  Dims strides = StridesOf(dims);
  return DispatchStorage(instr.shape().type(), [&]<typename T>() -> Result<Value> {
    std::vector<T> elements(static_cast<size_t>(ProductOf(dims)));
    int64_t at = 0;
    for (const Value& operand : operands) {
      CopyStrided(operand.dims(), operand.Data<T>().data(),
                  StridedView{0, StridesOf(operand.dims())}, elements.data(),
                  StridedView{at * strides[along], strides});
      at += operand.dims()[along];
    }
    return Value::Array(ResultShape(instr, dims), std::move(elements));
  });
}

Result<Value> MakePad(const Instr& instr, const Value& operand, const Value& padding,
                      const PadAttrs& pad) {
  const Dims& from = operand.dims();
  Dims dims(from.size()), inside(from.size());
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t step = pad.interior[d] + 1, dilated_size = from[d] == 0 ? 0 : (from[d] - 1) * step + 1;
    dims[d] = std::max<int64_t>(0, pad.low[d] + dilated_size + pad.high[d]);
  }
  TOK_RETURN_IF_ERROR(CheckFits(instr, operand.type(), dims));
  // The elements inside the result form a box of the operand: negative padding crops it.
  StridedView source{0, StridesOf(from)}, target{0, StridesOf(dims)};
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t step = pad.interior[d] + 1;
    int64_t first = pad.low[d] >= 0 ? 0 : (-pad.low[d] + step - 1) / step;
    int64_t room = dims[d] - 1 - pad.low[d];  // greatest dilated coordinate that fits
    int64_t last = room < 0 ? -1 : std::min(from[d] - 1, room / step);
    inside[d] = std::max<int64_t>(0, last - first + 1);
    source.base += first * source.strides[d];
    target.base += (pad.low[d] + first * step) * target.strides[d];
    target.strides[d] *= step;
  }
  return DispatchStorage(operand.type(), [&]<typename T>() -> Result<Value> {
    std::vector<T> elements(static_cast<size_t>(ProductOf(dims)), padding.Data<T>()[0]);
    CopyStrided(inside, operand.Data<T>().data(), source, elements.data(), target);
    return Value::Array(ResultShape(instr, dims), std::move(elements));
  });
}

Result<Value> EvalPad(const Instr& instr, std::span<const Value> operands, Context&) {
  PadAttrs pad = instr.attrs<PadAttrs>();
  pad.interior.resize(pad.low.size(), 0);
  return MakePad(instr, operands[0], operands[1], pad);
}

}  // namespace tokamak
