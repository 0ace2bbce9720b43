// Shape inference of elementwise ops: result dimensions are those of the operands. Nearly every
// instruction of a program passes here, so InferSameAsOperands has a fast path that allocates
// nothing: if all operands and the written shape are equal, the written shape is the result.
//
// Otherwise operand dimensions are unified: a dynamic size takes the known size of another operand.
// Scalars are accepted beside arrays only where HLO does so (the predicate of select, the bounds of
// clamp). Quantized operands are checked by their expressed type.

#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {
namespace {

// All operands have the dimensions of operand 0; unknown ones are filled in.
Status UnifyOperands(const InferInput& in, Sizes& dims, size_t first = 1) {
  for (size_t i = first; i < in.operands.size(); ++i) {
    if (UnifySizes(dims, in.operands[i].dims())) [[likely]]
      continue;
    return MakeInferError(in, ErrorCode::kOperandDimensions,
                          "dimensions differ: operand 0 is {}, operand {} is {}",
                          ToString(in.operands[0]), i, ToString(in.operands[i]));
  }
  return Ok();
}

// All operands have the same dimensions and one type that the op accepts.
Status CheckSameShape(const InferInput& in, Sizes& dims) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireTypes(in, 0));
  for (size_t i = 1; i < in.operands.size(); ++i) TOK_RETURN_IF_ERROR(RequireSameType(in, 0, i));
  dims.Append(in.operands[0].dims());
  return UnifyOperands(in, dims);
}

// Fast path for nearly every instruction: all operands and the result have one shape.
bool AllOneShape(const InferInput& in) {
  const Shape& x = in.operands[0];
  if (in.written == nullptr || !x.IsArray() || x.quant() != nullptr) return false;
  for (const Shape& operand : in.operands)
    if (!Compatible(operand, x)) return false;
  return Compatible(*in.written, x) && InfoOf(in.op).Takes(x.type());
}

}  // namespace

Result<Shape> InferSameAsOperands(const InferInput& in) {
  if (AllOneShape(in)) return *in.written;
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckSameShape(in, dims));
  return InferArray(in, in.operands[0].type(), dims, &in.operands[0]);
}

Result<Shape> InferToPred(const InferInput& in) {
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckSameShape(in, dims));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  return InferArray(in, ElementType::kPred, dims);
}

Result<Shape> InferToRealPart(const InferInput& in) {
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckSameShape(in, dims));
  return InferArray(in, RealPartOf(in.operands[0].type()), dims, &in.operands[0]);
}

Result<Shape> InferConvert(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  return InferArray(in, written->type(), Sizes(in.operands[0].dims()));
}

Result<Shape> InferReducePrecision(const InferInput& in) {
  const auto& attrs = in.attrs.As<ReducePrecisionAttrs>();
  if (attrs.exponent_bits < 1 || attrs.mantissa_bits < 0 || attrs.exponent_bits > 64 ||
      attrs.mantissa_bits > 64)
    return MakeInferError(in, ErrorCode::kPrecisionBits,
                          "exponent_bits must be 1 to 64 and mantissa_bits 0 to 64, are {} and {}",
                          attrs.exponent_bits, attrs.mantissa_bits);
  return InferSameAsOperands(in);
}

// Random bits as wide as an element of x decide how that element is rounded.
Result<Shape> InferStochasticConvert(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  TOK_RETURN_IF_ERROR(RequireIntegers(in, 1, ErrorCode::kUnsupportedElementType));
  const Shape &x = in.operands[0], &bits = in.operands[1];
  if (!IsReal(x.type()))
    return MakeInferError(in, ErrorCode::kUnsupportedElementType,
                          "operand 0 must be of real numbers, is {}", ToString(x));
  if (!IsUnsigned(bits.type()) || InfoOf(bits.type()).bits != InfoOf(x.type()).bits)
    return MakeInferError(in, ErrorCode::kOperandTypes,
                          "the random bits must be unsigned and as wide as {}, are {}", ToString(x),
                          ToString(bits));
  Sizes dims(x.dims());
  TOK_RETURN_IF_ERROR(UnifyOperands(in, dims));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  return InferArray(in, written->type(), dims);
}

Result<Shape> InferComplex(const InferInput& in) {
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckSameShape(in, dims));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  ElementType part = in.operands[0].type();
  if (part != ElementType::kF32 && part != ElementType::kF64)
    return MakeInferError(in, ErrorCode::kUnsupportedElementType,
                          "the parts must be f32 or f64, are {}", HloName(part));
  return InferArray(in, part == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128, dims);
}

// A compare type that contradicts the element type is an error; kNone follows the element type.
Result<Shape> InferCompare(const InferInput& in) {
  const auto& attrs = in.attrs.As<CompareAttrs>();
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckSameShape(in, dims));
  const Shape& x = in.operands[0];
  ElementType type = x.quant() == nullptr ? x.type() : x.quant()->expressed;
  bool by_order =
      attrs.direction != CompareDirection::kEq && attrs.direction != CompareDirection::kNe;
  if (IsComplex(type) && by_order)
    return MakeInferError(in, ErrorCode::kComplexOrder,
                          "complex numbers have no order, direction is {}",
                          TextOf(attrs.direction));
  bool floating = IsReal(type) || IsComplex(type);
  bool fits = true;
  switch (attrs.type) {
    case CompareType::kNone:
      break;
    case CompareType::kFloat:
      fits = floating;
      break;
    case CompareType::kTotalOrder:
      fits = IsReal(type);
      break;
    case CompareType::kSigned:
    case CompareType::kUnsigned:
      fits = !floating;
      break;
  }
  if (!fits)
    return MakeInferError(in, ErrorCode::kCompareType, "type {} does not fit operands of type {}",
                          TextOf(attrs.type), HloName(type));
  return InferArray(in, ElementType::kPred, dims);
}

Result<Shape> InferSelect(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireSameType(in, 1, 2));
  const Shape &chosen = in.operands[0], &x = in.operands[1], &y = in.operands[2];
  if (chosen.type() != ElementType::kPred)
    return MakeInferError(in, ErrorCode::kSelectPredicate, "operand 0 must be pred, is {}",
                          ToString(chosen));
  Sizes dims(x.dims());
  if (!UnifySizes(dims, y.dims()))
    return MakeInferError(in, ErrorCode::kOperandDimensions,
                          "dimensions differ: operand 1 is {}, operand 2 is {}", ToString(x),
                          ToString(y));
  if (chosen.rank() > 0 && !UnifySizes(dims, chosen.dims()))
    return MakeInferError(in, ErrorCode::kSelectPredicate,
                          "operand 0 must be a scalar or of the dimensions of {}, is {}",
                          ToString(x), ToString(chosen));
  return InferArray(in, x.type(), dims, &x);
}

Result<Shape> InferClamp(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& x = in.operands[1];
  Sizes dims(x.dims());
  for (size_t i : {size_t{0}, size_t{2}}) {
    TOK_RETURN_IF_ERROR(RequireSameType(in, 1, i));
    if (in.operands[i].rank() > 0 && !UnifySizes(dims, in.operands[i].dims()))
      return MakeInferError(in, ErrorCode::kClampBounds,
                            "operand {} must be a scalar or of the dimensions of {}, is {}", i,
                            ToString(x), ToString(in.operands[i]));
  }
  if (IsComplex(x.type()))
    return MakeInferError(in, ErrorCode::kUnsupportedElementType,
                          "operand 1 is {}, complex numbers have no order", ToString(x));
  return InferArray(in, x.type(), dims, &x);
}

// Key and counter are 32-bit words; the result packs both output words into one number.
Result<Shape> InferThreefry2x32(const InferInput& in) {
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckSameShape(in, dims));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  if (in.operands[0].type() != ElementType::kU32)
    return MakeInferError(in, ErrorCode::kUnsupportedElementType,
                          "key and counter must be u32, are {}", HloName(in.operands[0].type()));
  return InferArray(in, ElementType::kU64, dims);
}

Result<Shape> InferMap(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 1, SIZE_MAX));
  TOK_RETURN_IF_ERROR(RequireCalled(in, 1));
  size_t count = OwnOperands(in);
  Sizes dims;
  TOK_RETURN_IF_ERROR(RequireSameSizes(in, count, dims));
  const Dims& named = in.attrs.As<DimensionsAttrs>().dimensions;
  bool all = named.size() == dims.size();
  for (size_t i = 0; all && i < named.size(); ++i) all = named[i] == static_cast<int64_t>(i);
  if (!all)
    return MakeInferError(in, ErrorCode::kMapDimensions,
                          "dimensions {} are not all {} of {}, in order", ListText(named),
                          dims.size(), ToString(in.operands[0]));
  const Computation& body = *in.called[0];
  TOK_RETURN_IF_ERROR(RequireCaptures(in, body, count));
  for (size_t i = 0; i < count; ++i)
    TOK_RETURN_IF_ERROR(RequireBodyParameter(in, body, i, in.operands[i].type()));
  const Shape& root = RootShape(body);
  if (!root.IsScalar())
    return MakeInferError(in, ErrorCode::kBodyResult, "{} returns {}, expected a scalar",
                          NameOf(body), ToString(root));
  return InferArray(in, root.type(), dims, &root);
}

}  // namespace tokamak
