// Ops that look at the bits of elements: bitcast-convert, reduce-precision, stochastic-convert,
// next-after.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "interp/evaluators.h"
#include "interp/rounding.h"

namespace tokamak {
namespace {

// The bits of elements, one row of little-endian 64-bit words each (two for c128).
struct BitRow {
  uint64_t low = 0, high = 0;
};

template <typename T>
BitRow BitsOf(ElementType type, T element) {
  if constexpr (std::is_same_v<T, Complex>) {
    ElementType part = RealPartOf(type);
    uint64_t re = EncodeFloat(part, element.real()), im = EncodeFloat(part, element.imag());
    return type == ElementType::kC64 ? BitRow{re | im << 32, 0} : BitRow{re, im};
  } else if constexpr (std::is_same_v<T, double>) {
    return {EncodeFloat(type, element), 0};
  } else {
    return {WrapUnsigned(type, static_cast<uint64_t>(element)), 0};
  }
}

template <typename T>
T FromBits(ElementType type, BitRow bits) {
  if constexpr (std::is_same_v<T, Complex>) {
    if (type == ElementType::kC128)
      return {std::bit_cast<double>(bits.low), std::bit_cast<double>(bits.high)};
    return {DecodeFloat(ElementType::kF32, bits.low & 0xffffffff),
            DecodeFloat(ElementType::kF32, bits.low >> 32)};
  } else if constexpr (std::is_same_v<T, double>) {
    return DecodeFloat(type, bits.low);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return WrapSigned(type, static_cast<int64_t>(bits.low));
  } else {
    return static_cast<T>(bits.low);
  }
}

// A window of `width` bits at `offset` of a row of up to 128.
uint64_t Window(BitRow row, int offset, int width) {
  uint64_t word = offset >= 64 ? row.high >> (offset - 64) : row.low >> offset;
  return width < 64 ? word & ((uint64_t{1} << width) - 1) : word;
}
void Place(BitRow& row, int offset, uint64_t bits) {
  (offset >= 64 ? row.high : row.low) |= bits << (offset % 64);
}

// From wide elements to several narrow ones each (the first has the lowest bits), or back.
std::vector<BitRow> Repack(const std::vector<BitRow>& from, int from_bits, int to_bits) {
  if (from_bits == to_bits) return from;
  std::vector<BitRow> to;
  if (from_bits > to_bits) {
    to.reserve(from.size() * static_cast<size_t>(from_bits / to_bits));
    for (const BitRow& row : from)
      for (int offset = 0; offset < from_bits; offset += to_bits)
        to.push_back({Window(row, offset, to_bits), 0});
    return to;
  }
  size_t parts = static_cast<size_t>(to_bits / from_bits);
  to.resize(from.size() / parts);
  for (size_t i = 0; i < from.size(); ++i)
    Place(to[i / parts], static_cast<int>(i % parts) * from_bits, from[i].low);
  return to;
}

// x with its mantissa and exponent cut, in the bit pattern of its own type: rounded to the nearest
// mantissa (ties to even), then infinite where the exponent is too large and 0 where too small.
double ReduceBits(ElementType type, double x, int exponent_bits, int mantissa_bits) {
  const FloatFormat& format = FormatOf(type);
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  uint64_t bits = EncodeFloat(type, x);
  int width = format.exponent_bits + format.mantissa_bits;
  uint64_t sign = bits >> width << width;
  bits ^= sign;
  if (mantissa_bits < format.mantissa_bits) {
    int drop = format.mantissa_bits - mantissa_bits;
    bits += ((uint64_t{1} << (drop - 1)) - 1) + (bits >> drop & 1);
    bits = bits >> drop << drop;
  }
  if (exponent_bits < format.exponent_bits) {
    int64_t exponent = static_cast<int64_t>(bits >> format.mantissa_bits) - format.bias;
    int64_t bias = (int64_t{1} << (exponent_bits - 1)) - 1;
    if (exponent > bias) return std::copysign(std::numeric_limits<double>::infinity(), x);
    if (exponent <= -bias) return std::copysign(0.0, x);
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

// Truncated, or one more in magnitude when the random number lies below the fraction.
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

Result<Value> EvalBitcastConvert(const Instr& instr, std::span<const Value> operands, Context&) {
  ElementType from = operands[0].type(), to = instr.shape().type();
  int from_bits = InfoOf(from).bits, to_bits = InfoOf(to).bits;
  Dims dims = operands[0].dims();
  // XLA keeps pred in a byte: with as many dimensions on both sides, elements match one to one.
  if (instr.shape().rank() == operands[0].shape().rank()) from_bits = to_bits;
  if (from_bits > to_bits) dims.push_back(from_bits / to_bits);
  if (from_bits < to_bits) {
    if (dims.empty() || dims.back() != to_bits / from_bits) {
      return MakeError(ErrorCode::kBadRunTimeShape, "bitcast-convert: the last dimension of " +
                                                        ToString(operands[0].shape()) + " is not " +
                                                        std::to_string(to_bits / from_bits));
    }
    dims.pop_back();
  }
  Shape shape = instr.shape().WithDims(std::move(dims));
  std::vector<BitRow> rows;
  rows.reserve(static_cast<size_t>(operands[0].ElementCount()));
  DispatchStorage(from, [&]<typename T>() {
    for (T element : operands[0].Data<T>()) rows.push_back(BitsOf(from, element));
  });
  rows = Repack(rows, from_bits, to_bits);
  return DispatchStorage(to, [&]<typename T>() -> Result<Value> {
    std::vector<T> elements(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) elements[i] = FromBits<T>(to, rows[i]);
    return Value::Array(shape, std::move(elements));
  });
}

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
