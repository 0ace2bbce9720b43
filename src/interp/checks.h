#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "interp/value.h"
#include "ir/attrs.h"

namespace tokamak {

// Compares two values as a check specifies. Returns an empty string if the check passes, otherwise
// a description of the first difference. NaN equals NaN, -0 equals 0.
std::string CompareForCheck(const CheckAttrs& check, const Value& got, const Value& expected);
// The distance of two numbers in units in the last place of a real type; 0 for equal numbers and
// for two NaNs.
uint64_t UlpDistance(ElementType type, double a, double b);
// One element as text: "-3", "1.5", "(1, 2)".
std::string ElementText(const Value& value, int64_t i);

}  // namespace tokamak
