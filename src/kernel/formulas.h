#pragma once

#include <array>
#include <optional>
#include <span>

#include "ir/attrs.h"
#include "ir/element_type.h"
#include "ir/op.h"
#include "kernel/builder.h"

// One scalar formula for each elementwise op and element type, built from the primitives alone,
// without branches or calls, so that every backend can emit and vectorize it. The interpreter
// defines the reference results and shares no code with the formulas. Integer ops, conversions and
// IEEE 754 correctly rounded operations match it bit for bit (except for the sign and payload of
// NaNs); other functions meet the error bounds of docs/numerics.md. Subnormal numbers are not
// flushed.

namespace tokamak {

// One element in a kernel: [0] is the value or real part, [1] the imaginary part of a complex
// number.
using Element = std::array<Scalar, 2>;

struct OpCall {
  Op op{};
  ElementType type{};  // of the result
  ElementType from{};  // of the first operand; for select, of the last
  std::span<const Element> operands;
  const Attrs* attrs = nullptr;  // may be null if the op has none
};

// The type in which a kernel computes with an element (or with one component of a complex element).
// A real narrower than 32 bits is an f32 scalar whose value is representable in its own type. An
// integer narrower than 8 bits is an s8 or u8 within its own range.
ScalarType ComputeType(ElementType type);
// The type of an element (or component) in an argument. Types narrower than 8 bits and f8 are u8:
// their bits in the low bits, zeros above.
ScalarType StorageType(ElementType type);
// Convert between the storage and the compute representation. ToStorage requires a value that its
// type can represent.
Element FromStorage(KernelBuilder& b, ElementType type, Element loaded);
Element ToStorage(KernelBuilder& b, ElementType type, Element value);
// A constant, rounded to the element type.
Element ConstantElement(KernelBuilder& b, ElementType type, double value);

// The result of an elementwise op, with operands and result in their ComputeType. Also handles
// bitcast-convert between types of equal width. nullopt if there is no formula.
std::optional<Element> ApplyOp(KernelBuilder& b, const OpCall& call);
// sum + x * y, the product rounded first, as in the interpreter: bitwise the same results. A pred
// sum is the or of ands. nullopt if there is no formula.
std::optional<Element> AddProduct(KernelBuilder& b, ElementType type, Element sum, Element x,
                                  Element y);
// Converts one element to another type (the convert op).
Element ConvertElement(KernelBuilder& b, ElementType from, ElementType to, Element x);

namespace formulas {
// e^x of an f32 that will be added to a number of at least 2^-60. If e^x is far below 2^-60 the
// result may be any number that is far below it.
Scalar ExpOfTerm(Scalar x);
}  // namespace formulas

// The two u32 words that threefry2x32 generates from a counter and a key.
std::array<Scalar, 2> ThreefryWords(std::array<Scalar, 2> counter, std::array<Scalar, 2> key);
// The four u32 words of Philox 4x32-10.
std::array<Scalar, 4> PhiloxWords(std::array<Scalar, 4> counter, std::array<Scalar, 2> key);

}  // namespace tokamak
