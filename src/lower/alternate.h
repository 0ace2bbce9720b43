#pragma once

#include <vector>

#include "runtime/steps.h"

namespace tokamak {

// Loops whose bodies end with copies of what they made to where it is carried get a second body, in
// which the two places of each copy have changed roles: rounds take turns, and nothing is copied
// but at the end. The steps become longer; loops of very many steps stay as they are.
void AlternateLoops(std::vector<RunStep>& steps);

}  // namespace tokamak
