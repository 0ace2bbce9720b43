// Unary and binary elementwise ops: the type is dispatched once per array, then one function from
// scalar_ops.h runs over the elements and each result is rounded.

#include <cmath>
#include <limits>
#include <utility>

#include "interp/evaluators.h"
#include "interp/rounding.h"
#include "interp/scalar_ops.h"

namespace tokamak {
namespace {

Error NoSuchElements(const Instr& instr, const Value& operand) {
  return Unsupported(instr,
                     "does not take elements of type " + std::string(HloName(operand.type())));
}

// Applies fn to all elements, in place if this is the operand's last use.
template <typename T, typename Fn>
Value InPlace(const Instr& instr, std::span<const Value> operands, Fn fn) {
  Shape shape = ResultShape(instr, operands[0]);
  std::vector<T> elements = TakeOperand(operands, 0).TakeData<T>();
  for (T& element : elements) element = fn(element);
  return Value::Array(std::move(shape), std::move(elements));
}

// Applies fn to all elements, into an array of another kind.
template <typename T, typename R, typename Fn>
Value Into(const Instr& instr, const Value& operand, Fn fn) {
  std::span<const T> from = operand.Data<T>();
  std::vector<R> elements(from.size());
  for (size_t i = 0; i < from.size(); ++i) elements[i] = fn(from[i]);
  return Value::Array(ResultShape(instr, operand), std::move(elements));
}

template <typename T, typename Fn>
Value Combine(const Instr& instr, std::span<const Value> operands, Fn fn) {
  Shape shape = ResultShape(instr, operands[0]);
  std::vector<T> elements = TakeOperand(operands, 0).TakeData<T>();
  std::span<const T> others = operands[1].Data<T>();
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = fn(elements[i], others[i]);
  return Value::Array(std::move(shape), std::move(elements));
}

Result<Value> UnaryReal(const Instr& instr, std::span<const Value> operands, Context& context) {
  if (RealTestFn test = RealTest(instr.op())) {
    return Into<double, uint8_t>(instr, operands[0],
                                 [test](double x) { return static_cast<uint8_t>(test(x)); });
  }
  ElementType type = operands[0].type();
  RealUnaryFn fn = RealUnary(instr.op(), IsWide(type, context.mode()));
  if (fn == nullptr) return NoSuchElements(instr, operands[0]);
  Rounder round(type, context.mode());
  return InPlace<double>(instr, operands, [=](double x) { return round(fn(x)); });
}

Result<Value> UnaryComplex(const Instr& instr, std::span<const Value> operands, Context& context) {
  ElementType type = operands[0].type();
  Rounder round(type, context.mode());
  switch (instr.op()) {
    case Op::kAbs:
      return Into<Complex, double>(instr, operands[0], [=](Complex z) {
        // As in XLA; Annex G treats (inf, NaN) as infinite.
        if (std::isnan(z.real()) || std::isnan(z.imag()))
          return std::numeric_limits<double>::quiet_NaN();
        return round(static_cast<double>(
            std::hypot(static_cast<long double>(z.real()), static_cast<long double>(z.imag()))));
      });
    case Op::kReal:
      return Into<Complex, double>(instr, operands[0], [](Complex z) { return z.real(); });
    case Op::kImag:
      return Into<Complex, double>(instr, operands[0], [](Complex z) { return z.imag(); });
    case Op::kIsFinite:
      return Into<Complex, uint8_t>(instr, operands[0], [](Complex z) {
        return static_cast<uint8_t>(std::isfinite(z.real()) && std::isfinite(z.imag()));
      });
    default:
      break;
  }
  ComplexUnaryFn fn = ComplexUnary(instr.op(), IsWide(type, context.mode()));
  if (fn == nullptr) return NoSuchElements(instr, operands[0]);
  return InPlace<Complex>(instr, operands, [=](Complex z) { return round(fn(z)); });
}

Result<Value> Unary(const Instr& instr, std::span<const Value> operands, Context& context) {
  ElementType type = operands[0].type();
  int bits = InfoOf(type).bits;
  Rounder round(type, context.mode());
  switch (KindOf(type)) {
    case TypeKind::kReal:
      return UnaryReal(instr, operands, context);
    case TypeKind::kComplex:
      return UnaryComplex(instr, operands, context);
    case TypeKind::kSigned:
      if (SignedUnaryFn fn = SignedUnary(instr.op()))
        return InPlace<int64_t>(instr, operands, [=](int64_t x) { return round(fn(x, bits)); });
      break;
    case TypeKind::kUnsigned:
      if (UnsignedUnaryFn fn = UnsignedUnary(instr.op()))
        return InPlace<uint64_t>(instr, operands, [=](uint64_t x) { return round(fn(x, bits)); });
      break;
    case TypeKind::kBool:
      if (PredUnaryFn fn = PredUnary(instr.op())) return InPlace<uint8_t>(instr, operands, fn);
      break;
  }
  return NoSuchElements(instr, operands[0]);
}

Result<Value> Binary(const Instr& instr, std::span<const Value> operands, Context& context) {
  TOK_RETURN_IF_ERROR(CheckSameDims(instr, operands));
  ElementType type = operands[0].type();
  int bits = InfoOf(type).bits;
  bool wide = IsWide(type, context.mode());
  Rounder round(type, context.mode());
  switch (KindOf(type)) {
    case TypeKind::kReal:
      if (RealBinaryFn fn = RealBinary(instr.op(), wide))
        return Combine<double>(instr, operands,
                               [=](double x, double y) { return round(fn(x, y)); });
      break;
    case TypeKind::kComplex:
      if (ComplexBinaryFn fn = ComplexBinary(instr.op(), wide))
        return Combine<Complex>(instr, operands,
                                [=](Complex x, Complex y) { return round(fn(x, y)); });
      break;
    case TypeKind::kSigned:
      if (SignedBinaryFn fn = SignedBinary(instr.op()))
        return Combine<int64_t>(instr, operands,
                                [=](int64_t x, int64_t y) { return round(fn(x, y, bits)); });
      break;
    case TypeKind::kUnsigned:
      if (UnsignedBinaryFn fn = UnsignedBinary(instr.op()))
        return Combine<uint64_t>(instr, operands,
                                 [=](uint64_t x, uint64_t y) { return round(fn(x, y, bits)); });
      break;
    case TypeKind::kBool:
      if (PredBinaryFn fn = PredBinary(instr.op())) return Combine<uint8_t>(instr, operands, fn);
      break;
  }
  return NoSuchElements(instr, operands[0]);
}

}  // namespace

Status CheckSameDims(const Instr& instr, std::span<const Value> operands) {
  for (const Value& operand : operands) {
    if (operand.dims() == operands[0].dims()) continue;
    return MakeError(ErrorCode::kBadRunTimeShape,
                     std::string(instr.info().name) + ": operands turned out as " +
                         ToString(operands[0].shape()) + " and " + ToString(operand.shape()),
                     SpanOf(instr));
  }
  return Ok();
}

#define TOK_UNARY(id)                                                                             \
  Result<Value> Eval##id(const Instr& instr, std::span<const Value> operands, Context& context) { \
    return Unary(instr, operands, context);                                                       \
  }
#define TOK_BINARY(id)                                                                            \
  Result<Value> Eval##id(const Instr& instr, std::span<const Value> operands, Context& context) { \
    return Binary(instr, operands, context);                                                      \
  }

TOK_UNARY(Abs)
TOK_UNARY(Negate)
TOK_UNARY(Sign)
TOK_UNARY(Exp)
TOK_UNARY(Expm1)
TOK_UNARY(Log)
TOK_UNARY(Log1p)
TOK_UNARY(Logistic)
TOK_UNARY(Sqrt)
TOK_UNARY(Rsqrt)
TOK_UNARY(Cbrt)
TOK_UNARY(Sin)
TOK_UNARY(Cos)
TOK_UNARY(Tan)
TOK_UNARY(Tanh)
TOK_UNARY(Ceil)
TOK_UNARY(Floor)
TOK_UNARY(RoundAfz)
TOK_UNARY(RoundEven)
TOK_UNARY(Not)
TOK_UNARY(PopulationCount)
TOK_UNARY(CountLeadingZeros)
TOK_UNARY(IsFinite)
TOK_UNARY(Real)
TOK_UNARY(Imag)
TOK_UNARY(Acos)
TOK_UNARY(Acosh)
TOK_UNARY(Asin)
TOK_UNARY(Asinh)
TOK_UNARY(Atan)
TOK_UNARY(Atanh)
TOK_UNARY(Sinh)
TOK_UNARY(Cosh)
TOK_UNARY(Erf)
TOK_UNARY(Erfc)
TOK_UNARY(ErfInv)
TOK_UNARY(Lgamma)
TOK_UNARY(Digamma)
TOK_UNARY(BesselI1e)
TOK_UNARY(Square)
TOK_UNARY(Conj)
TOK_UNARY(IsInf)
TOK_UNARY(IsPosInf)
TOK_UNARY(IsNegInf)

TOK_BINARY(Add)
TOK_BINARY(Subtract)
TOK_BINARY(Multiply)
TOK_BINARY(Divide)
TOK_BINARY(Remainder)
TOK_BINARY(Power)
TOK_BINARY(Maximum)
TOK_BINARY(Minimum)
TOK_BINARY(And)
TOK_BINARY(Or)
TOK_BINARY(Xor)
TOK_BINARY(MultiplyHigh)
TOK_BINARY(ShiftLeft)
TOK_BINARY(ShiftRightLogical)
TOK_BINARY(ShiftRightArithmetic)
TOK_BINARY(Atan2)
TOK_BINARY(Polygamma)
TOK_BINARY(Zeta)

#undef TOK_UNARY
#undef TOK_BINARY

}  // namespace tokamak
