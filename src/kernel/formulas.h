#pragma once

#include <array>
#include <optional>
#include <span>

#include "ir/attrs.h"
#include "ir/element_type.h"
#include "ir/op.h"
#include "kernel/builder.h"

// One scalar formula for each elementwise op and element type, over the primitives alone: no
// branches and no calls, so that every backend can spell it and run it on vectors. The interpreter
// says what the results are and shares nothing with these: integers, conversions and operations
// that IEEE 754 rounds have its bits (NaNs may differ in sign and payload), functions are as exact
// as the design asks for. Subnormal numbers are kept.

namespace tokamak {

// What one element is inside of a kernel: [0], and [1] for the imaginary part of a complex number.
using Element = std::array<Scalar, 2>;

struct OpCall {
  Op op{};
  ElementType type{};  // of the result
  ElementType from{};  // of the first operand; of select: of the last
  std::span<const Element> operands;
  const Attrs* attrs = nullptr;  // may be null when the op has none
};

// The type of an element (of a part of a complex one) while a kernel computes with it. Reals of
// fewer than 32 bits are f32 scalars that hold a number of their own type; integers of fewer than 8
// bits are s8 or u8 within their own range.
ScalarType ComputeType(ElementType type);
// The type of an element (or part) in an argument. Types of fewer than 8 bits and f8 are u8: their
// bits, lowest first, zeros above.
ScalarType StorageType(ElementType type);
// From what was loaded to what is computed with, and back. ToStorage takes numbers of the type.
Element FromStorage(KernelBuilder& b, ElementType type, Element loaded);
Element ToStorage(KernelBuilder& b, ElementType type, Element value);
// A number as an element of a type, rounded to it.
Element ConstantElement(KernelBuilder& b, ElementType type, double value);

// What an elementwise op gives, of operands that are as ComputeType says. Also bitcast-convert
// between types of one width. nullopt: there is no formula.
std::optional<Element> ApplyOp(KernelBuilder& b, const OpCall& call);
// One element as another type: what convert does.
Element ConvertElement(KernelBuilder& b, ElementType from, ElementType to, Element x);

namespace formulas {
// e^x of an f32, to be added to a number of at least 2^-60: where it is far below, it may be
// anything that is.
Scalar ExpOfTerm(Scalar x);
}  // namespace formulas

// The words that threefry2x32 makes of a counter under a key, each a u32.
std::array<Scalar, 2> ThreefryWords(std::array<Scalar, 2> counter, std::array<Scalar, 2> key);
// The four words of Philox 4x32 with ten rounds.
std::array<Scalar, 4> PhiloxWords(std::array<Scalar, 4> counter, std::array<Scalar, 2> key);

}  // namespace tokamak
