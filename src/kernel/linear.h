#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernel/builder.h"

namespace tokamak {

// An index as a sum: constant + the sum of factor * value, values in the order of their making
// (those of outer loops first), no factor 0.
struct LinearIndex {
  int64_t constant = 0;
  std::vector<std::pair<ValueId, int64_t>> terms;

  bool operator==(const LinearIndex&) const = default;
};

// Nothing when the sum grows too long or a factor leaves 64 bits.
std::optional<LinearIndex> LinearOf(const Kernel& kernel, ValueId id);
std::optional<LinearIndex> Sum(LinearIndex x, LinearIndex y);
std::optional<LinearIndex> Times(LinearIndex x, int64_t factor);
// k * (x / a) * a + k * (x % a) becomes k * x, wherever both stand in the sum; also where x is y /
// b, and x / a is written y / (b * a).
std::optional<LinearIndex> Recombined(const Kernel& kernel, LinearIndex x);
// The sum as values: invariants of inner loops come first.
Scalar ValueOf(KernelBuilder& b, const LinearIndex& x);

}  // namespace tokamak
