// Storage and compute representation of elements: bit patterns of narrow floats, and rounding to
// them.

#include <cmath>

#include "kernel/formulas/functions.h"
#include "support/check.h"

namespace tokamak {
namespace formulas {
namespace {

using Nan = FloatFormat::Nan;

Scalar BitsConstant(Scalar like, ScalarType type, Bits bits) {
  return like.builder().ConstantBits(type, bits);
}
Scalar Word(Scalar like, uint32_t bits) {
  return BitsConstant(like, ScalarType::kU32, bits);
}
Scalar StoredBits(Scalar x) {
  return x.BitsAs(BitsTypeOf(x.type()));
}
Scalar Float(Scalar bits) {
  return bits.BitsAs(ScalarType::kF32);
}

// Rounds an f64 to odd: the f32 next to it towards zero, with the last bit set unless it is exact.
// Rounding that again to a format of at most 22 bits equals one rounding.
Scalar RoundToOdd(Scalar x) {
  Scalar nearest = x.As(ScalarType::kF32), back = nearest.As(ScalarType::kF64);
  Scalar bits = StoredBits(nearest);
  Scalar below = Choose(AbsOf(back) > AbsOf(x), bits - 1, bits);
  return Float(Choose(back == x, bits, below | Word(x, 1)));
}

Scalar RoundToBf16(Scalar x) {
  if (x.builder().dialect() == Dialect::kGpu) return x.As(ScalarType::kBF16).As(ScalarType::kF32);
  Scalar bits = StoredBits(x);
  Scalar last = (bits >> Word(x, 16)) & Word(x, 1);
  Scalar rounded = (bits + Word(x, 0x7fff) + last) & Word(x, 0xffff0000);
  return Choose(x == x, Float(rounded), NotANumber(x));
}

// f8e8m0fnu: powers of two from 2^-127 on, no sign, no zero. Ties go to the even exponent.
Scalar RoundToPowerOfTwo(Scalar x) {
  Scalar bits = StoredBits(x);
  Scalar exponent = bits >> Word(x, 23);
  Scalar rounded = (bits + Word(x, 0x3fffff) + (exponent & Word(x, 1))) & Word(x, 0xff800000);
  Scalar least = Word(x, 0x00400000);
  Scalar small = Choose(bits <= Word(x, 0x00600000), least, Word(x, 0x00800000));
  Scalar result = Choose(bits < Word(x, 0x00800000), small, rounded);
  Scalar fits = (x > 0) & (result < Word(x, 0x7f800000));
  return Choose(fits, Float(result), NotANumber(x));
}

// The largest finite number, which decides what overflows.
double LargestOf(ElementType type) {
  const FloatFormat& format = FormatOf(type);
  uint64_t all = (uint64_t{1} << (format.mantissa_bits + format.exponent_bits)) - 1;
  if (format.nan == Nan::kIeee)
    all = (((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits) - 1;
  if (format.nan == Nan::kAllOnes) --all;
  return DecodeFloat(type, all);
}

Scalar RoundToSmall(ElementType type, Scalar x) {
  const FloatFormat& format = FormatOf(type);
  int least = 1 - format.bias, drop = 23 - format.mantissa_bits;
  Scalar size = AbsOf(x), bits = StoredBits(size);
  Scalar last = (bits >> Word(x, static_cast<uint32_t>(drop))) & Word(x, 1);
  uint32_t half = uint32_t{1} << (drop - 1);
  Scalar normal = Float((bits + Word(x, half - 1) + last) & Word(x, ~(2 * half - 1)));
  // Subnormal numbers have a common unit: adding a number with that unit rounds to it.
  double unit = std::ldexp(1.0, least - format.mantissa_bits + 23);
  Scalar rounded = Choose(size < std::ldexp(1.0, least), (size + unit) - unit, normal);
  double largest = LargestOf(type);
  Scalar over = format.has_infinity        ? Infinity(x)
                : format.nan == Nan::kNone ? x.Like(largest)
                                           : NotANumber(x);
  rounded = Choose(rounded > largest, over, rounded);
  Scalar result = CopySign(rounded, x);
  if (format.nan == Nan::kNegativeZero) result = Choose(rounded == 0, x.Like(0), result);
  return Choose(x == x, result, format.nan == Nan::kNone ? x.Like(0) : NotANumber(x));
}

// An f8 or smaller type, from and to its bits in a u32. After scaling so that the exponents of f32
// and of the format agree, a number has the same bits in both, including subnormal numbers.
Scalar DecodeSmall(ElementType type, Scalar bits) {
  const FloatFormat& format = FormatOf(type);
  int m = format.mantissa_bits, width = m + format.exponent_bits;
  Scalar nan = NotANumber(Float(bits));
  if (m == 0) {
    Scalar number = Float(Choose(bits == 0, Word(bits, 0x00400000), bits << Word(bits, 23)));
    return Choose(bits == 255, nan, number);
  }
  uint32_t mask = (uint32_t{1} << width) - 1;
  Scalar magnitude = bits & Word(bits, mask), is_negative = (bits & Word(bits, mask + 1)) != 0;
  Scalar scaled = Float(magnitude << Word(bits, static_cast<uint32_t>(23 - m)));
  Scalar number = scaled * std::ldexp(1.0, 127 - format.bias);
  uint32_t top = ((uint32_t{1} << format.exponent_bits) - 1) << m;
  if (format.nan == Nan::kIeee) {
    number = Choose(magnitude == Word(bits, top), Infinity(number), number);
    number = Choose(magnitude > Word(bits, top), nan, number);
  }
  if (format.nan == Nan::kAllOnes) number = Choose(magnitude == Word(bits, mask), nan, number);
  number = Choose(is_negative, -number, number);
  if (format.nan == Nan::kNegativeZero) number = Choose(bits == Word(bits, mask + 1), nan, number);
  return number;
}

Scalar EncodeSmall(ElementType type, Scalar x) {
  const FloatFormat& format = FormatOf(type);
  int m = format.mantissa_bits, width = m + format.exponent_bits;
  auto nan = Word(x, static_cast<uint32_t>(EncodeFloat(type, std::nan(""))));
  if (m == 0) return Choose(x == x, StoredBits(x) >> Word(x, 23), nan);
  Scalar scaled = StoredBits(AbsOf(x) * std::ldexp(1.0, format.bias - 127));
  Scalar magnitude = scaled >> Word(x, static_cast<uint32_t>(23 - m));
  if (format.has_infinity) {
    auto infinity = static_cast<uint32_t>(EncodeFloat(type, HUGE_VAL));
    magnitude = Choose(AbsOf(x) == Infinity(x), Word(x, infinity), magnitude);
  }
  Scalar sign = (StoredBits(x) >> Word(x, 31)) << Word(x, static_cast<uint32_t>(width));
  return Choose(x == x, magnitude | sign, nan);
}

bool IsSubByte(ElementType type) {
  return InfoOf(type).bits < 8 && type != ElementType::kPred;
}

}  // namespace

bool IsNarrow(ElementType type) {
  return IsReal(type) && InfoOf(type).bits < 32;
}

Scalar RoundTo(ElementType type, Scalar value) {
  type = RealPartOf(type);
  if (type == ElementType::kF64) return value.As(ScalarType::kF64);
  if (type == ElementType::kF32) return value.As(ScalarType::kF32);
  if (value.type() == ScalarType::kF64) value = RoundToOdd(value);
  if (type == ElementType::kBF16) return RoundToBf16(value);
  if (type == ElementType::kF16) return value.As(ScalarType::kF16).As(ScalarType::kF32);
  if (type == ElementType::kF8E8M0FNU) return RoundToPowerOfTwo(value);
  return RoundToSmall(type, value);
}

Scalar WrapTo(ElementType type, Scalar value) {
  if (!IsInteger(type) || !IsSubByte(type)) return value;
  int bits = InfoOf(type).bits;
  if (IsSigned(type)) {
    Scalar up = value.Like(8 - bits);
    return (value << up) >> up;
  }
  return value & value.Like((1 << bits) - 1);
}

Scalar PatternOf(ElementType type, Scalar value) {
  int bits = InfoOf(type).bits;
  if (bits == 64) return StoredBits(value);
  if (bits == 32) return StoredBits(value);
  if (type == ElementType::kPred) return value.As(ScalarType::kU32);
  if (IsInteger(type)) {
    Scalar wide = StoredBits(value).As(ScalarType::kU32);
    return bits < 8 ? wide & Word(value, (uint32_t{1} << bits) - 1) : wide;
  }
  if (type == ElementType::kBF16) return StoredBits(value) >> Word(value, 16);
  if (type == ElementType::kF16) return StoredBits(value.As(ScalarType::kF16)).As(ScalarType::kU32);
  return EncodeSmall(type, value);
}

Scalar FromPattern(ElementType type, Scalar pattern) {
  int bits = InfoOf(type).bits;
  ScalarType compute = ComputeType(type);
  if (bits >= 32) return pattern.BitsAs(compute);
  if (type == ElementType::kPred) return pattern != 0;
  if (IsInteger(type)) {
    ScalarType narrow = bits == 16 ? ScalarType::kU16 : ScalarType::kU8;
    return WrapTo(type, pattern.As(narrow).BitsAs(compute));
  }
  if (type == ElementType::kBF16) return Float(pattern << Word(pattern, 16));
  if (type == ElementType::kF16)
    return pattern.As(ScalarType::kU16).BitsAs(ScalarType::kF16).As(ScalarType::kF32);
  return DecodeSmall(type, pattern);
}

}  // namespace formulas

using formulas::FromPattern;
using formulas::PatternOf;

ScalarType ComputeType(ElementType type) {
  type = RealPartOf(type);
  if (IsReal(type)) return type == ElementType::kF64 ? ScalarType::kF64 : ScalarType::kF32;
  switch (type) {
    case ElementType::kPred:
      return ScalarType::kPred;
    case ElementType::kS2:
    case ElementType::kS4:
    case ElementType::kS8:
      return ScalarType::kS8;
    case ElementType::kS16:
      return ScalarType::kS16;
    case ElementType::kS32:
      return ScalarType::kS32;
    case ElementType::kS64:
      return ScalarType::kS64;
    case ElementType::kU16:
      return ScalarType::kU16;
    case ElementType::kU32:
      return ScalarType::kU32;
    case ElementType::kU64:
      return ScalarType::kU64;
    default:
      return ScalarType::kU8;
  }
}

ScalarType StorageType(ElementType type) {
  if (type == ElementType::kBF16) return ScalarType::kBF16;
  if (type == ElementType::kF16) return ScalarType::kF16;
  if (type == ElementType::kPred) return ScalarType::kPred;
  return InfoOf(type).bits <= 8 && type != ElementType::kS8 ? ScalarType::kU8 : ComputeType(type);
}

Element FromStorage(KernelBuilder&, ElementType type, Element loaded) {
  if (StorageType(type) == ComputeType(type) && InfoOf(type).bits >= 8) return loaded;
  if (type == ElementType::kPred) return loaded;
  if (type == ElementType::kF16) return {loaded[0].As(ScalarType::kF32), Scalar()};
  ScalarType bits = BitsTypeOf(loaded[0].type());
  return {FromPattern(type, loaded[0].BitsAs(bits).As(ScalarType::kU32)), Scalar()};
}

Element ToStorage(KernelBuilder&, ElementType type, Element value) {
  ScalarType to = StorageType(type);
  if (to == ComputeType(type) && InfoOf(type).bits >= 8) return value;
  if (type == ElementType::kPred) return value;
  if (type == ElementType::kF16) return {value[0].As(to), Scalar()};
  return {PatternOf(type, value[0]).As(BitsTypeOf(to)).BitsAs(to), Scalar()};
}

Element ConstantElement(KernelBuilder& b, ElementType type, double value) {
  ScalarType compute = ComputeType(type);
  Element element{IsReal(RealPartOf(type))
                      ? b.Constant(compute, RoundToType(RealPartOf(type), value))
                      : b.Constant(compute, value),
                  Scalar()};
  if (IsComplex(type)) element[1] = b.Constant(compute, 0);
  return element;
}

}  // namespace tokamak
