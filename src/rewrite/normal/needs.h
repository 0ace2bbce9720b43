#pragma once

#include <set>
#include <unordered_map>

#include "ir/ir.h"

namespace tokamak {

// For each while of a module (in the flat form that the normal form uses): the carried values that
// affect its results.
using LoopNeeds = std::unordered_map<const Instr*, std::set<size_t>>;
LoopNeeds FindLoopNeeds(const Module& module);

}  // namespace tokamak
