#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/sort.h"

// Maps sort keys to unsigned integers of the same order.

namespace tokamak::sorting {

template <typename Raw>
inline constexpr Raw kSign = static_cast<Raw>(Raw{1} << (8 * sizeof(Raw) - 1));

// Maps the bits of a float to total order: negative numbers reversed, below the others.
template <typename Raw>
inline Raw OrderedBits(Raw bits) {
  auto negative = static_cast<Raw>(Raw{0} - (bits >> (8 * sizeof(Raw) - 1)));  // all ones or zero
  return static_cast<Raw>(bits ^ (negative | kSign<Raw>));
}

template <typename Raw>
inline Raw UnorderedBits(Raw key) {
  return static_cast<Raw>((key & kSign<Raw>) != 0 ? key & ~kSign<Raw> : ~key);
}

// For orders in which zeros are equal and NaNs are equal: NaN is the greatest key.
template <typename Raw>
inline bool IsNan(Raw bits, Raw infinity) {
  return static_cast<Raw>(bits & ~kSign<Raw>) > infinity;
}

template <SortOrder order, typename Raw>
inline Raw KeyOf(Raw bits, Raw infinity) {
  if constexpr (order == SortOrder::kUnsigned) return bits;
  if constexpr (order == SortOrder::kSigned) return static_cast<Raw>(bits ^ kSign<Raw>);
  if constexpr (order == SortOrder::kFloatTotal) return OrderedBits(bits);
  if (IsNan(bits, infinity)) return static_cast<Raw>(~Raw{0});
  return OrderedBits(bits == kSign<Raw> ? Raw{0} : bits);
}

template <SortOrder order, typename Raw>
inline Raw BitsOf(Raw key) {
  if constexpr (order == SortOrder::kUnsigned) return key;
  if constexpr (order == SortOrder::kSigned) return static_cast<Raw>(key ^ kSign<Raw>);
  return UnorderedBits(key);
}

// Calls f.operator()<order>().
template <typename F>
auto WithOrder(SortOrder order, F&& f) {
  switch (order) {
    case SortOrder::kUnsigned:
      return f.template operator()<SortOrder::kUnsigned>();
    case SortOrder::kSigned:
      return f.template operator()<SortOrder::kSigned>();
    case SortOrder::kFloatTotal:
      return f.template operator()<SortOrder::kFloatTotal>();
    case SortOrder::kFloatNanLast:
    case SortOrder::kFloatIeee:
      break;
  }
  return f.template operator()<SortOrder::kFloatNanLast>();
}

// Calls f.operator()<Raw>() with the unsigned integer type of 1, 2, 4 or 8 bytes.
template <typename F>
auto WithBytes(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

}  // namespace tokamak::sorting
