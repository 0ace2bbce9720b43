#pragma once

// Rounding of results to their element type, in bits.

#include <bit>
#include <cstdint>
#include <limits>

#include "interp/interp.h"
#include "interp/value.h"
#include "ir/element_type.h"

namespace tokamak {

// The canonical NaN. The NaN that arithmetic produces, including its sign, depends on the processor
// and the operand order. Rounded results use this one; data movement keeps the bits.
inline constexpr double kOneNan = std::numeric_limits<double>::quiet_NaN();

// Context::Round for one element type, with its parameters looked up once per array. Equals
// RoundToType in reference mode; numbers in the normal range of a narrow type are rounded in the
// bits of the double, all others take the slow path.
class Rounder {
 public:
  Rounder(ElementType type, NumericMode mode) : type_(type) {
    if (!IsReal(type) && !IsComplex(type)) {
      int bits = InfoOf(type).bits;
      unused_ = 64 - bits;
      mask_ = bits < 64 ? (uint64_t{1} << bits) - 1 : ~uint64_t{0};
      return;
    }
    type_ = RealPartOf(type);
    if (mode == NumericMode::kOracle || type_ == ElementType::kF64) return;
    const FloatFormat& format = FormatOf(type_);
    how_ = type_ == ElementType::kF32 ? How::kFloat : How::kNarrow;
    drop_ = 52 - format.mantissa_bits;
    // Biased exponents of the double between which every result is a normal number.
    low_ = static_cast<uint64_t>(1023 + 1 - format.bias);
    high_ = static_cast<uint64_t>(1023 + (1 << format.exponent_bits) - 2 - format.bias);
    if (format.mantissa_bits == 0) how_ = How::kSlow;
  }

  double operator()(double value) const {
    if (value != value) value = kOneNan;
    if (how_ == How::kNone) return value;
    if (how_ == How::kFloat) return static_cast<double>(static_cast<float>(value));
    if (how_ == How::kSlow) return RoundToType(type_, value);
    uint64_t bits = std::bit_cast<uint64_t>(value);
    uint64_t exponent = bits >> 52 & 0x7ff;
    if (exponent < low_ || exponent >= high_) return RoundToType(type_, value);
    bits += ((uint64_t{1} << (drop_ - 1)) - 1) + (bits >> drop_ & 1);
    return std::bit_cast<double>(bits >> drop_ << drop_);
  }
  Complex operator()(Complex value) const { return {(*this)(value.real()), (*this)(value.imag())}; }
  int64_t operator()(int64_t value) const {
    return static_cast<int64_t>(static_cast<uint64_t>(value) << unused_) >> unused_;
  }
  uint64_t operator()(uint64_t value) const { return value & mask_; }
  uint8_t operator()(uint8_t value) const { return value != 0 ? 1 : 0; }

 private:
  enum class How : uint8_t { kNone, kFloat, kNarrow, kSlow };
  ElementType type_;
  How how_ = How::kNone;
  int drop_ = 0, unused_ = 0;
  uint64_t low_ = 0, high_ = 0, mask_ = 0;
};

}  // namespace tokamak
