#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Scalar types and primitives of kernel IR, the bit representation of scalar values, and constant
// evaluation. The tables are scalar_types.def and prims.def.

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
// Size in memory; a pred occupies one byte.
inline int64_t BytesOf(ScalarType type) {
  return (InfoOf(type).bits + 7) / 8;
}
// The unsigned integer type of the same width; u8 for a pred.
ScalarType BitsTypeOf(ScalarType type);

// The types that the operands of a primitive may have. verify.h restricts f16 and bf16 further.
enum class PrimOperands : uint8_t {
  kAny,        // any type; the second operand of a shuffle is an integer
  kIndexOnly,  // loop and extent have no operand; the operand of a load or read is an index
  kNumber,     // integers, including indices, and floats
  kInteger,    // integers, including indices
  kFloat,      // floats
  kBits,       // integers, including indices, and preds
};
// The type of the result.
enum class PrimResult : uint8_t {
  kSame,  // the type of the operands, which agree
  kPred,  // a pred; the types of the operands agree
  kLast,  // select: the type of the last two operands, which agree; the first operand is a pred
  kFree,  // stated by the node (ScalarNode::type); verify_values.cc has a rule per primitive
};

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

// Communication between the threads of a warp. Under a vector loop, a shuffle is between the lanes
// of that loop instead; CUDA kernels have vector loops, but no shuffles under them.
inline bool IsExchange(Prim prim) {
  return prim == Prim::kShuffle || prim == Prim::kMatch;
}
// Defined by a statement, so its position in the program matters. All other primitives are pure.
inline bool IsOrdered(Prim prim) {
  return prim == Prim::kRead || IsExchange(prim);
}

// The bits of a scalar value, in the low bits; the high bits are zero.
using Bits = uint64_t;

Bits BitsOfDouble(ScalarType type, double value);  // rounded to nearest, integers saturated
double DoubleOfBits(ScalarType type, Bits bits);
Bits BitsOfInt(ScalarType type, int64_t value);  // an integer or a pred
int64_t IntOfBits(ScalarType type, Bits bits);   // sign-extended for signed types

// Evaluates a pure primitive whose operands have type `from`. nullopt where the result is
// unspecified (prims.def), and for primitives that are not functions of their operands (load, loop,
// ...).
std::optional<Bits> EvaluatePrim(Prim prim, ScalarType type, ScalarType from, const Bits* operands);

}  // namespace tokamak
