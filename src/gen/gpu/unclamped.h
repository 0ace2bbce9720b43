#pragma once

#include <optional>

#include "kernel/kernel.h"

namespace tokamak::gpu {

// The kernel without limits of indices from below and above: what a pad discards is then read where
// it would be, were the array larger, and all indices are those of the element and numbers that are
// known. Only of kernels in which limits stand for pads alone. Nothing when something that is read
// might lie outside of its array.
std::optional<Kernel> Unclamped(const Kernel& kernel);

}  // namespace tokamak::gpu
