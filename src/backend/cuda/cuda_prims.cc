// Spells the primitives of kernel IR as CUDA C++ expressions with the semantics of the IR. Where
// C++ and the IR differ:
//
//   signed overflow    wraps in the IR, undefined in C++: done in an unsigned type
//   narrow integers    C++ promotes them to int; the result is cast back
//   f16, bf16          held as bits in an unsigned short; functions of the prelude convert them
//   constants          shortest decimal that reads back exactly; NaN and infinities by bits
//   a * b + c          not contracted (--fmad=false); only Prim::kFma is a fused multiply-add

#include "backend/cuda/cuda_prims.h"

#include <cmath>

#include <fmt/format.h>

#include "kernel/write.h"

namespace tokamak::cuda {

int Spelling::BitsOf(ScalarType type) const {
  return type == ScalarType::kIndex ? index_bits_ : InfoOf(type).bits;
}

std::string_view Spelling::Type(ScalarType type) const {
  switch (type) {
    case ScalarType::kPred:
      return "bool";
    case ScalarType::kS8:
      return "signed char";
    case ScalarType::kS16:
      return "short";
    case ScalarType::kS32:
      return "int";
    case ScalarType::kS64:
      return "long long";
    case ScalarType::kU8:
      return "unsigned char";
    case ScalarType::kU16:
    case ScalarType::kF16:
    case ScalarType::kBF16:
      return "unsigned short";
    case ScalarType::kU32:
      return "unsigned";
    case ScalarType::kU64:
      return "unsigned long long";
    case ScalarType::kF32:
      return "float";
    case ScalarType::kF64:
      return "double";
    case ScalarType::kIndex:
      break;
  }
  return index_bits_ == 32 ? "int" : "long long";
}

std::string Spelling::Constant(ScalarType type, Bits bits) const {
  switch (type) {
    case ScalarType::kPred:
      return bits != 0 ? "true" : "false";
    case ScalarType::kF32:
    case ScalarType::kF64: {
      double value = DoubleOfBits(type, bits);
      bool is_f32 = type == ScalarType::kF32;
      if (!std::isfinite(value))
        return is_f32 ? fmt::format("__uint_as_float({:#x}u)", bits)
                      : fmt::format("__longlong_as_double({:#x}ll)", bits);
      std::string text =
          is_f32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return text + (is_f32 ? "f" : "");
    }
    case ScalarType::kU32:
      return fmt::format("{}u", bits);
    case ScalarType::kU64:
      return fmt::format("{}ull", bits);
    case ScalarType::kS32:
      if (IntOfBits(type, bits) == INT32_MIN) return "(-2147483647 - 1)";
      return fmt::format("{}", IntOfBits(type, bits));
    case ScalarType::kS64:
      if (IntOfBits(type, bits) == INT64_MIN) return "(-9223372036854775807ll - 1)";
      return fmt::format("{}ll", IntOfBits(type, bits));
    case ScalarType::kIndex:
      return fmt::format("{}", IntOfBits(type, bits));
    default:
      return fmt::format("({}){}", Type(type), IntOfBits(type, bits));
  }
}

// Integers wrap: signed arithmetic is done in unsigned types, for which C++ defines it.
std::string Spelling::Wrapping(ScalarType type, std::string_view op, const std::string& x,
                               const std::string& y) const {
  if (type == ScalarType::kIndex || type == ScalarType::kU32 || type == ScalarType::kU64 ||
      IsFloat(type))
    return fmt::format("{} {} {}", x, op, y);
  std::string_view wide = BitsOf(type) > 32 ? "unsigned long long" : "unsigned";
  return fmt::format("({})(({}){} {} ({}){})", Type(type), wide, x, op, wide, y);
}

std::string Spelling::Arithmetic(tokamak::Prim prim, ScalarType type, const std::string& x,
                                 const std::string& y) const {
  switch (prim) {
    case tokamak::Prim::kAdd:
    case tokamak::Prim::kSub:
    case tokamak::Prim::kMul:
      return Wrapping(type, InfixOf(prim), x, y);
    case tokamak::Prim::kDiv:
    case tokamak::Prim::kRem:
      return fmt::format("{} {} {}", x, InfixOf(prim), y);
    case tokamak::Prim::kMin:
      return fmt::format("{0} < {1} ? {0} : {1}", x, y);
    case tokamak::Prim::kMax:
      return fmt::format("{0} > {1} ? {0} : {1}", x, y);
    case tokamak::Prim::kAnd:
      return fmt::format("{} & {}", x, y);
    case tokamak::Prim::kOr:
      return fmt::format("{} | {}", x, y);
    case tokamak::Prim::kXor:
      return fmt::format("{} ^ {}", x, y);
    case tokamak::Prim::kShl:
      return Wrapping(type, "<<", x, y);
    default:  // kShr: arithmetic shift of signed integers
      return fmt::format("{} >> {}", x, y);
  }
}

// Narrow types are zero-extended first: sign bits must not be counted, and leading zeros are those
// of the narrow type.
std::string Spelling::Counted(tokamak::Prim prim, ScalarType type, const std::string& x) const {
  bool population = prim == tokamak::Prim::kPopCount;
  int bits = BitsOf(type);
  if (bits == 64) return fmt::format("{}({})", population ? "__popcll" : "__clzll", x);
  if (bits == 32) return fmt::format("{}({})", population ? "__popc" : "__clz", x);
  std::string_view plain = bits == 8 ? "unsigned char" : "unsigned short";
  if (population) return fmt::format("({})__popc(({}){})", Type(type), plain, x);
  return fmt::format("({})(__clz(({}){}) - {})", Type(type), plain, x, 32 - bits);
}

std::string Spelling::MulHigh(ScalarType type, const std::string& x, const std::string& y) const {
  int bits = BitsOf(type);
  bool is_signed = IsSigned(type);
  if (bits == 64) return fmt::format("{}({}, {})", is_signed ? "__mul64hi" : "__umul64hi", x, y);
  if (bits == 32) return fmt::format("{}({}, {})", is_signed ? "__mulhi" : "__umulhi", x, y);
  std::string_view wide = is_signed ? "int" : "unsigned";
  return fmt::format("({})((({}){} * ({}){}) >> {})", Type(type), wide, x, wide, y, bits);
}

// f16 and bf16 convert through f32, except that an f64 is rounded to them once.
std::string Spelling::Convert(ScalarType type, ScalarType from, const std::string& x) const {
  auto narrow = [](ScalarType of) { return of == ScalarType::kF16 || of == ScalarType::kBF16; };
  std::string_view name = type == ScalarType::kF16 || from == ScalarType::kF16 ? "F16" : "Bf16";
  if (narrow(from) && narrow(type))
    return type == from
               ? x
               : fmt::format("{}FromF32({}ToF32({}))", type == ScalarType::kF16 ? "F16" : "Bf16",
                             from == ScalarType::kF16 ? "F16" : "Bf16", x);
  if (narrow(from))
    return type == ScalarType::kF32 ? fmt::format("{}ToF32({})", name, x)
                                    : fmt::format("({}){}ToF32({})", Type(type), name, x);
  if (narrow(type))
    return fmt::format("{}From{}({})", name, from == ScalarType::kF64 ? "F64" : "F32", x);
  return fmt::format("({}){}", Type(type), x);
}

std::string Spelling::Bitcast(ScalarType type, ScalarType from, const std::string& x) const {
  std::string inner = x;
  if (from == ScalarType::kF32 && type != ScalarType::kF32) inner = "__float_as_uint(" + x + ")";
  if (from == ScalarType::kF64 && type != ScalarType::kF64)
    inner = "__double_as_longlong(" + x + ")";
  if (type == from) return x;
  if (type == ScalarType::kF32) return "__uint_as_float((unsigned)" + inner + ")";
  if (type == ScalarType::kF64) return "__longlong_as_double((long long)" + inner + ")";
  return fmt::format("({}){}", Type(type), inner);
}

std::string Spelling::Float(tokamak::Prim prim, ScalarType type,
                            const std::array<std::string, 3>& operands) const {
  bool is_f32 = type == ScalarType::kF32;
  const std::string &x = operands[0], &y = operands[1];
  auto call = [&](std::string_view f32, std::string_view f64) {
    return fmt::format("{}({})", is_f32 ? f32 : f64, x);
  };
  switch (prim) {
    case tokamak::Prim::kFma:
      return fmt::format("{}({}, {}, {})", is_f32 ? "__fmaf_rn" : "__fma_rn", x, y, operands[2]);
    case tokamak::Prim::kMinimum:
    case tokamak::Prim::kMaximum:
      return fmt::format("{}({}, {})", prim == tokamak::Prim::kMinimum ? "Minimum" : "Maximum", x,
                         y);
    case tokamak::Prim::kExp2:
      return call("Exp2", "Exp2");
    case tokamak::Prim::kInverse:
      return call("Inverse", "Inverse");
    case tokamak::Prim::kSqrt:
      return call("__fsqrt_rn", "__dsqrt_rn");
    case tokamak::Prim::kAbs:
      return call("fabsf", "fabs");
    case tokamak::Prim::kNeg:
      return "-" + x;
    case tokamak::Prim::kCopySign:
      return fmt::format("{}({}, {})", is_f32 ? "copysignf" : "copysign", x, y);
    case tokamak::Prim::kFloor:
      return call("floorf", "floor");
    case tokamak::Prim::kCeil:
      return call("ceilf", "ceil");
    case tokamak::Prim::kTrunc:
      return call("truncf", "trunc");
    default:  // kRoundEven
      return call("rintf", "rint");
  }
}

std::string Spelling::Prim(tokamak::Prim prim, ScalarType type, ScalarType from,
                           const std::array<std::string, 3>& operands) const {
  const std::string &x = operands[0], &y = operands[1];
  switch (prim) {
    case tokamak::Prim::kLt:
    case tokamak::Prim::kLe:
    case tokamak::Prim::kEq:
    case tokamak::Prim::kNe:
      return fmt::format("{} {} {}", x, InfixOf(prim), y);
    case tokamak::Prim::kSelect:
      return fmt::format("{} ? {} : {}", x, y, operands[2]);
    case tokamak::Prim::kConvert:
      return Convert(type, from, x);
    case tokamak::Prim::kBitcast:
      return Bitcast(type, from, x);
    case tokamak::Prim::kPopCount:
    case tokamak::Prim::kLeadingZeros:
      return Counted(prim, type, x);
    case tokamak::Prim::kMulHigh:
      return MulHigh(type, x, y);
    case tokamak::Prim::kMinimum:
    case tokamak::Prim::kMaximum:
    case tokamak::Prim::kExp2:
    case tokamak::Prim::kInverse:
    case tokamak::Prim::kFma:
    case tokamak::Prim::kSqrt:
    case tokamak::Prim::kAbs:
    case tokamak::Prim::kNeg:
    case tokamak::Prim::kCopySign:
    case tokamak::Prim::kFloor:
    case tokamak::Prim::kCeil:
    case tokamak::Prim::kTrunc:
    case tokamak::Prim::kRoundEven:
      return Float(prim, type, operands);
    default:
      return Arithmetic(prim, type, x, y);
  }
}

std::string Spelling::Shuffle(ScalarType type, const std::string& value, const std::string& lane,
                              std::string_view mask) const {
  std::string_view by = BitsOf(type) < 32 ? "(int)" : "";
  std::string text = fmt::format("__shfl_xor_sync({}, {}{}, (int){})", mask, by, value, lane);
  return by.empty() ? text : fmt::format("({}){}", Type(type), text);
}

}  // namespace tokamak::cuda
