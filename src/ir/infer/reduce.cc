#include "ir/infer/families.h"
#include "ir/infer/require.h"
#include "ir/infer/window.h"

// reduce, reduce-window and select-and-scatter. The first two take n inputs,
// then n initial values, then captures.

namespace tokamak {
namespace {

// Checks that the inputs agree in their dimensions, which are stored in `dims`, and that the
// initial values are scalars.
Result<size_t> CheckInputs(const InferInput& in, Sizes& dims) {
  size_t count = OwnOperands(in);
  if (count == 0 || count % 2 != 0)
    return MakeInferError(in, ErrorCode::kInputsAndInits,
                          "{} operands: expected inputs and as many initial values", count);
  size_t n = count / 2;
  TOK_RETURN_IF_ERROR(RequireSameSizes(in, n, dims));
  for (size_t i = n; i < count; ++i)
    TOK_RETURN_IF_ERROR(RequireScalar(in, i, ErrorCode::kInitialValue));
  return n;
}

// n arrays with the dimensions `dims` and the element types that the body returns.
Result<Shape> InferReduced(const InferInput& in, size_t n, const Sizes& dims) {
  std::vector<ElementType> types(n);
  TOK_RETURN_IF_ERROR(
      RequireReducer(in, 0, in.operands.first(n), in.operands.subspan(n, n), types.data()));
  if (n == 1) return InferArray(in, types[0], dims, &RootShape(*in.called[0]));
  std::vector<Shape> parts;
  parts.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    TOK_TRY(const Shape* written, WrittenPart(in, i, n));
    TOK_TRY(Shape part,
            InferResult(in, written, types[i], dims, &RootShape(*in.called[0]).elements()[i]));
    parts.push_back(std::move(part));
  }
  return InferResults(in, std::move(parts));
}

}  // namespace

Result<Shape> InferReduce(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireCalled(in, 1));
  Sizes inputs;
  TOK_TRY(size_t n, CheckInputs(in, inputs));
  const Dims& reduced = in.attrs.As<DimensionsAttrs>().dimensions;
  int64_t rank = in.operands[0].rank();
  TOK_RETURN_IF_ERROR(RequireUnique(in, "dimensions", reduced, rank));
  uint64_t reduced_dims = 0;
  static_assert(kMaxRank <= 64);
  for (int64_t d : reduced) reduced_dims |= uint64_t{1} << d;
  Sizes dims;
  for (int64_t d = 0; d < rank; ++d)
    if ((reduced_dims >> d & 1) == 0) dims.push_back(inputs[static_cast<size_t>(d)]);
  return InferReduced(in, n, dims);
}

Status RequireWindow(const InferInput& in, const Window& window) {
  for (size_t i = 0; i < window.size(); ++i) {
    const WindowDim& w = window[i];
    if (w.size >= 1 && w.stride >= 1 && w.base_dilation >= 1 && w.window_dilation >= 1) [[likely]]
      continue;
    return MakeInferError(
        in, ErrorCode::kWindowRange,
        "window dimension {} has size {}, stride {}, dilations {} and {}: all must be "
        "positive",
        i, w.size, w.stride, w.base_dilation, w.window_dilation);
  }
  return Ok();
}

Result<int64_t> WindowCount(const InferInput& in, int64_t size, const WindowDim& window) {
  if (size == kDynamic) return size;
  using Wide = __int128;
  Wide dilated = size == 0 ? 0 : static_cast<Wide>(size - 1) * window.base_dilation + 1;
  Wide padded = dilated + window.pad_low + window.pad_high;
  Wide reach = static_cast<Wide>(window.size - 1) * window.window_dilation + 1;
  if (padded <= 0 || reach > padded) return int64_t{0};
  Wide count = (padded - reach) / window.stride + 1;
  if (padded > kMaxElements || reach > kMaxElements || count > kMaxElements)
    return MakeInferError(
        in, ErrorCode::kSizeOverflow,
        "a dimension of {} padded by {} and {} and dilated by {} is over the limit", size,
        window.pad_low, window.pad_high, window.base_dilation);
  return static_cast<int64_t>(count);
}

namespace {

// The dimensions that result from applying `window` to an array with dimensions `dims`.
Status ApplyWindow(const InferInput& in, const Window& window, const Sizes& dims, Sizes& result) {
  if (window.size() != dims.size())
    return MakeInferError(in, ErrorCode::kWindowRank, "window has {} dimensions, {} has {}",
                          window.size(), ToString(in.operands[0]), dims.size());
  TOK_RETURN_IF_ERROR(RequireWindow(in, window));
  for (size_t i = 0; i < window.size(); ++i) {
    TOK_TRY(int64_t count, WindowCount(in, dims[i], window[i]));
    result.push_back(count);
  }
  return Ok();
}

}  // namespace

Result<Shape> InferReduceWindow(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireCalled(in, 1));
  Sizes inputs, dims;
  TOK_TRY(size_t n, CheckInputs(in, inputs));
  TOK_RETURN_IF_ERROR(ApplyWindow(in, in.attrs.As<WindowAttrs>().window, inputs, dims));
  return InferReduced(in, n, dims);
}

Result<Shape> InferSelectAndScatter(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireCalled(in, 2));
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape &x = in.operands[0], &source = in.operands[1];
  TOK_RETURN_IF_ERROR(RequireScalar(in, 2, ErrorCode::kInitialValue));
  TOK_RETURN_IF_ERROR(RequireSameType(in, 0, 1));
  Sizes dims(x.dims()), windows;
  TOK_RETURN_IF_ERROR(ApplyWindow(in, in.attrs.As<WindowAttrs>().window, dims, windows));
  if (!UnifySizes(windows, source.dims()))
    return MakeInferError(in, ErrorCode::kSourceShape,
                          "the source is {}, the windows over {} are {}", ToString(source),
                          ToString(x), ListText(windows.span()));
  const Computation& select = *in.called[0];
  TOK_RETURN_IF_ERROR(RequireCaptures(in, select, 2));
  for (size_t i : {size_t{0}, size_t{1}})
    TOK_RETURN_IF_ERROR(RequireBodyParameter(in, select, i, x.type()));
  const Shape& chosen = RootShape(select);
  if (!chosen.IsScalar() || chosen.type() != ElementType::kPred)
    return MakeInferError(in, ErrorCode::kBodyResult, "{} must return pred[], returns {}",
                          NameOf(select), ToString(chosen));
  ElementType type{};
  TOK_RETURN_IF_ERROR(
      RequireReducer(in, 1, in.operands.subspan(1, 1), in.operands.subspan(2, 1), &type));
  return InferArray(in, type, dims, &RootShape(*in.called[1]));
}

}  // namespace tokamak
