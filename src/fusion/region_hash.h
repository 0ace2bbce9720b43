#pragma once

#include <cstdint>

#include "gen/region.h"

namespace tokamak {

// Equal for regions that differ in names and places only: what is planned for one layer is known
// for all that are like it.
uint64_t StructuralHash(const Region& region);

}  // namespace tokamak
