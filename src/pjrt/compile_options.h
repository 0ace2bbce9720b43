#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/named_options.h"
#include "support/result.h"

namespace tokamak {

// What we read of a serialized CompileOptionsProto. The rest is skipped.
struct PjrtCompileOptions {
  int64_t num_replicas = 1, num_partitions = 1;
  bool tupled_arguments = false;
  bool portable = false;          // for one device, named when it is executed
  std::string device_assignment;  // the serialized DeviceAssignmentProto; "": none
  // Device of each replica and partition, replica after replica; empty: none was given.
  std::vector<int64_t> devices;
  // jax.jit(f, compiler_options={...}), in the order given.
  std::vector<std::pair<std::string, OptionValue>> overrides;
};

// TK6105 with the place of the fault in the bytes.
Result<PjrtCompileOptions> ReadCompileOptions(std::string_view bytes);

// A DeviceAssignmentProto of replicas x partitions devices.
std::string WriteDeviceAssignment(int64_t replicas, int64_t partitions,
                                  const std::vector<int64_t>& devices);

}  // namespace tokamak
