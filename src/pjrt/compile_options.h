#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/compile/named_options.h"
#include "support/result.h"

namespace tokamak {

// The fields of a serialized CompileOptionsProto that the plugin uses. Others are skipped.
struct PjrtCompileOptions {
  int64_t num_replicas = 1, num_partitions = 1;
  bool portable = false;          // for one device, chosen at execution
  std::string device_assignment;  // the serialized DeviceAssignmentProto; empty if none
  // Device of each replica and partition, in replica-major order; empty if not specified.
  std::vector<int64_t> devices;
  // jax.jit(f, compiler_options={...}), in the caller's order.
  std::vector<std::pair<std::string, OptionValue>> overrides;
};

// Returns TK6105 with the byte offset of the error.
Result<PjrtCompileOptions> ReadCompileOptions(std::string_view bytes);

// A DeviceAssignmentProto of replicas x partitions devices.
std::string WriteDeviceAssignment(int64_t replicas, int64_t partitions,
                                  const std::vector<int64_t>& devices);

}  // namespace tokamak
