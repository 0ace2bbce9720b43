#pragma once

#include <optional>

#include "kernel/linear.h"

namespace tokamak {

// Bytes of an element that CPUs load under a mask.
inline constexpr int64_t kLeastMasked = 4;

// An index of which what differs from lane to lane is cut off at constants, as that of a part of a
// concatenation or of what is padded: base + min(max(inner, low), high).
struct ClampedIndex {
  LinearIndex base;  // the same in all lanes
  ValueId inner = kNoValue;
  std::optional<int64_t> low, high;  // one at least
};

// base + value as such an index; nothing when it is another one.
std::optional<ClampedIndex> ClampedOf(const Kernel& kernel, LinearIndex base, ValueId value);

// varies(value): whether it differs from lane to lane.
template <typename Varies>
std::optional<ClampedIndex> ClampedOf(const Kernel& kernel, ValueId index, Varies&& varies) {
  std::optional<LinearIndex> sum = LinearOf(kernel, index);
  if (!sum) return std::nullopt;
  ValueId value = kNoValue;
  for (const auto& [term, factor] : sum->terms) {
    if (!varies(term)) continue;
    if (value != kNoValue || factor != 1) return std::nullopt;
    value = term;
  }
  if (value == kNoValue) return std::nullopt;
  std::erase_if(sum->terms, [&](const auto& term) { return term.first == value; });
  return ClampedOf(kernel, *std::move(sum), value);
}

}  // namespace tokamak
