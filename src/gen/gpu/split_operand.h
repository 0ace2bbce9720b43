#pragma once

#include "kernel/builder.h"

// Factors of dots that are more precise than the tensor cores' 16-bit types, as sums of two of
// them.

namespace tokamak::gpu {

// A value x as the sum hi + lo of two 16-bit numbers: hi = T(x), lo = T(x - hi). The sum of two
// bf16 has at least 16 of the 24 significant bits of an f32, that of two f16 at least 22 if |x| is
// from 1/8 to 65504 (chain_scales.h).
struct SplitFactor {
  Scalar hi, lo;
};
// Numbers of a sum (definition).
constexpr int64_t kSplitParts = 2;

// `x` is f32. Infinities and NaN are hi alone: lo is 0, because the difference would be a NaN. That
// holds too for finite values that round to an infinity.
inline SplitFactor SplitTo(ScalarType type, Scalar x) {
  Scalar hi = x.As(type), rounded = hi.As(ScalarType::kF32);
  Scalar rest = x - rounded;
  // The rest of a finite hi is finite and at most half its last bit. -Inf and NaN fail as well.
  constexpr Bits kInfinity = 0x7f800000;  // of f32 (IEEE 754)
  Scalar is_finite = AbsOf(rest) < rest.builder().ConstantBits(ScalarType::kF32, kInfinity);
  return {hi, Choose(is_finite, rest, rest.Like(0)).As(type)};
}

}  // namespace tokamak::gpu
