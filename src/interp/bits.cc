// Ops on the bits of elements: reduce-precision, stochastic-convert, next-after.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "interp/evaluators.h"
#include "interp/rounding.h"

namespace tokamak {
namespace {

// x with reduced mantissa and exponent, in the bit pattern of its own type: rounded to the nearest
// mantissa (ties to even), then infinite on exponent overflow and 0 on underflow, or the type's
// substitutes for them.
double ReduceBits(ElementType type, double x, int exponent_bits, int mantissa_bits) {
  const FloatFormat& format = FormatOf(type);
  auto infinite = [&] {
    return RoundToType(type, std::copysign(std::numeric_limits<double>::infinity(), x));
  };
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  uint64_t bits = EncodeFloat(type, x);
  int width = format.exponent_bits + format.mantissa_bits;
  uint64_t sign = bits >> width << width;
  bits ^= sign;
  if (mantissa_bits < format.mantissa_bits) {
    int drop = format.mantissa_bits - mantissa_bits;
    bits += ((uint64_t{1} << (drop - 1)) - 1) + (bits >> drop & 1);
    bits = bits >> drop << drop;
    if (bits >> width != 0) return infinite();  // rounded up into the sign bit
  }
  if (exponent_bits < format.exponent_bits) {
    int64_t exponent = static_cast<int64_t>(bits >> format.mantissa_bits) - format.bias;
    int64_t bias = (int64_t{1} << (exponent_bits - 1)) - 1;
    if (exponent > bias) return infinite();
    if (exponent <= -bias) return RoundToType(type, std::copysign(0.0, x));
  }
  return DecodeFloat(type, bits | sign);
}

// The neighbour of x towards y in a type: one step of its bit pattern.
double StepTowards(ElementType type, double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  if (x == y) return y;
  const FloatFormat& format = FormatOf(type);
  uint64_t sign_bit = uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
  if (x == 0) return DecodeFloat(type, y < 0 && format.has_sign ? sign_bit | 1 : 1);
  uint64_t bits = EncodeFloat(type, x);
  return DecodeFloat(type, (y > x) == (x > 0) ? bits + 1 : bits - 1);
}

// Truncates, or rounds away from zero if the random number lies below the fraction.
template <typename To>
To RoundByChance(ElementType to, double x, uint64_t random, int random_bits) {
  constexpr bool kSigned = std::is_same_v<To, int64_t>;
  if (std::isnan(x)) return 0;
  int bits = InfoOf(to).bits;
  double most = std::ldexp(1.0, kSigned ? bits - 1 : bits);
  if (x >= most)
    return static_cast<To>(kSigned ? ~uint64_t{0} >> (65 - bits) : ~uint64_t{0} >> (64 - bits));
  if (x <= (kSigned ? -most : 0.0))
    return kSigned ? static_cast<To>(-std::ldexp(1.0, bits - 1)) : To(0);
  double whole = std::trunc(std::fabs(x)), fraction = std::fabs(x) - whole;
  if (std::ldexp(fraction, random_bits) > static_cast<double>(random) && whole + 1 < most)
    whole += 1;
  return static_cast<To>(x < 0 ? -whole : whole);
}

}  // namespace

Result<Value> EvalReducePrecision(const Instr& instr, std::span<const Value> operands, Context&) {
  const ReducePrecisionAttrs& attrs = instr.attrs<ReducePrecisionAttrs>();
  ElementType type = operands[0].type();
  const FloatFormat& format = FormatOf(type);
  int exponent = static_cast<int>(std::min<int64_t>(attrs.exponent_bits, format.exponent_bits));
  int mantissa = static_cast<int>(std::min<int64_t>(attrs.mantissa_bits, format.mantissa_bits));
  Shape shape = ResultShape(instr, operands[0]);
  std::vector<double> elements = TakeOperand(operands, 0).TakeData<double>();
  for (double& x : elements) x = ReduceBits(type, x, exponent, mantissa);
  return Value::Array(std::move(shape), std::move(elements));
}

Result<Value> EvalNextAfter(const Instr& instr, std::span<const Value> operands, Context&) {
  TOK_RETURN_IF_ERROR(CheckSameDims(instr, operands));
  ElementType type = operands[0].type();
  std::span<const double> x = operands[0].Data<double>(), y = operands[1].Data<double>();
  std::vector<double> elements(x.size());
  for (size_t i = 0; i < x.size(); ++i) elements[i] = StepTowards(type, x[i], y[i]);
  return Value::Array(ResultShape(instr, operands[0]), std::move(elements));
}

Result<Value> EvalStochasticConvert(const Instr& instr, std::span<const Value> operands, Context&) {
  TOK_RETURN_IF_ERROR(CheckSameDims(instr, operands));
  ElementType to = instr.shape().type();
  if (!IsInteger(to) || !IsReal(operands[0].type()) || !IsUnsigned(operands[1].type()))
    return Unsupported(instr, "from " + std::string(HloName(operands[0].type())) + " to " +
                                  std::string(HloName(to)));
  std::span<const double> x = operands[0].Data<double>();
  std::span<const uint64_t> random = operands[1].Data<uint64_t>();
  int random_bits = InfoOf(operands[1].type()).bits;
  Shape shape = ResultShape(instr, operands[0]);
  auto run = [&]<typename T>(T) -> Result<Value> {
    std::vector<T> elements(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      elements[i] = RoundByChance<T>(to, x[i], random[i], random_bits);
    return Value::Array(shape, std::move(elements));
  };
  return IsSigned(to) ? run(int64_t{0}) : run(uint64_t{0});
}

}  // namespace tokamak
