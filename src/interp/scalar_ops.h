#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "interp/interp.h"
#include "interp/value.h"
#include "ir/compare_direction.h"
#include "ir/op.h"

// The elementwise ops on one element, before rounding. The array evaluators and ScalarBody share
// these functions, so both give the same bits.

namespace tokamak {

using RealUnaryFn = double (*)(double);
using RealBinaryFn = double (*)(double, double);
using RealTestFn = bool (*)(double);
using ComplexUnaryFn = Complex (*)(Complex);
using ComplexBinaryFn = Complex (*)(Complex, Complex);
using SignedUnaryFn = int64_t (*)(int64_t, int bits);
using SignedBinaryFn = int64_t (*)(int64_t, int64_t, int bits);
using UnsignedUnaryFn = uint64_t (*)(uint64_t, int bits);
using UnsignedBinaryFn = uint64_t (*)(uint64_t, uint64_t, int bits);
using PredUnaryFn = uint8_t (*)(uint8_t);
using PredBinaryFn = uint8_t (*)(uint8_t, uint8_t);

// Each returns null if the op does not support such elements. `wide`: the result is kept as a
// double (f64, c128, the oracle), so the function must be accurate to the last bits of a double.
RealUnaryFn RealUnary(Op op, bool wide);
RealBinaryFn RealBinary(Op op, bool wide);
RealTestFn RealTest(Op op);  // is-finite and similar
ComplexUnaryFn ComplexUnary(Op op, bool wide);
ComplexBinaryFn ComplexBinary(Op op, bool wide);
// The caller wraps results to `bits`, the width of the type.
SignedUnaryFn SignedUnary(Op op);
SignedBinaryFn SignedBinary(Op op);
UnsignedUnaryFn UnsignedUnary(Op op);
UnsignedBinaryFn UnsignedBinary(Op op);
PredUnaryFn PredUnary(Op op);
PredBinaryFn PredBinary(Op op);

// Whether a result of this type must be accurate to the last bits of a double.
inline bool IsWide(ElementType type, NumericMode mode) {
  return mode == NumericMode::kOracle || RealPartOf(type) == ElementType::kF64;
}

// Maps reals to the total order -NaN < -inf < ... < -0 < 0 < ... < inf < NaN.
inline int64_t TotalOrderKey(double value) {
  int64_t bits = std::bit_cast<int64_t>(value);
  return bits < 0 ? static_cast<int64_t>(~static_cast<uint64_t>(bits) | uint64_t{1} << 63) : bits;
}

// Whether a comparison holds between two elements of one storage type. Complex numbers support only
// EQ and NE.
template <typename T>
bool InOrder(CompareDirection direction, T a, T b) {
  if constexpr (std::is_same_v<T, Complex>) {
    return direction == CompareDirection::kNe ? a != b : a == b;
  } else {
    return Holds(a, direction, b);
  }
}

}  // namespace tokamak
