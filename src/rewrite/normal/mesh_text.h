#pragma once

#include <string>
#include <vector>

#include "ir/sharding.h"

namespace tokamak {

// Shardings over a mesh as bytecode and HLO carry them in the attributes of
// calls: #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>.
std::string ShardingsText(const std::vector<Sharding>& shardings);
// #sdy<manual_axes{"a", "b"}>
std::string ManualAxesText(const std::vector<std::string>& axes);

}  // namespace tokamak
