#pragma once

#include <memory>

#include "driver/compile/target.h"
#include "gen/library/libraries.h"

namespace tokamak {

// The libraries that programs for a target may call: those of its device or of this machine; for a
// target that is only described, all that it may have. Null if none.
std::unique_ptr<TargetLibraries> LibrariesOf(const Target& target);

}  // namespace tokamak
