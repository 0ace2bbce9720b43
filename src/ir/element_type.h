#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tokamak {

// Element types of arrays: their table (element_types.def), and float encodings.
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
// Bytes per element in a Literal or buffer: at least one.
inline int BytesOf(ElementType type) {
  return (InfoOf(type).bits + 7) / 8;
}
// f32 for c64, f64 for c128; any other type is returned unchanged.
ElementType RealPartOf(ElementType type);

// The bit format of a floating-point type of at most 16 bits.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  bool has_sign = true;
  bool has_infinity = false;
  // kIeee: all-ones exponent, mantissa not 0. kAllOnes: only the all-ones pattern (fn).
  // kNegativeZero: the pattern of -0 (fnuz). kNone: the type has no NaN.
  enum class Nan : uint8_t { kIeee, kAllOnes, kNegativeZero, kNone } nan = Nan::kIeee;
};
// Floating-point types only; also f32 and f64.
const FloatFormat& FormatOf(ElementType type);

// The exact value that `bits` represent in a floating-point type.
double DecodeFloat(ElementType type, uint64_t bits);
// The bits of the number of `type` nearest to `value`, ties to even. Overflow gives infinity, or
// NaN if the type has no infinity, or the largest number if it has neither.
uint64_t EncodeFloat(ElementType type, double value);
// DecodeFloat(EncodeFloat(value)): `value` rounded to `type`.
double RoundToType(ElementType type, double value);

}  // namespace tokamak
