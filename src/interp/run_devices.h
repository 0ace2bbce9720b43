#pragma once

#include <cstdint>
#include <vector>

#include "interp/context.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// A computation for one device.
struct DeviceRun {
  const Computation* computation = nullptr;
  std::vector<Value> arguments;
};

// Runs computations together, a thread each, on replicas x partitions devices (the first replica's
// partitions first). The first error of a device that did not merely wait for another is the error.
Result<std::vector<Value>> RunOnDevices(const Instr& instr, int64_t replicas, int64_t partitions,
                                        std::vector<DeviceRun> runs, Context& context);

}  // namespace tokamak
