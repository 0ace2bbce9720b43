#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "interp/rounding.h"
#include "interp/value.h"

namespace tokamak {

// Converts one element to another type by the rules of convert. Numbers to pred: whether nonzero.
// Reals to integers: truncated and saturated, NaN becomes 0. Integers to integers wrap. Complex to
// real: the real part.
class ElementConverter {
 public:
  ElementConverter(ElementType to, NumericMode mode)
      : round_(to, mode),
        exact_(RealPartOf(to) == ElementType::kF64 || mode == NumericMode::kOracle) {
    if (!IsInteger(to)) return;
    int bits = InfoOf(to).bits;
    if (IsSigned(to)) {
      max_ = std::numeric_limits<int64_t>::max() >> (64 - bits);
      min_ = -max_ - 1;
    } else {
      unsigned_max_ = ~uint64_t{0} >> (64 - bits);
    }
  }

  template <typename To, typename From>
  To Convert(From x) const {
    if constexpr (std::is_same_v<To, Complex>) {
      if constexpr (std::is_same_v<From, Complex>) return round_(x);
      return {Convert<double>(x), 0.0};
    } else if constexpr (std::is_same_v<To, uint8_t>) {
      return x != From(0) ? 1 : 0;
    } else if constexpr (std::is_same_v<From, Complex>) {
      return Convert<To>(x.real());
    } else if constexpr (std::is_same_v<To, double>) {
      if constexpr (std::is_same_v<From, double>) return round_(x);
      return exact_ ? static_cast<double>(x) : round_(Sticky(x));
    } else if constexpr (std::is_same_v<From, double>) {
      return Saturate<To>(x);
    } else {
      return round_(static_cast<To>(x));
    }
  }

 private:
  // Converts a wide integer for a narrow real result. Rounding to double first would round twice,
  // so the low bits that do not fit into a double are replaced by a sticky bit.
  template <typename Int>
  static double Sticky(Int x) {
    if constexpr (sizeof(Int) == 8) {
      // bits below a double's precision; the sticky bit
      constexpr uint64_t kLow = 0xfff, kStuck = 0x800;
      uint64_t bits = static_cast<uint64_t>(x);
      uint64_t magnitude = std::is_signed_v<Int> && x < Int(0) ? 0 - bits : bits;
      if ((bits & kLow) != 0 && magnitude >= uint64_t{1} << 53)
        return static_cast<double>(static_cast<Int>((bits & ~kLow) | kStuck));
    }
    return static_cast<double>(x);
  }

  template <typename To>
  To Saturate(double x) const {
    if (std::isnan(x)) return 0;
    x = std::trunc(x);
    if constexpr (std::is_same_v<To, int64_t>) {
      if (x >= static_cast<double>(max_)) return max_;
      if (x <= static_cast<double>(min_)) return min_;
      return static_cast<int64_t>(x);
    } else {
      if (x <= 0) return 0;
      if (x >= static_cast<double>(unsigned_max_)) return unsigned_max_;
      return static_cast<uint64_t>(x);
    }
  }

  Rounder round_;
  bool exact_;
  int64_t min_ = 0, max_ = 0;
  uint64_t unsigned_max_ = 0;
};

}  // namespace tokamak
