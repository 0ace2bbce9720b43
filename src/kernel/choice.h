#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Recognizes selects that LLVM miscompiles or for which a target has one instruction.

// A select between the two operands of a compare, and whether the compare is negated.
struct Choice {
  ValueId compare{};  // lt or le
  bool is_negated = false;
};

// A select of the form max(x, max(x, y)) (or min), written with compares. LLVM, including the copy
// inside NVRTC, simplifies it to the inner select, which is wrong if y is NaN. Backends hide the
// compare from the optimizer. nullopt if `id` is not such a select of f32 or f64.
std::optional<Choice> RepeatedChoice(const Kernel& kernel, ValueId id);

// A select between a number and 0 that compares the two and is then rounded to a narrower type.
// LLVM 19 turns it into a maximum that does not distinguish -0 from 0 if the compare has other
// users.
std::optional<Choice> RoundedChoiceByZero(const Kernel& kernel, ValueId id);

// The minimum or maximum of two reals, with NaN if either is NaN and -0 below +0: the pattern that
// MinimumOf and MaximumOf (formulas/arithmetic.cc) build from compares and bit operations. Some
// processors have one instruction for it.
struct Extreme {
  ValueId x{}, y{};
  bool is_least = false;
};
std::optional<Extreme> ExtremeOf(const Kernel& kernel, ValueId id);

// Values whose only users are extremes. They are dead on targets that have min/max instructions.
std::vector<bool> InsideExtremes(const Kernel& kernel);

}  // namespace tokamak
