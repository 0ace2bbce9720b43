#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {

Result<Shape> InferParameter(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferConstant(const InferInput& in) {
  const Shape& shape = in.attrs.As<ConstantAttrs>().literal.shape();
  if (in.written == nullptr) return shape;
  // A quantized constant's literal holds the stored integers.
  if (Compatible(*in.written, shape) ||
      (in.written->quant() != nullptr && Compatible(in.written->WithoutQuant(), shape)))
    return *in.written;
  return MakeInferError(in, ErrorCode::kConstantShape, "constant is {}, its literal is {}",
                        ToString(*in.written), ToString(shape));
}

Result<Shape> InferIota(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  TOK_RETURN_IF_ERROR(
      RequireDimension(in, "iota_dimension", in.attrs.As<IotaAttrs>().dimension, written->rank()));
  ElementType type = written->quant() == nullptr ? written->type() : written->quant()->expressed;
  if (!InfoOf(in.op).Takes(type) && type != ElementType::kPred)
    return MakeInferError(in, ErrorCode::kUnsupportedElementType, "result is {}, numbers needed",
                          ToString(*written));
  return *written;
}

Result<Shape> InferDeviceId(const InferInput& in) {
  return InferShape(in, Shape::Scalar(ElementType::kU32));
}

}  // namespace tokamak
