#pragma once

#include <vector>

#include "gen/region.h"

namespace tokamak {

// Instructions of a region through which all that it makes of an input goes, in order: whoever has
// one of them stored does not need the input. Nothing that is stored already, nor behind it.
std::vector<const Instr*> NecksBehind(const Region& region, const Instr& input);

}  // namespace tokamak
