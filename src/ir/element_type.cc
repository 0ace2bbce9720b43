// Element types and the exact conversion between their bits and double. All float formats of at
// most 16 bits share one decoder and one encoder, which FloatFormat parameterizes: bits of exponent
// and mantissa, bias, and how NaN and infinity are represented.
//
//   | sign | exponent | mantissa |     value = (-1)^sign * 1.mantissa * 2^(exponent - bias)
//   exponent 0: subnormal, 0.mantissa * 2^(1 - bias)
//
//   kIeee          all-ones exponent is infinity or NaN        f16, bf16, f8e5m2
//   kAllOnes       only the all-ones pattern is NaN            f8e4m3fn
//   kNegativeZero  the pattern of -0 is NaN, no -0             f8e4m3fnuz
//   kNone          no NaN: it becomes 0                        f4e2m1fn
//
// Encoding rounds once, to nearest with ties to even. Overflow becomes infinity, NaN or the largest
// number, whichever the format has, in this order.

#include "ir/element_type.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "support/check.h"

namespace tokamak {
namespace {

constexpr std::array kTypes = {
#define TOK_TYPE(id, hlo, mlir, bits, kind) \
  ElementTypeInfo{ElementType::k##id, hlo, mlir, bits, TypeKind::kind},
#include "ir/element_types.def"
};

using Nan = FloatFormat::Nan;

// Powers of two down to 2^-1074 are exact in double, so every format of at most 16 bits decodes and
// rounds through double without error.
double DecodeSmall(const FloatFormat& format, uint64_t bits) {
  const int m = format.mantissa_bits, e = format.exponent_bits;
  const uint64_t mantissa_mask = (uint64_t{1} << m) - 1, exponent_mask = (uint64_t{1} << e) - 1;
  const uint64_t mantissa = bits & mantissa_mask, exponent = (bits >> m) & exponent_mask;
  const bool negative = format.has_sign && ((bits >> (m + e)) & 1) != 0;
  const double sign = negative ? -1.0 : 1.0;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const bool all_ones = exponent == exponent_mask;

  if (format.nan == Nan::kNegativeZero && negative && exponent == 0 && mantissa == 0) return kNan;
  if (format.nan == Nan::kAllOnes && all_ones && mantissa == mantissa_mask) return kNan;
  if (format.nan == Nan::kIeee && all_ones) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : kNan;
  }
  if (m == 0)
    return std::ldexp(1.0, static_cast<int>(exponent) - format.bias);  // f8e8m0fnu has no zero
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(mantissa), 1 - format.bias - m);
  double significand = static_cast<double>(mantissa + mantissa_mask + 1);
  return sign * std::ldexp(significand, static_cast<int>(exponent) - format.bias - m);
}

uint64_t NanBits(const FloatFormat& format) {
  const int m = format.mantissa_bits, e = format.exponent_bits;
  switch (format.nan) {
    case Nan::kIeee:
      return (((uint64_t{1} << e) - 1) << m) | (uint64_t{1} << (m - 1));
    case Nan::kAllOnes:
      return (uint64_t{1} << (m + e)) - 1;
    case Nan::kNegativeZero:
      return uint64_t{1} << (m + e);
    case Nan::kNone:
      return 0;  // types without NaN convert it to zero
  }
  TOK_UNREACHABLE("NaN kind");
}

// The pattern of the largest finite number, without its sign bit.
uint64_t LargestBits(const FloatFormat& format) {
  const int m = format.mantissa_bits, e = format.exponent_bits;
  uint64_t all = (uint64_t{1} << (m + e)) - 1;
  switch (format.nan) {
    case Nan::kIeee:
      return (((uint64_t{1} << e) - 1) << m) - 1;
    case Nan::kAllOnes:
      return all - 1;
    case Nan::kNegativeZero:
    case Nan::kNone:
      return all;
  }
  TOK_UNREACHABLE("NaN kind");
}

uint64_t EncodePowerOfTwo(const FloatFormat& format, double value) {
  if (!(value > 0) || std::isinf(value)) return NanBits(format);
  int exponent = 0;
  double fraction =
      std::frexp(value, &exponent);  // value = fraction * 2^exponent, fraction in [0.5, 1)
  int64_t biased = exponent - 1 + format.bias;
  // Ties to even: 1.5 * 2^k is halfway between the patterns k and k+1.
  if (fraction > 0.75 || (fraction == 0.75 && (biased & 1) != 0)) ++biased;
  if (biased < 0) return 0;
  return biased > static_cast<int64_t>(LargestBits(format)) ? NanBits(format)
                                                            : static_cast<uint64_t>(biased);
}

// Counts units in the last place: nearbyint rounds (ties to even in the default mode), and a carry
// out of the mantissa increments the exponent by itself.
uint64_t EncodeSmall(const FloatFormat& format, double value) {
  if (std::isnan(value)) return NanBits(format);
  if (format.mantissa_bits == 0) return EncodePowerOfTwo(format, value);
  const int m = format.mantissa_bits, e = format.exponent_bits;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (m + e) : 0;
  const double magnitude = std::fabs(value);
  const uint64_t largest = LargestBits(format);
  auto overflow = [&]() -> uint64_t {
    if (format.has_infinity) return sign | (((uint64_t{1} << e) - 1) << m);
    if (format.nan == Nan::kNone) return sign | largest;
    return format.nan == Nan::kNegativeZero ? NanBits(format) : sign | NanBits(format);
  };
  if (std::isinf(magnitude)) return overflow();
  if (magnitude == 0) return format.nan == Nan::kNegativeZero ? 0 : sign;

  int exponent = std::ilogb(magnitude);
  int least = 1 - format.bias;  // exponent of the smallest normal number
  int unit = std::max(exponent, least) - m;
  // exact except for the rounding itself
  double scaled = std::nearbyint(std::ldexp(magnitude, -unit));
  uint64_t pattern = static_cast<uint64_t>(scaled);
  // scaled counts units in the last place; carries propagate into the exponent.
  if (exponent >= least) pattern += static_cast<uint64_t>(exponent - least) << m;
  if (pattern > largest) return overflow();
  if (pattern == 0 && format.nan == Nan::kNegativeZero) return 0;
  return sign | pattern;
}

}  // namespace

const ElementTypeInfo& InfoOf(ElementType type) {
  return kTypes[static_cast<size_t>(type)];
}

std::optional<ElementType> ElementTypeFromHlo(std::string_view name) {
  for (const ElementTypeInfo& info : kTypes)
    if (info.hlo == name) return info.type;
  return std::nullopt;
}

std::optional<ElementType> ElementTypeFromMlir(std::string_view name) {
  for (const ElementTypeInfo& info : kTypes)
    if (info.mlir == name) return info.type;
  return std::nullopt;
}

ElementType RealPartOf(ElementType type) {
  if (type == ElementType::kC64) return ElementType::kF32;
  if (type == ElementType::kC128) return ElementType::kF64;
  return type;
}

const FloatFormat& FormatOf(ElementType type) {
  static constexpr FloatFormat kF4E2M1FN{2, 1, 1, true, false, Nan::kNone};
  static constexpr FloatFormat kF6E2M3FN{2, 3, 1, true, false, Nan::kNone};
  static constexpr FloatFormat kF6E3M2FN{3, 2, 3, true, false, Nan::kNone};
  static constexpr FloatFormat kF8E3M4{3, 4, 3, true, true, Nan::kIeee};
  static constexpr FloatFormat kF8E4M3{4, 3, 7, true, true, Nan::kIeee};
  static constexpr FloatFormat kF8E4M3FN{4, 3, 7, true, false, Nan::kAllOnes};
  static constexpr FloatFormat kF8E4M3FNUZ{4, 3, 8, true, false, Nan::kNegativeZero};
  static constexpr FloatFormat kF8E4M3B11FNUZ{4, 3, 11, true, false, Nan::kNegativeZero};
  static constexpr FloatFormat kF8E5M2{5, 2, 15, true, true, Nan::kIeee};
  static constexpr FloatFormat kF8E5M2FNUZ{5, 2, 16, true, false, Nan::kNegativeZero};
  static constexpr FloatFormat kF8E8M0FNU{8, 0, 127, false, false, Nan::kAllOnes};
  static constexpr FloatFormat kBF16{8, 7, 127, true, true, Nan::kIeee};
  static constexpr FloatFormat kF16{5, 10, 15, true, true, Nan::kIeee};
  static constexpr FloatFormat kF32{8, 23, 127, true, true, Nan::kIeee};
  static constexpr FloatFormat kF64{11, 52, 1023, true, true, Nan::kIeee};
  switch (type) {
    case ElementType::kF4E2M1FN:
      return kF4E2M1FN;
    case ElementType::kF6E2M3FN:
      return kF6E2M3FN;
    case ElementType::kF6E3M2FN:
      return kF6E3M2FN;
    case ElementType::kF8E3M4:
      return kF8E3M4;
    case ElementType::kF8E4M3:
      return kF8E4M3;
    case ElementType::kF8E4M3FN:
      return kF8E4M3FN;
    case ElementType::kF8E4M3FNUZ:
      return kF8E4M3FNUZ;
    case ElementType::kF8E4M3B11FNUZ:
      return kF8E4M3B11FNUZ;
    case ElementType::kF8E5M2:
      return kF8E5M2;
    case ElementType::kF8E5M2FNUZ:
      return kF8E5M2FNUZ;
    case ElementType::kF8E8M0FNU:
      return kF8E8M0FNU;
    case ElementType::kBF16:
      return kBF16;
    case ElementType::kF16:
      return kF16;
    case ElementType::kF32:
      return kF32;
    case ElementType::kF64:
      return kF64;
    default:
      TOK_UNREACHABLE("a float format was asked of a type that is not real");
  }
}

double DecodeFloat(ElementType type, uint64_t bits) {
  if (type == ElementType::kF32)
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (type == ElementType::kF64) return std::bit_cast<double>(bits);
  return DecodeSmall(FormatOf(type), bits);
}

uint64_t EncodeFloat(ElementType type, double value) {
  if (type == ElementType::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == ElementType::kF64) return std::bit_cast<uint64_t>(value);
  return EncodeSmall(FormatOf(type), value);
}

double RoundToType(ElementType type, double value) {
  if (type == ElementType::kF64) return value;
  if (type == ElementType::kF32) return static_cast<double>(static_cast<float>(value));
  return DecodeFloat(type, EncodeFloat(type, value));
}

}  // namespace tokamak
