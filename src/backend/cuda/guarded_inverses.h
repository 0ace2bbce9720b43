#pragma once

#include <set>

#include "kernel/kernel.h"

namespace tokamak::cuda {

// The f32 quotients 1 / x that only matter for an x of ordinary size, or NaN: they reach a result
// only through selects whose conditions bound |x|, as in
//
//   |x| < 1 ? polynomial(x) : -x * x < -88.7 ? 0 : exp(-x * x) * (1 / |x|)
//
// They need no branch for subnormal numbers.
std::set<ValueId> GuardedInverses(const Kernel& kernel);

}  // namespace tokamak::cuda
