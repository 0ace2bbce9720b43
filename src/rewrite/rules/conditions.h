#pragma once

// Conditions, constants and shape helpers shared by the rule tables.

#include <optional>

#include "ir/int_range.h"
#include "rewrite/rules.h"

namespace tokamak {

// ---- conditions

bool IsNotComplex(const m::Match& match);
bool IsIntegralOrReal(const m::Match& match);
// f16, bf16, f32, f64: the types that follow IEEE 754.
bool IsIeee(ElementType type);

// ---- constants

// The integer that fills the array, sign- or zero-extended (u64: its bits).
std::optional<int64_t> IntOf(const Instr* instr);
// The real number that fills the array, exactly.
std::optional<double> RealOf(const Instr* instr);
// k if the array is filled with 2^k (integer or real).
std::optional<int> PowerOfTwo(const Instr* instr);

// Wrapping arithmetic, as for constants of at most 64 bits.
inline int64_t WrapAdd(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
inline int64_t WrapSubtract(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
}
inline int64_t WrapMultiply(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}

// An array with the shape of the replaced instruction, filled with an integer (wrapped to its
// type).
Instr* FilledInt(Editor& edit, const m::Match& match, int64_t value);
// op(x, value) and op(value, x).
Instr* WithInt(Editor& edit, const m::Match& match, Op op, Instr* x, int64_t value);
Instr* IntWith(Editor& edit, const m::Match& match, Op op, int64_t value, Instr* x);
// -c with the same shape.
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
  return instr->shape().IsStaticArray();
}
// x reshaped to these dimensions; x itself if it already has them.
Instr* Reshaped(Editor& edit, Instr* x, Dims dims);
// A scalar constant.
Instr* IndexConstant(Editor& edit, ElementType type, int64_t value);

// The op of a reducer that applies it to its two parameters, in either order. Null for ops whose
// operand order matters, such as complex maximum.
std::optional<Op> CombinerOf(const Computation& body);
// Whether reassociation and reordering leave results of this type bit-identical.
bool IsExactCombiner(Op op, ElementType type);
// Whether op(x, c) is bit-identical to x for every x.
bool IsIdentityOf(Op op, const Instr* constant);

}  // namespace tokamak
