#include "kernel/scalar.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ir/element_type.h"
#include "support/check.h"

namespace tokamak {
namespace {

constexpr ScalarInfo kScalars[] = {
#define TOK_SCALAR(id, text, bits, kind) {text, bits, ScalarClass::kind},
#include "kernel/scalar_types.def"
};

constexpr PrimInfo kPrims[] = {
#define TOK_PRIM(id, text, arity, operands, result, meaning) \
  {text, arity, PrimOperands::operands, PrimResult::result, meaning},
#include "kernel/prims.def"
};

ElementType FloatTypeOf(ScalarType type) {
  switch (type) {
    case ScalarType::kF16:
      return ElementType::kF16;
    case ScalarType::kBF16:
      return ElementType::kBF16;
    case ScalarType::kF32:
      return ElementType::kF32;
    default:
      return ElementType::kF64;
  }
}

Bits MaskOf(ScalarType type) {
  int bits = InfoOf(type).bits;
  return bits == 64 ? ~Bits{0} : (Bits{1} << bits) - 1;
}

// Rounds once. A product, sum or quotient of floats of at most 32 bits may be computed in double
// first: 53 >= 2 * 24 + 2 bits make the double rounding innocuous.
Bits OfFloat(ScalarType type, double value) {
  if (type == ScalarType::kF64) return std::bit_cast<uint64_t>(value);
  return EncodeFloat(FloatTypeOf(type), value);
}

std::optional<Bits> EvaluateFloat(Prim prim, ScalarType type, ScalarType from, const Bits* v) {
  double x = DoubleOfBits(from, v[0]);
  int arity = InfoOf(prim).arity;
  double y = arity > 1 ? DoubleOfBits(from, v[1]) : 0;
  Bits sign = Bits{1} << (InfoOf(type).bits - 1);
  switch (prim) {
    case Prim::kAdd:
      return OfFloat(type, x + y);
    case Prim::kSub:
      return OfFloat(type, x - y);
    case Prim::kMul:
      return OfFloat(type, x * y);
    case Prim::kDiv:
      return OfFloat(type, x / y);
    case Prim::kMin:
      return x < y ? v[0] : v[1];
    case Prim::kMax:
      return x > y ? v[0] : v[1];
    case Prim::kMinimum:
    case Prim::kMaximum: {
      if (std::isnan(x) || std::isnan(y)) return OfFloat(type, std::nan(""));
      bool is_first = x == y ? std::signbit(x) : x < y;
      return is_first == (prim == Prim::kMinimum) ? v[0] : v[1];
    }
    case Prim::kFma: {
      double z = DoubleOfBits(from, v[2]);
      if (type == ScalarType::kF32)
        return std::bit_cast<uint32_t>(
            std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)));
      if (type == ScalarType::kF64) return OfFloat(type, std::fma(x, y, z));
      return std::nullopt;  // formulas use narrow floats for storage only
    }
    case Prim::kExp2:
      return OfFloat(type, std::exp2(x));
    case Prim::kInverse:
      return OfFloat(type, 1 / x);
    case Prim::kSqrt:
      return OfFloat(type, std::sqrt(x));
    case Prim::kAbs:
      return v[0] & ~sign;
    case Prim::kNeg:
      return v[0] ^ sign;
    case Prim::kCopySign:
      return (v[0] & ~sign) | (v[1] & sign);
    case Prim::kFloor:
      return OfFloat(type, std::floor(x));
    case Prim::kCeil:
      return OfFloat(type, std::ceil(x));
    case Prim::kTrunc:
      return OfFloat(type, std::trunc(x));
    case Prim::kRoundEven:
      return OfFloat(type, std::nearbyint(x));
    case Prim::kLt:
      return x < y ? 1 : 0;
    case Prim::kLe:
      return x <= y ? 1 : 0;
    case Prim::kEq:
      return x == y ? 1 : 0;
    case Prim::kNe:
      return x != y ? 1 : 0;
    default:
      return std::nullopt;
  }
}

bool LessInt(ScalarType type, Bits x, Bits y) {
  return IsSigned(type) ? IntOfBits(type, x) < IntOfBits(type, y) : x < y;
}

std::optional<Bits> DivideInt(Prim prim, ScalarType type, Bits x, Bits y) {
  if (y == 0) return std::nullopt;
  if (!IsSigned(type)) return prim == Prim::kDiv ? x / y : x % y;
  int64_t a = IntOfBits(type, x), b = IntOfBits(type, y);
  if (b == -1) {
    if (x == Bits{1} << (InfoOf(type).bits - 1)) return std::nullopt;
    return BitsOfInt(type, prim == Prim::kDiv ? -a : 0);
  }
  return BitsOfInt(type, prim == Prim::kDiv ? a / b : a % b);
}

Bits MulHigh(ScalarType type, Bits x, Bits y) {
  int bits = InfoOf(type).bits;
  if (IsSigned(type)) {
    __extension__ using Wide = __int128;
    Wide product = static_cast<Wide>(IntOfBits(type, x)) * IntOfBits(type, y);
    return static_cast<Bits>(product >> bits) & MaskOf(type);
  }
  __extension__ using Wide = unsigned __int128;
  return static_cast<Bits>((static_cast<Wide>(x) * y) >> bits) & MaskOf(type);
}

std::optional<Bits> EvaluateInt(Prim prim, ScalarType type, ScalarType from, const Bits* v) {
  Bits mask = MaskOf(type), x = v[0];
  Bits y = InfoOf(prim).arity > 1 ? v[1] : 0;
  auto bits = static_cast<Bits>(InfoOf(from).bits);
  switch (prim) {
    case Prim::kAdd:
      return (x + y) & mask;
    case Prim::kSub:
      return (x - y) & mask;
    case Prim::kMul:
      return (x * y) & mask;
    case Prim::kDiv:
    case Prim::kRem:
      return DivideInt(prim, type, x, y);
    case Prim::kMin:
      return LessInt(from, x, y) ? x : y;
    case Prim::kMax:
      return LessInt(from, y, x) ? x : y;
    case Prim::kAnd:
      return x & y;
    case Prim::kOr:
      return x | y;
    case Prim::kXor:
      return x ^ y;
    case Prim::kShl:
      return y < bits ? std::optional((x << y) & mask) : std::nullopt;
    case Prim::kShr:
      if (y >= bits) return std::nullopt;
      return IsSigned(type) ? BitsOfInt(type, IntOfBits(type, x) >> y) : x >> y;
    case Prim::kMulHigh:
      return MulHigh(type, x, y);
    case Prim::kPopCount:
      return static_cast<Bits>(std::popcount(x));
    case Prim::kLeadingZeros:
      return static_cast<Bits>(std::countl_zero(x)) - (64 - bits);
    case Prim::kLt:
      return LessInt(from, x, y) ? 1 : 0;
    case Prim::kLe:
      return LessInt(from, y, x) ? 0 : 1;
    case Prim::kEq:
      return x == y ? 1 : 0;
    case Prim::kNe:
      return x != y ? 1 : 0;
    default:
      return std::nullopt;
  }
}

std::optional<Bits> ConvertBits(ScalarType type, ScalarType from, Bits x) {
  if (type == ScalarType::kPred) return std::nullopt;  // written as ne 0
  if (IsFloat(from)) {
    double value = DoubleOfBits(from, x);
    if (IsFloat(type)) return OfFloat(type, value);
    double whole = std::trunc(value);
    int bits = InfoOf(type).bits;
    double low = IsSigned(type) ? -std::ldexp(1.0, bits - 1) : 0;
    double high = std::ldexp(1.0, IsSigned(type) ? bits - 1 : bits);
    if (!(whole >= low && whole < high)) return std::nullopt;
    return IsSigned(type) ? BitsOfInt(type, static_cast<int64_t>(whole)) : static_cast<Bits>(whole);
  }
  if (!IsFloat(type)) return static_cast<Bits>(IntOfBits(from, x)) & MaskOf(type);
  if (type == ScalarType::kF32 || type == ScalarType::kF64) {
    bool is_signed = IsSigned(from);
    if (type == ScalarType::kF64)
      return std::bit_cast<uint64_t>(is_signed ? static_cast<double>(IntOfBits(from, x))
                                               : static_cast<double>(x));
    return std::bit_cast<uint32_t>(is_signed ? static_cast<float>(IntOfBits(from, x))
                                             : static_cast<float>(x));
  }
  if (InfoOf(from).bits > 32) return std::nullopt;  // double rounding: formulas convert through f32
  return OfFloat(type, static_cast<double>(IntOfBits(from, x)));
}

}  // namespace

const ScalarInfo& InfoOf(ScalarType type) {
  return kScalars[static_cast<size_t>(type)];
}

std::optional<ScalarType> ScalarTypeFromText(std::string_view text) {
  for (size_t i = 0; i < std::size(kScalars); ++i)
    if (kScalars[i].text == text) return static_cast<ScalarType>(i);
  return std::nullopt;
}

ScalarType BitsTypeOf(ScalarType type) {
  switch (InfoOf(type).bits) {
    case 64:
      return ScalarType::kU64;
    case 32:
      return ScalarType::kU32;
    case 16:
      return ScalarType::kU16;
    default:
      return ScalarType::kU8;
  }
}

const PrimInfo& InfoOf(Prim prim) {
  return kPrims[static_cast<size_t>(prim)];
}

std::optional<Prim> PrimFromText(std::string_view text) {
  for (size_t i = 0; i < std::size(kPrims); ++i)
    if (kPrims[i].text == text) return static_cast<Prim>(i);
  return std::nullopt;
}

Bits BitsOfDouble(ScalarType type, double value) {
  if (IsFloat(type)) return OfFloat(type, value);
  if (type == ScalarType::kPred) return value != 0 ? 1 : 0;
  if (std::isnan(value)) return 0;
  int bits = InfoOf(type).bits;
  if (IsSigned(type)) {
    double limit = std::ldexp(1.0, bits - 1);
    if (value >= limit) return MaskOf(type) >> 1;
    if (value < -limit) return Bits{1} << (bits - 1);
    return BitsOfInt(type, static_cast<int64_t>(std::nearbyint(value)));
  }
  if (value >= std::ldexp(1.0, bits)) return MaskOf(type);
  return value <= 0 ? 0 : static_cast<Bits>(std::nearbyint(value));
}

double DoubleOfBits(ScalarType type, Bits bits) {
  switch (type) {
    case ScalarType::kF64:
      return std::bit_cast<double>(bits);
    case ScalarType::kF32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case ScalarType::kF16:
    case ScalarType::kBF16:
      return DecodeFloat(FloatTypeOf(type), bits);
    default:
      return IsSigned(type) ? static_cast<double>(IntOfBits(type, bits))
                            : static_cast<double>(bits);
  }
}

Bits BitsOfInt(ScalarType type, int64_t value) {
  return static_cast<Bits>(value) & MaskOf(type);
}

int64_t IntOfBits(ScalarType type, Bits bits) {
  int unused = 64 - InfoOf(type).bits;
  if (!IsSigned(type)) return static_cast<int64_t>(bits);
  return static_cast<int64_t>(bits << unused) >> unused;
}

std::optional<Bits> EvaluatePrim(Prim prim, ScalarType type, ScalarType from,
                                 const Bits* operands) {
  switch (prim) {
    case Prim::kSelect:
      return operands[0] != 0 ? operands[1] : operands[2];
    case Prim::kBitcast:
      return operands[0];
    case Prim::kConvert:
      return ConvertBits(type, from, operands[0]);
    case Prim::kConst:
    case Prim::kLoop:
    case Prim::kExtent:
    case Prim::kLoad:
    case Prim::kRead:
    case Prim::kShuffle:
    case Prim::kMatch:
      return std::nullopt;
    default:
      return IsFloat(from) ? EvaluateFloat(prim, type, from, operands)
                           : EvaluateInt(prim, type, from, operands);
  }
}

}  // namespace tokamak
