#pragma once

#include <vector>

#include "lower/memory.h"
#include "runtime/steps.h"

namespace tokamak {

// Puts a step among the others wherever a value of the arena is dead and its bytes are nobody's
// yet: whoever reads them then reads NaN. The whole arena is so at the beginning. For tests:
// the square of the number of values, so that of programs with very many nothing but the beginning
// is poisoned.
void PoisonFreed(std::vector<RunStep>& steps, const MemoryPlan& memory);

}  // namespace tokamak
