#pragma once

#include <cstdint>

#include "support/ordered_key.h"

// Sort keys of elements in memory as unsigned integers of the same order (ordered_key.h).

namespace tokamak::sorting {

template <typename Raw>
inline constexpr KeyWord kWord{8 * sizeof(Raw)};
template <typename Raw>
inline constexpr Raw kSign = static_cast<Raw>(kWord<Raw>.sign());

// For orders in which zeros are equal and NaNs are equal: NaN is the greatest key.
template <typename Raw>
inline bool IsNan(Raw bits, Raw infinity) {
  return static_cast<Raw>(bits & ~kSign<Raw>) > infinity;
}

template <SortOrder order, typename Raw>
inline Raw KeyOf(Raw bits, Raw infinity) {
  if constexpr (order == SortOrder::kFloatNanLast) {
    bits = WithEqualNans(RawCode<Raw>(), bits, kWord<Raw>, infinity);
    bits = WithEqualZeros(RawCode<Raw>(), bits, kWord<Raw>);
  }
  return ToOrderedKey(RawCode<Raw>(), bits, kWord<Raw>, order);
}

template <SortOrder order, typename Raw>
inline Raw BitsOf(Raw key) {
  return FromOrderedKey(RawCode<Raw>(), key, kWord<Raw>, order);
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
