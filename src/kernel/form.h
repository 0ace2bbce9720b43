#pragma once

#include <string>

#include "kernel/kernel.h"

namespace tokamak {

// A canonical byte string of a kernel, without names and notes: equal for two kernels if and only
// if they are equal value by value. It is the exact key of caches of compiled kernels. hash.h has a
// 64-bit hash that is also insensitive to the order of values; it can collide, so it is not a key.
std::string FormOf(const Kernel& kernel);

}  // namespace tokamak
