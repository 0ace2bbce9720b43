#pragma once

#include <string>

#include "ir/ir.h"

namespace tokamak {

// Runs both programs in the interpreter on drawn inputs. Returns the first difference as text;
// empty if there is none, or if the first program takes too long or cannot be run. `may_round`:
// within the tolerance of `run --expect`; otherwise bits are compared (NaN equals NaN).
std::string DifferenceOfValues(const Module& before, const Module& after, bool may_round);

}  // namespace tokamak
