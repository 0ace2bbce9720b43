#pragma once

// Checks that fusion plans do not depend on the order or the names of instructions.

#include <cstdint>
#include <memory>
#include <string>

#include "ir/ir.h"
#include "random/check.h"

namespace tokamak::fuzz {

// The same program with its instructions reordered and renamed.
std::unique_ptr<Module> Shuffled(const Module& module, uint64_t seed);
// Describes how the kernels of two programs differ; "" if they are the same.
std::string DifferenceOfPlans(const Module& x, const Module& y);
// "plans:shuffled": reordered programs have the same kernels.
std::unique_ptr<Transformation> PlanShuffle();

}  // namespace tokamak::fuzz
