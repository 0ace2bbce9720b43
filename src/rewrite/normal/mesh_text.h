#pragma once

#include <string>
#include <vector>

#include "ir/sharding.h"

namespace tokamak {

// Mesh shardings in the text form that bytecode and HLO carry in the attributes of calls:
// #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>.
std::string ShardingsText(const std::vector<Sharding>& shardings);
// #sdy<manual_axes{"a", "b"}>
std::string ManualAxesText(const std::vector<std::string>& axes);

}  // namespace tokamak
