#pragma once

#include <cstdint>
#include <optional>

#include "ir/element_type.h"

namespace tokamak {

// Minimum and maximum of an integer type whose range fits in int64_t: all types except u64.
struct IntRange {
  int64_t low, high;
};
inline std::optional<IntRange> RangeOfType(ElementType type) {
  int bits = InfoOf(type).bits;
  if (IsSigned(type)) {
    int64_t high = INT64_MAX >> (64 - bits);
    return IntRange{-high - 1, high};
  }
  if (!IsUnsigned(type) || bits == 64) return std::nullopt;
  return IntRange{0, (int64_t{1} << bits) - 1};
}

}  // namespace tokamak
