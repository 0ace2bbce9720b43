#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "interp/value.h"
#include "ir/attrs.h"

namespace tokamak {

// Compares as a check asks; empty when it passes, else the first difference in words. NaN equals
// NaN, -0 equals 0.
std::string CompareForCheck(const CheckAttrs& check, const Value& got, const Value& expected);
// How many numbers of a real type lie between two, plus one; 0 for equal ones and for two NaN.
uint64_t UlpDistance(ElementType type, double a, double b);
// One element as text: "-3", "1.5", "(1, 2)".
std::string ElementText(const Value& value, int64_t i);

}  // namespace tokamak
