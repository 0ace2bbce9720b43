#pragma once

#include <optional>

#include "backend/cuda/device_call.h"
#include "ir/ir.h"

namespace tokamak {

// The device library call that can replace a host step: an fft, a cholesky, a triangular-solve or a
// LAPACK call. nullopt if no library implements the instruction.
std::optional<cuda::DeviceCall> DeviceCallOf(const Instr& instr);

}  // namespace tokamak
