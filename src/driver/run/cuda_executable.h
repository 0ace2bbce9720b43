#pragma once

#include <memory>

#include "driver/compile/compilation.h"
#include "driver/run/executable.h"
#include "runtime/device.h"
#include "support/result.h"

namespace tokamak {

// Loads a program's kernels onto the GPU of its target.
Result<std::shared_ptr<const Executable>> MakeCudaExecutable(
    std::shared_ptr<const Compilation> compilation);

// Wraps a host executable as one of a device: arrays are copied to the host and back.
std::shared_ptr<const Executable> OnDevice(std::shared_ptr<const Executable> executable,
                                           Device& device);

}  // namespace tokamak
