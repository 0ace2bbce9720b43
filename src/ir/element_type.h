#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tokamak {

enum class ElementType : uint8_t {
#define TOK_TYPE(id, ...) k##id,
#include "ir/element_types.def"
};

enum class TypeKind : uint8_t { kBool, kSigned, kUnsigned, kReal, kComplex };

struct ElementTypeInfo {
  ElementType type;
  std::string_view hlo;
  std::string_view mlir;
  int bits;
  TypeKind kind;
};

const ElementTypeInfo& InfoOf(ElementType type);
std::optional<ElementType> ElementTypeFromHlo(std::string_view name);
std::optional<ElementType> ElementTypeFromMlir(std::string_view name);

inline TypeKind KindOf(ElementType type) {
  return InfoOf(type).kind;
}
inline std::string_view HloName(ElementType type) {
  return InfoOf(type).hlo;
}
inline bool IsSigned(ElementType type) {
  return KindOf(type) == TypeKind::kSigned;
}
inline bool IsUnsigned(ElementType type) {
  return KindOf(type) == TypeKind::kUnsigned;
}
inline bool IsInteger(ElementType type) {
  return IsSigned(type) || IsUnsigned(type);
}
inline bool IsReal(ElementType type) {
  return KindOf(type) == TypeKind::kReal;
}
inline bool IsComplex(ElementType type) {
  return KindOf(type) == TypeKind::kComplex;
}
// Bytes an element takes in a Literal or buffer: at least one.
inline int BytesOf(ElementType type) {
  return (InfoOf(type).bits + 7) / 8;
}
// f32 of c64, f64 of c128; any other type is its own part.
ElementType RealPartOf(ElementType type);

// How the bits of a real type of at most 16 bits spell a number.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  bool has_sign = true;
  bool has_infinity = false;
  // kIeee: all-ones exponent, mantissa not 0. kAllOnes: only the all-ones
  // pattern (fn). kNegativeZero: the pattern of -0 (fnuz). kNone: no NaN.
  enum class Nan : uint8_t { kIeee, kAllOnes, kNegativeZero, kNone } nan = Nan::kIeee;
};
// Real types only; also f32 and f64.
const FloatFormat& FormatOf(ElementType type);

// The number that `bits` spell in a real type, exactly.
double DecodeFloat(ElementType type, uint64_t bits);
// The bits of the number of `type` nearest to `value`, ties to even. Overflow
// gives infinity, or NaN, or the largest number where neither exists.
uint64_t EncodeFloat(ElementType type, double value);
// DecodeFloat(EncodeFloat(value)): `value` rounded to `type`.
double RoundToType(ElementType type, double value);

}  // namespace tokamak
