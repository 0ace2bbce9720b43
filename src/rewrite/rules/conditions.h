#pragma once

// What the rows of several topics need.

#include <optional>

#include "ir/int_range.h"
#include "rewrite/rules.h"

namespace tokamak {

// ---- conditions

bool IsNotComplex(const m::Match& match);
bool IsIntegralOrReal(const m::Match& match);
// Has a sign: x and -x are different numbers of the type.
bool IsSignedNumber(const m::Match& match);
bool IsUnsignedType(const m::Match& match);
// f16, bf16, f32, f64: IEEE's formats.
bool IsIeee(ElementType type);

// ---- constants

// The integer that fills the array, sign- or zero-extended (of u64: its bits).
std::optional<int64_t> IntOf(const Instr* instr);
// The real number that fills it, exactly.
std::optional<double> RealOf(const Instr* instr);
// Either of them is 2^k: k.
std::optional<int> PowerOfTwo(const Instr* instr);

// Wrapping arithmetic, as constants of at most 64 bits have it.
inline int64_t WrapAdd(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
inline int64_t WrapSubtract(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
}
inline int64_t WrapMultiply(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}

// An array of the shape of what is replaced, full of an integer (wrapped to its type).
Instr* FilledInt(Editor& edit, const m::Match& match, int64_t value);
// op(x, value) and op(value, x).
Instr* WithInt(Editor& edit, const m::Match& match, Op op, Instr* x, int64_t value);
Instr* IntWith(Editor& edit, const m::Match& match, Op op, int64_t value, Instr* x);
// -c, of the same shape.
Instr* NegatedConstant(Editor& edit, const Instr* constant);

// ---- shapes

const Dims& DimensionsOf(const Instr* instr);
inline bool Contains(const Dims& dims, int64_t d) {
  for (int64_t e : dims)
    if (e == d) return true;
  return false;
}
inline int64_t SizeAt(const Shape& shape, int64_t d) {
  return shape.dim(static_cast<size_t>(d));
}
bool IsIncreasing(const Dims& dims);
inline bool IsStaticArray(const Instr* instr) {
  return instr->shape().IsArray() && !instr->shape().HasDynamicDims();
}
// Reshaped to these dimensions, or the same if it has them already.
Instr* Reshaped(Editor& edit, Instr* x, Dims dims);
// A scalar constant.
Instr* IndexConstant(Editor& edit, ElementType type, int64_t value);

// The op of a computation that takes two numbers and gives op of both, in any order: what reduce
// and its kind call. Nothing for complex maximum and the like, whose order matters.
std::optional<Op> CombinerOf(const Computation& body);
// Order and grouping do not change a bit of what it gives for this type.
bool IsExactCombiner(Op op, ElementType type);
// op(x, c) is x for every x, bit for bit.
bool IsIdentityOf(Op op, const Instr* constant);

}  // namespace tokamak
