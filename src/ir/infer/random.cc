#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {

// Two scalars and, in StableHLO, the sizes of the result.
Result<Shape> InferRng(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 2, 3));
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  for (size_t i : {size_t{0}, size_t{1}}) {
    const Shape& bound = in.operands[i];
    if (!bound.IsScalar() || bound.type() != written->type() || bound.quant() != nullptr)
      return MakeInferError(in, ErrorCode::kRngOperands, "operand {} is {}, the result is {}", i,
                            ToString(bound), ToString(*written));
  }
  bool normal = in.attrs.As<RngAttrs>().distribution == RngDistribution::kNormal;
  if (IsComplex(written->type()) || (normal && !IsReal(written->type())))
    return MakeInferError(in, ErrorCode::kUnsupportedElementType, "{} does not give {}",
                          TextOf(in.attrs.As<RngAttrs>().distribution), ToString(*written));
  if (in.operands.size() == 3) TOK_RETURN_IF_ERROR(RequireSizeVector(in, 2, written->rank()));
  return *written;
}

// Returns the state and the bits; HLO also allows the bits alone.
Result<Shape> InferRngBitGenerator(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWritten(in));
  const Shape& state = in.operands[0];
  // XLA accepts a state of any type at compile time and fails at run time.
  if (state.rank() != 1 || state.quant() != nullptr || state.dim(0) == 0)
    return MakeInferError(in, ErrorCode::kRngState, "the state must be a vector, is {}",
                          ToString(state));
  const Shape* bits = written;
  if (written->IsTuple()) {
    if (written->elements().size() != 2 || !CompatibleWithDynamic(written->elements()[0], state))
      return MakeInferError(in, ErrorCode::kRngState, "result is written {}, the state is {}",
                            ToString(*written), ToString(state));
    bits = &written->elements()[1];
  }
  if (!bits->IsArray() || IsComplex(bits->type()) || bits->quant() != nullptr)
    return MakeInferError(in, ErrorCode::kUnsupportedElementType, "random bits are written {}",
                          ToString(*bits));
  return *written;
}

Result<Shape> InferRngGetAndUpdateState(const InferInput& in) {
  return InferShape(in, Shape::Array(ElementType::kU64, {2}));
}

}  // namespace tokamak
