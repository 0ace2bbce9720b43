#pragma once

#include <optional>

#include "kernel/linear.h"

namespace tokamak {

// Masked loads: indices that are clamped to constant bounds, as padding and concatenation produce.

// The smallest element size, in bytes, that CPU backends load under a mask. Chosen: AVX2 and
// AVX-512F mask elements of 32 bits or more.
inline constexpr int64_t kMinMaskedBytes = 4;

// An index base + min(max(inner, low), high) where only `inner` is divergent across lanes. Reads of
// an operand of a concatenation or of a padded array have this form.
struct ClampedIndex {
  LinearIndex base;  // uniform across lanes
  ValueId inner = kNoValue;
  std::optional<int64_t> low, high;  // at least one is set
};

// Matches base + value. nullopt if it does not have this form.
std::optional<ClampedIndex> ClampedOf(const Kernel& kernel, LinearIndex base, ValueId value);

// varies(value): whether the value is divergent across lanes.
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
