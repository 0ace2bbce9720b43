#include "ir/infer/families.h"
#include "ir/infer/require.h"

// Ops whose result shape is known only at run time. The written shape is checked against what is
// statically known.

namespace tokamak {
namespace {

Status RequireSizeScalar(const InferInput& in, size_t operand) {
  TOK_RETURN_IF_ERROR(RequireScalar(in, operand, ErrorCode::kSizeOperand));
  return RequireIntegers(in, operand, ErrorCode::kSizeOperand);
}

Result<Shape> InferWritten(const InferInput& in, const Shape& written) {
  const Shape& x = in.operands[0];
  return InferArray(in, x.type(), Sizes(written.dims()), &x);
}

}  // namespace

Result<Shape> InferDynamicBroadcast(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  const auto& attrs = in.attrs.As<DynamicBroadcastAttrs>();
  const Shape& x = in.operands[0];
  TOK_RETURN_IF_ERROR(RequireSizeVector(in, 1, written->rank()));
  TOK_RETURN_IF_ERROR(RequireCount(in, "dimensions", attrs.dimensions.size(), x.rank()));
  TOK_RETURN_IF_ERROR(RequireUnique(in, "dimensions", attrs.dimensions, written->rank()));
  for (size_t i = 0; i < attrs.dimensions.size(); ++i) {
    int64_t to = written->dim(static_cast<size_t>(attrs.dimensions[i]));
    if (x.dim(i) != 1 && !SizesAgree(x.dim(i), to))
      return MakeInferError(in, ErrorCode::kBroadcastSize,
                            "operand dimension {} is {}, result dimension {} is {}", i,
                            SizeText(x.dim(i)), attrs.dimensions[i], SizeText(to));
  }
  Dims known = attrs.known_expanding;
  known.insert(known.end(), attrs.known_nonexpanding.begin(), attrs.known_nonexpanding.end());
  if (!RequireUnique(in, "known dimensions", known, x.rank()).ok())
    return MakeInferError(
        in, ErrorCode::kExpandingDims, "known expanding {} and nonexpanding {} dimensions of {}",
        ListText(attrs.known_expanding), ListText(attrs.known_nonexpanding), ToString(x));
  return InferWritten(in, *written);
}

Result<Shape> InferDynamicIota(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  TOK_RETURN_IF_ERROR(RequireSizeVector(in, 0, written->rank()));
  TOK_RETURN_IF_ERROR(
      RequireDimension(in, "iota_dimension", in.attrs.As<IotaAttrs>().dimension, written->rank()));
  return *written;
}

Result<Shape> InferDynamicPad(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  const Shape& x = in.operands[0];
  TOK_RETURN_IF_ERROR(RequireScalar(in, 1, ErrorCode::kPadValue));
  TOK_RETURN_IF_ERROR(RequireSameType(in, 0, 1));
  for (size_t i = 2; i < 5; ++i) TOK_RETURN_IF_ERROR(RequireSizeVector(in, i, x.rank()));
  TOK_RETURN_IF_ERROR(RequireCount(in, "result", written->dims().size(), x.rank()));
  return InferWritten(in, *written);
}

// StableHLO passes one vector of sizes, HLO one scalar per dimension.
Result<Shape> InferDynamicReshape(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 1, SIZE_MAX));
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  if (in.operands.size() == 2 && in.operands[1].rank() == 1) {
    TOK_RETURN_IF_ERROR(RequireSizeVector(in, 1, written->rank()));
  } else {
    TOK_RETURN_IF_ERROR(RequireCount(in, "sizes", in.operands.size() - 1, written->rank()));
    for (size_t i = 1; i < in.operands.size(); ++i) TOK_RETURN_IF_ERROR(RequireSizeScalar(in, i));
  }
  const Shape& x = in.operands[0];
  if (!x.HasDynamicDims() && !written->HasDynamicDims() &&
      CheckedElementCount(x.dims()) != CheckedElementCount(written->dims()))
    return MakeInferError(in, ErrorCode::kReshapeCount,
                          "{} and {} have different numbers of elements", ToString(x),
                          ToString(*written));
  return InferWritten(in, *written);
}

Result<Shape> InferRealDynamicSlice(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  const Shape& x = in.operands[0];
  for (size_t i = 1; i < 4; ++i) TOK_RETURN_IF_ERROR(RequireSizeVector(in, i, x.rank()));
  TOK_RETURN_IF_ERROR(RequireCount(in, "result", written->dims().size(), x.rank()));
  for (size_t d = 0; d < x.dims().size(); ++d) {
    if (x.dim(d) != kDynamic && written->dim(d) != kDynamic && written->dim(d) > x.dim(d))
      return MakeInferError(in, ErrorCode::kSliceSize, "a slice of {} is written {}", ToString(x),
                            ToString(*written));
  }
  return InferWritten(in, *written);
}

Result<Shape> InferGetDimensionSize(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireDimension(in, "dimension", in.attrs.As<DimensionAttrs>().dimension,
                                       in.operands[0].rank()));
  return InferShape(in, Shape::Scalar(ElementType::kS32));
}

Result<Shape> InferSetDimensionSize(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireSizeScalar(in, 1));
  const Shape& x = in.operands[0];
  int64_t dimension = in.attrs.As<DimensionAttrs>().dimension;
  TOK_RETURN_IF_ERROR(RequireDimension(in, "dimension", dimension, x.rank()));
  size_t along = static_cast<size_t>(dimension);
  Sizes dims(x.dims());
  dims[along] = kDynamic;
  if (in.written != nullptr) return InferArray(in, x.type(), dims, &x);
  Dims bounds = x.bounds();
  if (bounds.empty()) bounds.assign(x.dims().size(), kDynamic);
  if (x.dim(along) != kDynamic) bounds[along] = x.dim(along);
  TOK_TRY(Shape shape, InferArray(in, x.type(), dims, &x));
  return shape.WithBounds(std::move(bounds));
}

}  // namespace tokamak
