#include "ir/infer/families.h"
#include "ir/infer/require.h"

// Transforms, factorizations and normalisation.

namespace tokamak {
namespace {

Status CheckFftTypes(const InferInput& in, FftType kind) {
  ElementType type = in.operands[0].type();
  bool wants_real = kind == FftType::kRfft;
  bool good = wants_real ? type == ElementType::kF32 || type == ElementType::kF64 : IsComplex(type);
  if (good) return Ok();
  return MakeInferError(in, ErrorCode::kFftTypes, "{} takes {} numbers, the operand is {}",
                        TextOf(kind), wants_real ? "f32 or f64" : "complex",
                        ToString(in.operands[0]));
}

// Square in its last two dimensions.
Status RequireSquare(const InferInput& in) {
  const Shape& a = in.operands[0];
  size_t rank = a.dims().size();
  if (rank >= 2 && SizesAgree(a.dim(rank - 1), a.dim(rank - 2))) return Ok();
  return MakeInferError(in, ErrorCode::kNotSquare, "operand 0 must be square matrices, is {}",
                        ToString(a));
}

}  // namespace

Result<Shape> InferFft(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const auto& attrs = in.attrs.As<FftAttrs>();
  TOK_RETURN_IF_ERROR(CheckFftTypes(in, attrs.type));
  const Shape& x = in.operands[0];
  size_t count = attrs.length.size(), rank = x.dims().size();
  bool good = count >= 1 && count <= 3 && count <= rank;
  for (size_t i = 0; good && i < count; ++i) {
    int64_t size = x.dim(rank - count + i), length = attrs.length[i];
    bool half = attrs.type == FftType::kIrfft && i + 1 == count;
    good = length >= 0 && SizesAgree(size, half && length > 0 ? length / 2 + 1 : length);
  }
  if (!good)
    return MakeInferError(in, ErrorCode::kFftLength, "{} of length {} does not fit {}",
                          TextOf(attrs.type), ListText(attrs.length), ToString(x));
  Sizes dims(x.dims());
  int64_t last = attrs.length.back();
  ElementType type = x.type();
  if (attrs.type == FftType::kRfft) {
    dims[rank - 1] = last == 0 ? 0 : last / 2 + 1;
    type = type == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128;
  } else if (attrs.type == FftType::kIrfft) {
    dims[rank - 1] = last;
    type = RealPartOf(type);
  }
  return InferArray(in, type, dims);
}

Result<Shape> InferCholesky(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  TOK_RETURN_IF_ERROR(RequireTypes(in, 0));
  TOK_RETURN_IF_ERROR(RequireSquare(in));
  return InferArray(in, in.operands[0].type(), Sizes(in.operands[0].dims()));
}

Result<Shape> InferTriangularSolve(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  TOK_RETURN_IF_ERROR(RequireTypes(in, 0));
  TOK_RETURN_IF_ERROR(RequireSameType(in, 0, 1));
  TOK_RETURN_IF_ERROR(RequireSquare(in));
  const Shape &a = in.operands[0], &b = in.operands[1];
  size_t rank = a.dims().size();
  bool good = b.dims().size() == rank;
  for (size_t d = 0; good && d + 2 < rank; ++d) good = SizesAgree(a.dim(d), b.dim(d));
  if (good) {
    size_t along = in.attrs.As<TriangularSolveAttrs>().left_side ? rank - 2 : rank - 1;
    good = SizesAgree(a.dim(rank - 1), b.dim(along));
  }
  if (!good)
    return MakeInferError(in, ErrorCode::kSolveShapes, "a is {}, b is {}, left_side is {}",
                          ToString(a), ToString(b), in.attrs.As<TriangularSolveAttrs>().left_side);
  return InferArray(in, b.type(), Sizes(b.dims()));
}

namespace {

// Operands 1 .. `vectors` are vectors along the feature dimension of operand 0.
Result<int64_t> CheckFeatures(const InferInput& in, size_t vectors) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireTypes(in, 0));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  const Shape& x = in.operands[0];
  int64_t feature = in.attrs.As<BatchNormAttrs>().feature_index;
  TOK_RETURN_IF_ERROR(RequireDimension(in, "feature_index", feature, x.rank()));
  int64_t size = x.dim(static_cast<size_t>(feature));
  for (size_t i = 1; i <= vectors; ++i) {
    const Shape& vector = in.operands[i];
    if (vector.rank() != 1 || !SizesAgree(vector.dim(0), size) || !IsReal(vector.type()) ||
        vector.quant() != nullptr)
      return MakeInferError(in, ErrorCode::kFeatureVector,
                            "operand {} must be a vector of {}, is {}", i, SizeText(size),
                            ToString(vector));
    size = KnownSize(size, vector.dim(0));
  }
  return size;
}

Result<Shape> InferWithVectors(const InferInput& in, int64_t features) {
  const Shape& x = in.operands[0];
  Sizes vector;
  vector.push_back(features);
  std::vector<Shape> parts;
  for (size_t i = 0; i < 3; ++i) {
    TOK_TRY(const Shape* written, WrittenPart(in, i, 3));
    TOK_TRY(Shape part, i == 0 ? InferResult(in, written, x.type(), Sizes(x.dims()))
                               : InferResult(in, written, in.operands[1].type(), vector));
    parts.push_back(std::move(part));
  }
  return InferResults(in, std::move(parts));
}

}  // namespace

Result<Shape> InferBatchNormTraining(const InferInput& in) {
  TOK_TRY(int64_t features, CheckFeatures(in, 2));
  return InferWithVectors(in, features);
}

Result<Shape> InferBatchNormInference(const InferInput& in) {
  TOK_RETURN_IF_ERROR(CheckFeatures(in, 4));
  return InferArray(in, in.operands[0].type(), Sizes(in.operands[0].dims()));
}

Result<Shape> InferBatchNormGrad(const InferInput& in) {
  TOK_TRY(int64_t features, CheckFeatures(in, 3));
  Sizes dims(in.operands[0].dims());
  if (!UnifySizes(dims, in.operands[4].dims()))
    return MakeInferError(in, ErrorCode::kOperandDimensions,
                          "dimensions differ: operand 0 is {}, operand 4 is {}",
                          ToString(in.operands[0]), ToString(in.operands[4]));
  TOK_RETURN_IF_ERROR(RequireSameType(in, 0, 4));
  return InferWithVectors(in, features);
}

}  // namespace tokamak
