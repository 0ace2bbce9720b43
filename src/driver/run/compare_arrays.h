#pragma once

#include <optional>
#include <span>
#include <string>

#include "ir/literal.h"

// Comparison of arrays within a tolerance, and element text for messages.

namespace tokamak {

// Allowed difference between a result and its expected value. Integers and preds are compared
// exactly. A real is close if |got - exp| <= atol + rtol*|exp|, or if it is at most `ulp`
// representable numbers away. NaN equals NaN; an infinity equals only itself.
struct Tolerance {
  std::optional<double> rtol, atol;  // unset: 1e-4; bf16 and f16 2e-2; f8 and smaller 1e-1
  int64_t ulp = -1;                  // if set alone, it replaces rtol and atol
};

// Compares the first `count` elements of each opinion with `expected`. Returns an empty string if
// at least one opinion is close; otherwise a text with the first element that differs, the largest
// error of the first opinion and the number of differing elements. All arrays have equal shapes.
std::string DifferenceBeyond(std::span<const Literal> opinions, const Literal& expected,
                             const Tolerance& tolerance, int64_t count);

// Number of representable steps between two numbers of a real type; 0 for equal numbers and for +0,
// -0.
int64_t UlpsBetween(ElementType type, double a, double b);

// Element i as decimal text that parses back to the same number.
std::string ElementText(const Literal& literal, int64_t i);
// "f32[2,2] {1, 2, 3, 4}", truncated after `limit` elements.
std::string ArrayText(const Literal& literal, int64_t limit);

}  // namespace tokamak
