#pragma once

#include <string>
#include <vector>

#include "interp/value.h"

namespace tokamak::fuzz {

// Empty if the values are the same; otherwise describes the first element that differs. NaN equals
// NaN, and 0 differs from -0.
std::string DifferenceOf(const std::vector<Value>& before, const std::vector<Value>& after);

}  // namespace tokamak::fuzz
