#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernel/builder.h"

namespace tokamak {

// An index as a linear expression: constant + sum of factor * value. Terms are ordered by value id
// (variables of outer loops first); no factor is 0.
struct LinearIndex {
  int64_t constant = 0;
  std::vector<std::pair<ValueId, int64_t>> terms;

  bool operator==(const LinearIndex&) const = default;
};

// These return nullopt if the sum has too many terms or a factor overflows 64 bits.
std::optional<LinearIndex> LinearOf(const Kernel& kernel, ValueId id);
std::optional<LinearIndex> Sum(LinearIndex x, LinearIndex y);
std::optional<LinearIndex> Times(LinearIndex x, int64_t factor);
// Rewrites k * (x / a) * a + k * (x % a) to k * x wherever both terms occur in the sum. Also
// handles x = y / b with x / a written as y / (b * a).
std::optional<LinearIndex> Recombined(const Kernel& kernel, LinearIndex x);
// Emits the sum as values, terms that are invariant in inner loops first, so that placement can
// hoist them.
Scalar ValueOf(KernelBuilder& b, const LinearIndex& x);

}  // namespace tokamak
