// Shape inference of ops that move elements without computing: broadcast, reshape, transpose,
// slices, concatenate, pad and bitcasts. One function per op both infers the shape and verifies it.
// Where HLO writes the result shape (broadcast, reshape, bitcast-convert), the written shape is
// checked against the operand and returned.
//
// A dynamic size (kDynamic) agrees with any size. Sizes are computed with overflow checks: 128-bit
// integers for padding, MultiplyAdd for sums; a dimension over the limit is an error, not a wrapped
// number. Element types change in bitcasts only.

#include "ir/bitcast.h"
#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {
namespace {

// The element type of the operand with computed dimensions.
Result<Shape> InferSameType(const InferInput& in, const Sizes& dims) {
  const Shape& x = in.operands[0];
  // The axis of per-axis parameters moves with its dimension; the written type says where to.
  return InferArray(in, x.type(), dims, &x);
}

// The `count` start indices after operand `first`: integer scalars of one type.
Status RequireStarts(const InferInput& in, size_t first, int64_t count) {
  if (static_cast<int64_t>(in.operands.size() - first) != count)
    return MakeInferError(in, ErrorCode::kStartIndices,
                          "{} has {} dimensions, but there are {} start indices",
                          ToString(in.operands[0]), count, in.operands.size() - first);
  for (size_t i = first; i < in.operands.size(); ++i) {
    const Shape& start = in.operands[i];
    if (!start.IsScalar() || !IsInteger(start.type()) || start.quant() != nullptr ||
        start.type() != in.operands[first].type())
      return MakeInferError(in, ErrorCode::kStartIndices,
                            "start indices must be integer scalars of one type, operand {} is {}",
                            i, ToString(start));
  }
  return Ok();
}

// Bits of an element in memory; a pred occupies a byte.
int64_t WidthOf(ElementType type) {
  return type == ElementType::kPred ? 8 : InfoOf(type).bits;
}

// Bits of an array without dynamic dimensions; -1 otherwise, or if too large.
__int128 BitsOf(const Shape& shape) {
  if (shape.HasDynamicDims()) return -1;
  auto count = CheckedElementCount(shape.dims());
  return count ? static_cast<__int128>(*count) * WidthOf(shape.type()) : -1;
}

// Dimensions of a bitcast-convert: the narrower side has an additional last dimension, the number
// of narrow elements per wide element.
bool BitcastDims(const Shape& x, BitcastWidths widths, Sizes& dims) {
  int64_t from_bits = widths.from, to_bits = widths.to;
  dims.Append(x.dims());
  if (from_bits == to_bits) return true;
  if (from_bits > to_bits) {
    dims.push_back(from_bits / to_bits);
    return from_bits % to_bits == 0;
  }
  if (to_bits % from_bits != 0 || x.rank() == 0) return false;
  if (!SizesAgree(x.dims().back(), to_bits / from_bits)) return false;
  dims = Sizes();
  dims.Append(std::span(x.dims()).first(x.dims().size() - 1));
  return true;
}

}  // namespace

Result<Shape> InferSameAsOperand(const InferInput& in) {
  return InferShape(in, in.operands[0]);
}

Result<Shape> InferBitcastConvert(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  const Shape& x = in.operands[0];
  if (x.quant() != nullptr || written->quant() != nullptr) return *written;
  Sizes dims;
  BitcastWidths widths = WidthsOfBitcast(x, *written);
  bool fits = IsComplex(x.type()) == IsComplex(written->type()) && BitcastDims(x, widths, dims);
  if (!fits)
    return MakeInferError(in, ErrorCode::kBitcastWidth, "{} has {} bits an element, {} has {}",
                          ToString(x), widths.from, ToString(*written), widths.to);
  return InferArray(in, written->type(), dims);
}

// The bytes are the same; the layouts define their arrangement.
Result<Shape> InferBitcast(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  const Shape& x = in.operands[0];
  if (!x.IsArray() || !written->IsArray()) return InferShape(in, x);
  __int128 before = BitsOf(x), after = BitsOf(*written);
  if (before != after && before >= 0 && after >= 0)
    return MakeInferError(in, ErrorCode::kBitcastWidth, "{} has {} bits, {} has {}", ToString(x),
                          static_cast<int64_t>(before), ToString(*written),
                          static_cast<int64_t>(after));
  return *written;
}

Result<Shape> InferBroadcast(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  const Shape& x = in.operands[0];
  const Dims& map = in.attrs.As<DimensionsAttrs>().dimensions;
  TOK_RETURN_IF_ERROR(RequireCount(in, "dimensions", map.size(), x.rank()));
  TOK_RETURN_IF_ERROR(RequireUnique(in, "dimensions", map, written->rank()));
  for (size_t i = 0; i < map.size(); ++i) {
    int64_t to = written->dim(static_cast<size_t>(map[i]));
    if (x.dim(i) != 1 && !SizesAgree(x.dim(i), to))
      return MakeInferError(in, ErrorCode::kBroadcastSize,
                            "operand dimension {} is {}, result dimension {} is {}", i,
                            SizeText(x.dim(i)), map[i], SizeText(to));
  }
  return InferSameType(in, Sizes(written->dims()));
}

Result<Shape> InferReshape(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  const Shape& x = in.operands[0];
  if (!x.HasDynamicDims() && !written->HasDynamicDims()) {
    auto before = CheckedElementCount(x.dims()), after = CheckedElementCount(written->dims());
    if (before != after)
      return MakeInferError(in, ErrorCode::kReshapeCount, "{} has {} elements, {} has {}",
                            ToString(x), before.value_or(-1), ToString(*written),
                            after.value_or(-1));
  }
  return InferSameType(in, Sizes(written->dims()));
}

Result<Shape> InferTranspose(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& x = in.operands[0];
  const Dims& permutation = in.attrs.As<DimensionsAttrs>().dimensions;
  TOK_RETURN_IF_ERROR(RequirePermutation(in, "dimensions", permutation, x.rank()));
  Sizes dims;
  for (int64_t d : permutation) dims.push_back(x.dim(static_cast<size_t>(d)));
  return InferSameType(in, dims);
}

Result<Shape> InferReverse(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& x = in.operands[0];
  TOK_RETURN_IF_ERROR(
      RequireUnique(in, "dimensions", in.attrs.As<DimensionsAttrs>().dimensions, x.rank()));
  return InferSameType(in, Sizes(x.dims()));
}

Result<Shape> InferSlice(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& x = in.operands[0];
  const auto& attrs = in.attrs.As<SliceAttrs>();
  TOK_RETURN_IF_ERROR(RequireCount(in, "starts", attrs.starts.size(), x.rank()));
  TOK_RETURN_IF_ERROR(RequireCount(in, "limits", attrs.limits.size(), x.rank()));
  TOK_RETURN_IF_ERROR(RequireCount(in, "strides", attrs.strides.size(), x.rank()));
  Sizes dims;
  for (size_t i = 0; i < x.dims().size(); ++i) {
    int64_t start = attrs.starts[i], limit = attrs.limits[i], stride = attrs.strides[i];
    if (stride < 1)
      return MakeInferError(in, ErrorCode::kStrideRange, "the stride of dimension {} is {}", i,
                            stride);
    if (start < 0 || start > limit || (x.dim(i) != kDynamic && limit > x.dim(i)))
      return MakeInferError(in, ErrorCode::kSliceRange, "[{}:{}] is outside dimension {} of {}",
                            start, limit, i, ToString(x));
    int64_t size = limit - start;
    dims.push_back(size / stride + (size % stride != 0 ? 1 : 0));
  }
  return InferSameType(in, dims);
}

Result<Shape> InferDynamicSlice(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 1, SIZE_MAX));
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& x = in.operands[0];
  const Dims& sizes = in.attrs.As<DynamicSliceAttrs>().sizes;
  TOK_RETURN_IF_ERROR(RequireStarts(in, 1, x.rank()));
  TOK_RETURN_IF_ERROR(RequireCount(in, "dynamic_slice_sizes", sizes.size(), x.rank()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || (x.dim(i) != kDynamic && sizes[i] > x.dim(i)))
      return MakeInferError(in, ErrorCode::kSliceSize, "size {} does not fit dimension {} of {}",
                            sizes[i], i, ToString(x));
  }
  return InferSameType(in, Sizes(sizes));
}

Result<Shape> InferDynamicUpdateSlice(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 2, SIZE_MAX));
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireSameType(in, 0, 1));
  const Shape &x = in.operands[0], &update = in.operands[1];
  TOK_RETURN_IF_ERROR(RequireStarts(in, 2, x.rank()));
  bool fits = x.rank() == update.rank();
  for (size_t i = 0; fits && i < x.dims().size(); ++i)
    fits = x.dim(i) == kDynamic || update.dim(i) == kDynamic || update.dim(i) <= x.dim(i);
  if (!fits)
    return MakeInferError(in, ErrorCode::kSliceSize, "the update {} does not fit into {}",
                          ToString(update), ToString(x));
  return InferSameType(in, Sizes(x.dims()));
}

Result<Shape> InferConcatenate(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 1, SIZE_MAX));
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& x = in.operands[0];
  int64_t dimension = in.attrs.As<DimensionAttrs>().dimension;
  TOK_RETURN_IF_ERROR(RequireDimension(in, "dimension", dimension, x.rank()));
  size_t along = static_cast<size_t>(dimension);
  Sizes dims(x.dims());
  int64_t total = 0;
  for (size_t i = 0; i < in.operands.size(); ++i) {
    const Shape& part = in.operands[i];
    TOK_RETURN_IF_ERROR(RequireSameType(in, 0, i));
    if (part.rank() == x.rank()) dims[along] = part.dim(along);
    if (!UnifySizes(dims, part.dims()))
      return MakeInferError(
          in, ErrorCode::kConcatenateShapes,
          "operands differ outside dimension {}: operand 0 is {}, operand {} is {}", dimension,
          ToString(x), i, ToString(part));
    bool unknown = total == kDynamic || part.dim(along) == kDynamic;
    if (unknown) {
      total = kDynamic;
    } else if (!MultiplyAdd(total, part.dim(along), 1, &total)) {
      return MakeInferError(in, ErrorCode::kSizeOverflow,
                            "dimension {} of the result is over the limit", dimension);
    }
  }
  dims[along] = total;
  return InferSameType(in, dims);
}

Result<Shape> InferPad(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape &x = in.operands[0], &value = in.operands[1];
  if (!value.IsScalar())
    return MakeInferError(in, ErrorCode::kPadValue, "the padding value must be a scalar, is {}",
                          ToString(value));
  TOK_RETURN_IF_ERROR(RequireSameType(in, 0, 1));
  const auto& attrs = in.attrs.As<PadAttrs>();
  TOK_RETURN_IF_ERROR(RequireCount(in, "low", attrs.low.size(), x.rank()));
  TOK_RETURN_IF_ERROR(RequireCount(in, "high", attrs.high.size(), x.rank()));
  TOK_RETURN_IF_ERROR(RequireCount(in, "interior", attrs.interior.size(), x.rank()));
  Sizes dims;
  for (size_t i = 0; i < x.dims().size(); ++i) {
    if (attrs.interior[i] < 0)
      return MakeInferError(in, ErrorCode::kPadInterior,
                            "the interior padding of dimension {} is {}", i, attrs.interior[i]);
    if (x.dim(i) == kDynamic) {
      dims.push_back(kDynamic);
      continue;
    }
    __int128 gaps = x.dim(i) > 0 ? x.dim(i) - 1 : 0;
    __int128 size = gaps * attrs.interior[i] + x.dim(i) + attrs.low[i] + attrs.high[i];
    if (size < 0)
      return MakeInferError(in, ErrorCode::kPaddedSize,
                            "dimension {} of {} becomes {}, padded by {} and {}", i, ToString(x),
                            static_cast<int64_t>(std::max<__int128>(size, INT64_MIN)), attrs.low[i],
                            attrs.high[i]);
    if (size > kMaxElements)
      return MakeInferError(in, ErrorCode::kSizeOverflow,
                            "dimension {} of the result is over the limit", i);
    dims.push_back(static_cast<int64_t>(size));
  }
  return InferSameType(in, dims);
}

}  // namespace tokamak
