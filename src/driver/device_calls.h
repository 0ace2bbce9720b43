#pragma once

#include <optional>

#include "backend/cuda/device_call.h"
#include "ir/ir.h"

namespace tokamak {

// What a library of a device may do of an instruction that is a step of the host's functions: an
// fft, a cholesky, a triangular-solve, or a call of LAPACK. None: nothing.
std::optional<cuda::DeviceCall> DeviceCallOf(const Instr& instr);

}  // namespace tokamak
