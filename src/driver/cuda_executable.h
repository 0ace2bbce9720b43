#pragma once

#include <memory>

#include "driver/executable.h"
#include "explain/decision.h"
#include "ir/ir.h"
#include "runtime/device.h"
#include "support/result.h"

namespace tokamak {

// An executable whose kernels run on a GPU, for the (verified, optimized) module. Null when the
// program is one that only the interpreter runs: the module is left as it is then, and the log says
// why. The device is one of DeviceOf.
Result<std::shared_ptr<const Executable>> MakeCudaExecutable(std::unique_ptr<Module>& module,
                                                             const CompileOptions& options,
                                                             Device& device, DecisionLog& log);

// An executable of the host, as one of a device: arrays are copied there and back.
std::shared_ptr<const Executable> OnDevice(std::shared_ptr<const Executable> executable,
                                           Device& device);

}  // namespace tokamak
