#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {
namespace {

// All operands have the dimensions of operand 0; unknown ones are filled in.
Status UnifyOperands(const InferInput& in, Sizes& dims, size_t first = 1) {
  for (size_t i = first; i < in.operands.size(); ++i) {
    if (UnifySizes(dims, in.operands[i].dims())) [[likely]]
      continue;
    return Fault(in, ErrorCode::kOperandDimensions,
                 "dimensions differ: operand 0 is {}, operand {} is {}", ToString(in.operands[0]),
                 i, ToString(in.operands[i]));
  }
  return Ok();
}

// Operands of one type that the op takes, and of the same dimensions.
Status CheckAlike(const InferInput& in, Sizes& dims) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireTypes(in, 0));
  for (size_t i = 1; i < in.operands.size(); ++i) TOK_RETURN_IF_ERROR(RequireSameType(in, 0, i));
  dims.Append(in.operands[0].dims());
  return UnifyOperands(in, dims);
}

// The fast way for what is nearly every instruction: everything is one shape.
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
  TOK_RETURN_IF_ERROR(CheckAlike(in, dims));
  return GiveArray(in, in.operands[0].type(), dims, &in.operands[0]);
}

Result<Shape> InferToPred(const InferInput& in) {
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckAlike(in, dims));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  return GiveArray(in, ElementType::kPred, dims);
}

Result<Shape> InferToRealPart(const InferInput& in) {
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckAlike(in, dims));
  return GiveArray(in, RealPartOf(in.operands[0].type()), dims, &in.operands[0]);
}

Result<Shape> InferConvert(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  return GiveArray(in, written->type(), Sizes(in.operands[0].dims()));
}

Result<Shape> InferReducePrecision(const InferInput& in) {
  const auto& attrs = in.attrs.As<ReducePrecisionAttrs>();
  if (attrs.exponent_bits < 1 || attrs.mantissa_bits < 0 || attrs.exponent_bits > 64 ||
      attrs.mantissa_bits > 64)
    return Fault(in, ErrorCode::kPrecisionBits,
                 "exponent_bits must be 1 to 64 and mantissa_bits 0 to 64, are {} and {}",
                 attrs.exponent_bits, attrs.mantissa_bits);
  return InferSameAsOperands(in);
}

// Random bits of the width of x decide how each number of x is rounded.
Result<Shape> InferStochasticConvert(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  TOK_RETURN_IF_ERROR(RequireIntegers(in, 1, ErrorCode::kElementTypeRefused));
  const Shape &x = in.operands[0], &bits = in.operands[1];
  if (!IsReal(x.type()))
    return Fault(in, ErrorCode::kElementTypeRefused, "operand 0 must hold real numbers, is {}",
                 ToString(x));
  if (!IsUnsigned(bits.type()) || InfoOf(bits.type()).bits != InfoOf(x.type()).bits)
    return Fault(in, ErrorCode::kOperandTypes,
                 "the random bits must be unsigned and as wide as {}, are {}", ToString(x),
                 ToString(bits));
  Sizes dims(x.dims());
  TOK_RETURN_IF_ERROR(UnifyOperands(in, dims));
  TOK_TRY(const Shape* written, RequireWrittenArray(in));
  return GiveArray(in, written->type(), dims);
}

Result<Shape> InferComplex(const InferInput& in) {
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckAlike(in, dims));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  ElementType part = in.operands[0].type();
  if (part != ElementType::kF32 && part != ElementType::kF64)
    return Fault(in, ErrorCode::kElementTypeRefused, "the parts must be f32 or f64, are {}",
                 HloName(part));
  return GiveArray(in, part == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128, dims);
}

Result<Shape> InferCompare(const InferInput& in) {
  const auto& attrs = in.attrs.As<CompareAttrs>();
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckAlike(in, dims));
  const Shape& x = in.operands[0];
  ElementType type = x.quant() == nullptr ? x.type() : x.quant()->expressed;
  bool by_order =
      attrs.direction != CompareDirection::kEq && attrs.direction != CompareDirection::kNe;
  if (IsComplex(type) && by_order)
    return Fault(in, ErrorCode::kComplexOrder, "complex numbers have no order, direction is {}",
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
    return Fault(in, ErrorCode::kCompareType, "type {} does not fit operands of type {}",
                 TextOf(attrs.type), HloName(type));
  return GiveArray(in, ElementType::kPred, dims);
}

Result<Shape> InferSelect(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireSameType(in, 1, 2));
  const Shape &chosen = in.operands[0], &x = in.operands[1], &y = in.operands[2];
  if (chosen.type() != ElementType::kPred)
    return Fault(in, ErrorCode::kSelectPredicate, "operand 0 must be pred, is {}",
                 ToString(chosen));
  Sizes dims(x.dims());
  if (!UnifySizes(dims, y.dims()))
    return Fault(in, ErrorCode::kOperandDimensions,
                 "dimensions differ: operand 1 is {}, operand 2 is {}", ToString(x), ToString(y));
  if (chosen.rank() > 0 && !UnifySizes(dims, chosen.dims()))
    return Fault(in, ErrorCode::kSelectPredicate,
                 "operand 0 must be a scalar or of the dimensions of {}, is {}", ToString(x),
                 ToString(chosen));
  return GiveArray(in, x.type(), dims, &x);
}

Result<Shape> InferClamp(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& x = in.operands[1];
  Sizes dims(x.dims());
  for (size_t i : {size_t{0}, size_t{2}}) {
    TOK_RETURN_IF_ERROR(RequireSameType(in, 1, i));
    if (in.operands[i].rank() > 0 && !UnifySizes(dims, in.operands[i].dims()))
      return Fault(in, ErrorCode::kClampBounds,
                   "operand {} must be a scalar or of the dimensions of {}, is {}", i, ToString(x),
                   ToString(in.operands[i]));
  }
  if (IsComplex(x.type()))
    return Fault(in, ErrorCode::kElementTypeRefused,
                 "operand 1 is {}, complex numbers have no order", ToString(x));
  return GiveArray(in, x.type(), dims, &x);
}

// Key and counter are words; what comes out is both words in one number.
Result<Shape> InferThreefry2x32(const InferInput& in) {
  Sizes dims;
  TOK_RETURN_IF_ERROR(CheckAlike(in, dims));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  if (in.operands[0].type() != ElementType::kU32)
    return Fault(in, ErrorCode::kElementTypeRefused, "key and counter must be u32, are {}",
                 HloName(in.operands[0].type()));
  return GiveArray(in, ElementType::kU64, dims);
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
    return Fault(in, ErrorCode::kMapDimensions, "dimensions {} are not all {} of {}, in order",
                 ListText(named), dims.size(), ToString(in.operands[0]));
  const Computation& body = *in.called[0];
  TOK_RETURN_IF_ERROR(RequireCaptures(in, body, count));
  for (size_t i = 0; i < count; ++i)
    TOK_RETURN_IF_ERROR(RequireBodyParameter(in, body, i, in.operands[i].type()));
  const Shape& root = RootShape(body);
  if (!root.IsScalar())
    return Fault(in, ErrorCode::kBodyResult, "{} gives {}, a scalar needed", NameOf(body),
                 ToString(root));
  return GiveArray(in, root.type(), dims, &root);
}

}  // namespace tokamak
