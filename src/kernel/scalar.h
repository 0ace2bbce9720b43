#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Types and primitives of scalars in kernels.

namespace tokamak {

enum class ScalarClass : uint8_t { kBool, kSigned, kUnsigned, kFloat };

enum class ScalarType : uint8_t {
#define TOK_SCALAR(id, text, bits, kind) k##id,
#include "kernel/scalar_types.def"
};

struct ScalarInfo {
  std::string_view text;
  int bits;
  ScalarClass kind;
};

const ScalarInfo& InfoOf(ScalarType type);
std::optional<ScalarType> ScalarTypeFromText(std::string_view text);

inline bool IsFloat(ScalarType type) {
  return InfoOf(type).kind == ScalarClass::kFloat;
}
inline bool IsInteger(ScalarType type) {
  return InfoOf(type).kind == ScalarClass::kSigned || InfoOf(type).kind == ScalarClass::kUnsigned;
}
inline bool IsSigned(ScalarType type) {
  return InfoOf(type).kind == ScalarClass::kSigned;
}
// In memory: a pred takes a byte.
inline int64_t BytesOf(ScalarType type) {
  return (InfoOf(type).bits + 7) / 8;
}
// The unsigned integer of the same width; a pred's is u8.
ScalarType BitsTypeOf(ScalarType type);

enum class PrimOperands : uint8_t { kAny, kIndexOnly, kNumber, kInteger, kFloat, kBits };
enum class PrimResult : uint8_t { kSame, kPred, kLast, kFree };

enum class Prim : uint8_t {
#define TOK_PRIM(id, text, arity, operands, result, meaning) k##id,
#include "kernel/prims.def"
};

struct PrimInfo {
  std::string_view text;
  int arity;
  PrimOperands operands;
  PrimResult result;
  std::string_view meaning;
};

const PrimInfo& InfoOf(Prim prim);
std::optional<Prim> PrimFromText(std::string_view text);

// What the threads of a warp, or lanes, tell each other.
inline bool IsExchange(Prim prim) {
  return prim == Prim::kShuffle || prim == Prim::kMatch;
}
// Defined by a statement, at its place; all others are pure.
inline bool IsOrdered(Prim prim) {
  return prim == Prim::kRead || IsExchange(prim);
}

// A scalar's value, in the low bits; the others are zero.
using Bits = uint64_t;

Bits BitsOfDouble(ScalarType type, double value);  // rounded to nearest, integers saturated
double DoubleOfBits(ScalarType type, Bits bits);
Bits BitsOfInt(ScalarType type, int64_t value);  // an integer or a pred
int64_t IntOfBits(ScalarType type, Bits bits);   // sign-extended for signed types

// What a pure primitive of operands of type `from` gives. nullopt where its meaning is open, and
// for those that are no function of their operands (load, loop ...).
std::optional<Bits> EvaluatePrim(Prim prim, ScalarType type, ScalarType from, const Bits* operands);

}  // namespace tokamak
