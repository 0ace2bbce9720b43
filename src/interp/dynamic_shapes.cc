// Ops with data-dependent result shapes. Sizes are checked before any allocation.

#include <algorithm>

#include "interp/data_movement.h"
#include "interp/evaluators.h"
#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

// A shape operand: one vector, or one scalar per dimension (HLO).
Dims ShapeOperand(std::span<const Value> operands) {
  if (operands.size() == 1 && operands[0].shape().rank() == 1) return IntsOf(operands[0]);
  Dims dims;
  for (const Value& operand : operands) dims.push_back(operand.IntAt(0));
  return dims;
}

std::string Text(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

// Checks that the dimensions are valid and agree with the static ones of the program.
Status CheckDims(const Instr& instr, const Dims& dims) {
  bool agree = CheckedElementCount(dims).has_value();
  const Dims& written = instr.shape().dims();
  if (instr.shape().IsArray()) agree = agree && written.size() == dims.size();
  for (size_t d = 0; d < dims.size() && agree; ++d)
    agree = d >= written.size() || written[d] == kDynamic || written[d] == dims[d];
  for (int64_t d : dims) agree = agree && d >= 0;
  if (!agree) {
    return RunError(ErrorCode::kBadRunTimeShape, instr,
                    "the shape given at run time is " + Text(dims) + ", the result is " +
                        ToString(instr.shape()));
  }
  return CheckFits(instr, instr.shape().type(), dims);
}

}  // namespace

Result<Value> EvalDynamicBroadcast(const Instr& instr, std::span<const Value> operands, Context&) {
  const Dims& dimensions = instr.attrs<DynamicBroadcastAttrs>().dimensions;
  Dims dims = ShapeOperand(operands.subspan(1));
  TOK_RETURN_IF_ERROR(CheckDims(instr, dims));
  for (size_t i = 0; i < dimensions.size(); ++i) {
    int64_t from = operands[0].dims()[i], to = dims[static_cast<size_t>(dimensions[i])];
    if (from != 1 && from != to) {
      return RunError(ErrorCode::kBadRunTimeShape, instr,
                      "dimension " + std::to_string(i) + " of the operand is " +
                          std::to_string(from) + ", dimension " + std::to_string(dimensions[i]) +
                          " of the result is " + std::to_string(to));
    }
  }
  return MakeBroadcast(instr, operands[0], dimensions, dims);
}

Result<Value> EvalDynamicGather(const Instr& instr, std::span<const Value> operands, Context&) {
  const GatherAttrs& attrs = instr.attrs<GatherAttrs>();
  Dims sizes = IntsOf(operands[2]);
  const Dims& dims = operands[0].dims();
  bool fits = sizes.size() == dims.size();
  for (size_t d = 0; d < dims.size() && fits; ++d) fits = sizes[d] >= 0 && sizes[d] <= dims[d];
  for (int64_t d : attrs.collapsed_slice_dims) fits = fits && sizes[static_cast<size_t>(d)] <= 1;
  for (int64_t d : attrs.operand_batching_dims) fits = fits && sizes[static_cast<size_t>(d)] <= 1;
  if (!fits) {
    return RunError(
        ErrorCode::kBadRunTimeShape, instr,
        "slice sizes are " + Text(sizes) + ", the operand is " + ToString(operands[0].shape()));
  }
  TOK_TRY(Value result, MakeGather(instr, operands[0], operands[1], attrs, sizes));
  TOK_RETURN_IF_ERROR(CheckDims(instr, result.dims()));
  return result;
}

Result<Value> EvalDynamicIota(const Instr& instr, std::span<const Value> operands, Context&) {
  Dims dims = ShapeOperand(operands);
  TOK_RETURN_IF_ERROR(CheckDims(instr, dims));
  return MakeIota(instr, instr.attrs<IotaAttrs>().dimension, dims);
}

Result<Value> EvalDynamicPad(const Instr& instr, std::span<const Value> operands, Context&) {
  PadAttrs pad{IntsOf(operands[2]), IntsOf(operands[3]), IntsOf(operands[4])};
  for (size_t d = 0; d < pad.low.size(); ++d) {
    bool sane = pad.interior[d] >= 0 && pad.interior[d] < kMaxElements &&
                std::abs(pad.low[d]) < kMaxElements && std::abs(pad.high[d]) < kMaxElements &&
                CheckedElementCount(Dims{operands[0].dims()[d], pad.interior[d] + 1});
    if (!sane) {
      return RunError(ErrorCode::kRunIndexOutOfRange, instr,
                      "padding of dimension " + std::to_string(d) + " is " +
                          Text(Dims{pad.low[d], pad.high[d], pad.interior[d]}));
    }
  }
  TOK_TRY(Value result, MakePad(instr, operands[0], operands[1], pad));
  TOK_RETURN_IF_ERROR(CheckDims(instr, result.dims()));
  return result;
}

namespace {

// The bound of a dimension whose size is known only at run time; nullopt if unbounded.
std::optional<int64_t> BoundOf(const Shape& shape, size_t d) {
  if (shape.dim(d) != kDynamic || d >= shape.bounds().size()) return std::nullopt;
  return shape.bounds()[d] == kDynamic ? std::nullopt : std::optional(shape.bounds()[d]);
}

// The first elements of `operand`, as many as `dims` hold, padded with zeros.
Value Refill(const Instr& instr, const Value& operand, const Dims& dims) {
  return DispatchStorage(operand.type(), [&]<typename T>() {
    std::span<const T> from = operand.Data<T>();
    std::vector<T> elements(static_cast<size_t>(ProductOf(dims)));
    std::copy_n(from.begin(), std::min(from.size(), elements.size()), elements.begin());
    return Value::Array(ResultShape(instr, dims), std::move(elements));
  });
}

}  // namespace

// Sizes beyond the bounds of the result are clamped, and the elements then need not all fit: XLA
// stores such a result in a buffer of its bounds and reads no further.
Result<Value> EvalDynamicReshape(const Instr& instr, std::span<const Value> operands, Context&) {
  Dims dims = ShapeOperand(operands.subspan(1));
  // A single -1 stands for the remaining size, as in XLA.
  auto open = std::find(dims.begin(), dims.end(), -1);
  if (open != dims.end() && std::count(dims.begin(), dims.end(), -1) == 1) {
    *open = 1;
    std::optional<int64_t> rest = CheckedElementCount(dims);
    *open = rest && *rest > 0 ? operands[0].ElementCount() / *rest : 0;
  }
  bool bounded = false;
  for (size_t d = 0; d < dims.size() && d < instr.shape().dims().size(); ++d) {
    std::optional<int64_t> bound = BoundOf(instr.shape(), d);
    if (bound) dims[d] = std::clamp<int64_t>(dims[d], 0, *bound);
    bounded = bounded || bound;
  }
  TOK_RETURN_IF_ERROR(CheckDims(instr, dims));
  if (ProductOf(dims) != operands[0].ElementCount() && bounded)
    return Refill(instr, operands[0], dims);
  if (ProductOf(dims) != operands[0].ElementCount()) {
    return RunError(ErrorCode::kBadRunTimeShape, instr,
                    "operand " + ToString(operands[0].shape()) + " does not fill " + Text(dims));
  }
  return operands[0].WithShape(ResultShape(instr, dims));
}

Result<Value> EvalRealDynamicSlice(const Instr& instr, std::span<const Value> operands, Context&) {
  Dims starts = IntsOf(operands[1]), limits = IntsOf(operands[2]), steps = IntsOf(operands[3]);
  const Dims& dims = operands[0].dims();
  Dims sizes(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (starts[d] < 0 || starts[d] > limits[d] || limits[d] > dims[d] || steps[d] <= 0) {
      return RunError(ErrorCode::kRunIndexOutOfRange, instr,
                      "dimension " + std::to_string(d) + " of size " + std::to_string(dims[d]) +
                          " is sliced from " + std::to_string(starts[d]) + " to " +
                          std::to_string(limits[d]) + " by " + std::to_string(steps[d]));
    }
    // Not (limit - start + step - 1) / step, which can overflow for a large step.
    sizes[d] = limits[d] == starts[d] ? 0 : (limits[d] - starts[d] - 1) / steps[d] + 1;
    steps[d] = std::min(steps[d], std::max<int64_t>(1, dims[d]));
  }
  TOK_RETURN_IF_ERROR(CheckDims(instr, sizes));
  return MakeSlice(instr, operands[0], starts, sizes, steps);
}

Result<Value> EvalGetDimensionSize(const Instr& instr, std::span<const Value> operands, Context&) {
  int64_t size = operands[0].dims()[static_cast<size_t>(instr.attrs<DimensionAttrs>().dimension)];
  return DispatchStorage(instr.shape().type(), [&]<typename T>() -> Result<Value> {
    if constexpr (std::is_same_v<T, Complex>) {
      return Unsupported(instr, "the result must be integers");
    } else {
      return Value::Scalar<T>(instr.shape().type(), static_cast<T>(size));
    }
  });
}

// Sets the size of a dimension: the value is truncated, or padded with zeros if it was smaller. A
// size beyond the bound is clamped to it.
Result<Value> EvalSetDimensionSize(const Instr& instr, std::span<const Value> operands, Context&) {
  const size_t along = static_cast<size_t>(instr.attrs<DimensionAttrs>().dimension);
  const Value& operand = operands[0];
  int64_t size = operands[1].IntAt(0), had = operand.dims()[along];
  const Shape& written = instr.shape();
  // If the dimension of the result is static, it cannot hold another size.
  if (written.dim(along) != kDynamic) return operand;
  if (std::optional<int64_t> bound = BoundOf(written, along))
    size = std::clamp<int64_t>(size, 0, *bound);
  if (size < 0) {
    return RunError(ErrorCode::kRunIndexOutOfRange, instr,
                    "dimension " + std::to_string(along) + " of " + ToString(written) +
                        " is given the size " + std::to_string(size));
  }
  if (size == had) return operand.WithShape(ResultShape(instr, operand.dims()));
  Dims dims = operand.dims(), kept = operand.dims();
  dims[along] = size;
  kept[along] = std::min(size, had);
  TOK_RETURN_IF_ERROR(CheckFits(instr, operand.type(), dims));
  return DispatchStorage(operand.type(), [&]<typename T>() -> Result<Value> {
    std::vector<T> elements(static_cast<size_t>(ProductOf(dims)));
    CopyStrided(kept, operand.Data<T>().data(), StridedView{0, StridesOf(operand.dims())},
                elements.data(), StridedView{0, StridesOf(dims)});
    return Value::Array(ResultShape(instr, dims), std::move(elements));
  });
}

}  // namespace tokamak
