#include "driver/run/held_arrays.h"

#include <algorithm>

#include "interp/array_bytes.h"
#include "runtime/host_memory.h"

namespace tokamak {
namespace {

// The parameter whose memory a result reuses; -1 if none.
int64_t AliasOf(const Executable& executable, size_t result) {
  const std::vector<ParameterInfo>& parameters = executable.parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].alias_result == static_cast<int64_t>(result)) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace

Result<HeldArrays> HeldArrays::Make(const Executable& executable, std::span<const Value> leaves,
                                    const TextSpan& root) {
  const std::vector<ParameterInfo>& parameters = executable.parameters();
  if (leaves.size() != parameters.size())
    return MakeError(ErrorCode::kBadArguments, "run: the program takes " +
                                                   std::to_string(parameters.size()) +
                                                   " arrays, got " + std::to_string(leaves.size()));
  int64_t bytes = executable.memory().arguments + executable.memory().results;
  auto out_of_memory = [&] {
    return MakeError(ErrorCode::kOutOfMemory,
                     "run: the program takes " + std::to_string(bytes) +
                         " bytes for arguments and results, but the machine has " +
                         std::to_string(HostMemory()),
                     root);
  };
  if (static_cast<uint64_t>(bytes) > HostMemory()) return out_of_memory();
  HeldArrays held;
  auto take = [&](int64_t size) {
    auto rounded = (static_cast<size_t>(size) + 63) / 64 * 64 + 64;
    held.memory_.emplace_back(std::aligned_alloc(64, rounded));
    return held.memory_.back().get();
  };
  for (size_t i = 0; i < leaves.size(); ++i) {
    void* data = take(parameters[i].bytes);
    if (data == nullptr) return out_of_memory();
    if (!parameters[i].is_token) StoreBytes(leaves[i], data);
    held.inputs_.push_back(data);
  }
  for (size_t i = 0; i < executable.results().size(); ++i) {
    int64_t alias = AliasOf(executable, i);
    void* data = alias >= 0 ? const_cast<void*>(held.inputs_[static_cast<size_t>(alias)])
                            : take(executable.results()[i].bytes);
    if (data == nullptr) return out_of_memory();
    held.outputs_.push_back(data);
  }
  return held;
}

Result<DeviceArrays> DeviceArrays::Make(const Executable& executable,
                                        std::span<const void* const> inputs,
                                        std::span<void* const> outputs) {
  Device& device = *executable.device();
  std::string user = "arrays of '" + executable.name() + "'";
  DeviceArrays arrays;
  auto take = [&](int64_t bytes) -> Result<void*> {
    TOK_TRY(DeviceMemory allocated, DeviceMemory::Take(device, static_cast<size_t>(bytes), user));
    arrays.memory_.push_back(std::move(allocated));
    return arrays.memory_.back().data();
  };
  const std::vector<ParameterInfo>& parameters = executable.parameters();
  for (size_t i = 0; i < inputs.size(); ++i) {
    int64_t bytes = parameters[i % parameters.size()].bytes;
    TOK_TRY(void* data, take(bytes));
    TOK_RETURN_IF_ERROR(device.CopyIn(data, inputs[i], static_cast<size_t>(bytes)));
    arrays.inputs_.push_back(data);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    // A result may share memory with a donated parameter.
    auto shared = std::find(inputs.begin(), inputs.end(), outputs[i]);
    if (shared != inputs.end() && outputs[i] != nullptr) {
      auto number = static_cast<size_t>(shared - inputs.begin());
      arrays.outputs_.push_back(const_cast<void*>(arrays.inputs_[number]));
      continue;
    }
    TOK_TRY(void* data, take(executable.results()[i % executable.results().size()].bytes));
    arrays.outputs_.push_back(data);
  }
  return arrays;
}

}  // namespace tokamak
