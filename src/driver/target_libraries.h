#pragma once

#include <memory>

#include "driver/target.h"
#include "gen/library/libraries.h"

namespace tokamak {

// The libraries that programs for a target may call: those of its device or of this machine, or all
// that such a target has when it is only described. Null: none.
std::unique_ptr<TargetLibraries> LibrariesOf(const Target& target);

}  // namespace tokamak
