#pragma once

// Runs one computation per device concurrently, for programs with several replicas or partitions.

#include <cstdint>
#include <vector>

#include "interp/context.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// The computation of one device.
struct DeviceComputation {
  const Computation* computation = nullptr;
  std::vector<Value> arguments;
};

// Runs the computations concurrently, one thread each, on replicas x partitions devices (all
// partitions of the first replica first). Returns the first error of a device that was not merely
// waiting for another.
Result<std::vector<Value>> RunOnDevices(const Instr& instr, int64_t replicas, int64_t partitions,
                                        std::vector<DeviceComputation> runs, Context& context);

}  // namespace tokamak
