#pragma once

#include <string>
#include <vector>

#include "interp/value.h"

namespace tokamak::fuzz {

// How far values may be from what they were (docs/numerics.md). Integers and
// preds are exact always, NaN equals NaN, infinities equal themselves only.
struct Closeness {
  int64_t ulps = 0;        // steps of a real type, and of each part of a complex one
  bool zero_signs = true;  // whether 0 and -0 differ
};

// Empty when `after` is as close to `before` as asked for; else the first element
// that is not, in words.
std::string DifferenceOf(const std::vector<Value>& before, const std::vector<Value>& after,
                         const Closeness& closeness);

}  // namespace tokamak::fuzz
