#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// The compare, and whether it is negated, by which a select takes one of the two that it compares.
struct Choice {
  ValueId compare{};  // lt or le
  bool is_negated = false;
};

// Of a select that takes the larger (or smaller) of a number and of what was the larger of it and
// another. LLVM, also the one inside of NVRTC, takes the inner one for it, which is not so where
// the other is NaN: backends hide the compare. nullopt: `id` is no such select of f32 or f64.
std::optional<Choice> RepeatedChoice(const Kernel& kernel, ValueId id);

// Of a select that takes a number or 0 by comparing the two, and is then rounded to fewer bits:
// LLVM 19 takes it for a maximum to which -0 and 0 are one, where the compare has other users.
std::optional<Choice> RoundedChoiceByZero(const Kernel& kernel, ValueId id);

// The lesser or greater of two reals, NaN if one is, -0 less than +0: what MinimumOf and MaximumOf
// (formulas/arithmetic.cc) make of compares and bits. Some processors have an instruction for it.
struct Extreme {
  ValueId x{}, y{};
  bool is_least = false;
};
std::optional<Extreme> ExtremeOf(const Kernel& kernel, ValueId id);

// Values that only extremes need: where those are instructions, nobody computes them.
std::vector<bool> InsideExtremes(const Kernel& kernel);

}  // namespace tokamak
