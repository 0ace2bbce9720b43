#include "gen/gpu/chain_scales.h"

namespace tokamak::gpu {
namespace {

// Of an f32 (IEEE 754): bits below the exponent, the mask and the bias of the exponent.
constexpr int64_t kFractionBits = 23, kExponentBias = 127;
constexpr Bits kExponentMask = 0x7f800000;
// A scale makes the largest weight at least 2^14, and less than 2^15: f16 ends at 65504 (IEEE 754).
constexpr int64_t kLargestExponent = 14;
// Exponent of the largest scale. Chosen: its inverse is no subnormal.
constexpr int64_t kMostScale = 126;

constexpr Bits PowerBits(int64_t exponent) {
  return static_cast<Bits>(exponent + kExponentBias) << kFractionBits;
}

Scalar BitsOf(KernelBuilder& b, Bits bits) {
  return b.ConstantBits(ScalarType::kU32, bits);
}

}  // namespace

void ChainScales::Declare(int64_t halves) {
  for (size_t second = 0; second < t_.seconds.size(); ++second) {
    largest_.emplace_back();
    scales_.emplace_back();
    if (!Has(second)) continue;
    largest_[second] = b_.Local("largest_weight", ScalarType::kF32, Space::kRegisters, halves);
    scales_[second] = b_.Local("weight_scale", ScalarType::kF32, Space::kRegisters, halves);
  }
}

bool ChainScales::Has(size_t second) const {
  return t_.type == ScalarType::kF16 && t_.seconds[second].parts > 1;
}

void ChainScales::Begin(Scalar half) {
  for (size_t second = 0; second < scales_.size(); ++second) {
    if (!Has(second)) continue;
    b_.Store(largest_[second], half, b_.Constant(ScalarType::kF32, 0));
    b_.Store(scales_[second], half, BitsOf(b_, PowerBits(kMostScale)).BitsAs(ScalarType::kF32));
  }
}

void ChainScales::Add(size_t second, Scalar half, Scalar weight) {
  if (!Has(second)) return;
  b_.Store(largest_[second], half, GreaterOf(b_.Read(largest_[second], half), AbsOf(weight)));
}

// The exponents of the largest weight and of its scale have a constant sum.
Scalar ChainScales::Update(size_t second, Scalar half) {
  Scalar largest = b_.Read(largest_[second], half), before = Scale(second, half);
  for (int64_t lane = 1; lane < kQuad; lane *= 2)
    largest = GreaterOf(largest, b_.Shuffle(largest, b_.Index(lane)));
  Scalar exponent = largest.BitsAs(ScalarType::kU32) & BitsOf(b_, kExponentMask);
  constexpr Bits kSum = PowerBits(kLargestExponent) + PowerBits(0);
  exponent = GreaterOf(exponent, BitsOf(b_, kSum - PowerBits(kMostScale)));
  Scalar scale = (BitsOf(b_, kSum) - exponent).BitsAs(ScalarType::kF32);
  b_.Store(scales_[second], half, scale);
  return scale * InverseOf(before);
}

Scalar ChainScales::InverseOf(const Scalar& scale) {
  return (BitsOf(b_, 2 * PowerBits(0)) - scale.BitsAs(ScalarType::kU32)).BitsAs(ScalarType::kF32);
}

}  // namespace tokamak::gpu
