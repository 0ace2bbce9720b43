#pragma once

#include <string>
#include <vector>

#include "interp/value.h"

namespace tokamak::fuzz {

// The permitted difference of values (docs/numerics.md). Integers and preds are always exact, NaN
// equals NaN, infinities equal only themselves.
struct Closeness {
  int64_t ulps = 0;        // steps of a real type, and of each part of a complex one
  bool zero_signs = true;  // whether 0 and -0 differ
};

// Empty if `after` is as close to `before` as required; otherwise describes the first element that
// is not.
std::string DifferenceOf(const std::vector<Value>& before, const std::vector<Value>& after,
                         const Closeness& closeness);

}  // namespace tokamak::fuzz
