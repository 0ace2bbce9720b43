#pragma once

#include <vector>

#include "lower/memory.h"
#include "runtime/steps.h"

namespace tokamak {

// A debugging aid for tests: inserts steps that fill freed bytes of the arena with NaN as soon as a
// value is dead and until the bytes are reused, so that a use after free computes NaN. The whole
// arena is poisoned at the start. Quadratic in the number of values; for programs with very many
// values only the initial poisoning is done.
void PoisonFreed(std::vector<RunStep>& steps, const MemoryPlan& memory);

}  // namespace tokamak
