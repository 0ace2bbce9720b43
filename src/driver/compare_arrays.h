#pragma once

#include <optional>
#include <span>
#include <string>

#include "ir/literal.h"

namespace tokamak {

// How far a result may lie from what is expected. Integers and preds are
// exact. A real is close when |got - exp| <= atol + rtol*|exp|, or when it is
// at most `ulp` representable steps away. NaN equals NaN, infinities equal
// themselves only.
struct Tolerance {
  std::optional<double> rtol, atol;  // unset: 1e-4; bf16 and f16 2e-2; f8 and smaller 1e-1
  int64_t ulp = -1;                  // given alone, it replaces rtol and atol
};

// Empty when the first `count` elements are close to `expected` in at least one of the opinions;
// else the first element that is not, the worst error of the first opinion and how many there are,
// in words. All have equal shapes.
std::string DifferenceBeyond(std::span<const Literal> opinions, const Literal& expected,
                             const Tolerance& tolerance, int64_t count);

// Steps between two numbers of a real type; 0 for equal ones and for +0, -0.
int64_t UlpsBetween(ElementType type, double a, double b);

// Element i as a person reads it; reads back to the same number.
std::string ElementText(const Literal& literal, int64_t i);
// "f32[2,2] {1, 2, 3, 4}", cut after `limit` elements.
std::string ArrayText(const Literal& literal, int64_t limit);

}  // namespace tokamak
