#pragma once

#include <vector>

#include "runtime/steps.h"

namespace tokamak {

// Double buffering of loop-carried values. A loop body that ends with copies of new values into the
// carried buffers gets a second body with the two buffers of each copy swapped. Odd and even
// iterations alternate between the bodies, and the copies run only once after the loop, if needed.
// This doubles the steps of the body; loops with very many steps are not changed.
void AlternateLoops(std::vector<RunStep>& steps);

}  // namespace tokamak
