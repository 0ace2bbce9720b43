#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {

// The operand holds plain numbers or other quantized values.
Result<Shape> InferUniformQuantize(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  const Shape& x = in.operands[0];
  if (written->quant() == nullptr)
    return MakeInferError(in, ErrorCode::kNotQuantized, "the result must be quantized, is {}",
                          ToString(*written));
  ElementType numbers = x.quant() == nullptr ? x.type() : x.quant()->expressed;
  if (numbers != written->quant()->expressed)
    return MakeInferError(in, ErrorCode::kQuantExpressed,
                          "the operand is {}, but the result expresses {}", HloName(numbers),
                          HloName(written->quant()->expressed));
  return InferArray(in, written->type(), Sizes(x.dims()), written);
}

Result<Shape> InferUniformDequantize(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& x = in.operands[0];
  if (x.quant() == nullptr)
    return MakeInferError(in, ErrorCode::kNotQuantized, "the operand must be quantized, is {}",
                          ToString(x));
  return InferArray(in, x.quant()->expressed, Sizes(x.dims()));
}

}  // namespace tokamak
