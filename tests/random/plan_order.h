#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ir/ir.h"
#include "random/check.h"

namespace tokamak::fuzz {

// The same program with its instructions in another order, by other names.
std::unique_ptr<Module> Shuffled(const Module& module, uint64_t seed);
// What tells the kernels of two programs apart, in words; "" when they are the same ones.
std::string DifferenceOfPlans(const Module& x, const Module& y);
// "plans:shuffled": programs in another order have the same kernels.
std::unique_ptr<Transformation> PlanShuffle();

}  // namespace tokamak::fuzz
