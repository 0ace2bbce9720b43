#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "driver/run/executable.h"
#include "pjrt/abi.h"
#include "pjrt/client.h"
#include "pjrt/compile_options.h"
#include "support/bytes.h"

namespace tokamak {

// Serialized shardings in the layout that the ABI requires.
struct ShardingTexts {
  std::vector<std::string> texts;
  std::vector<const char*> data;
  std::vector<size_t> sizes;
};

// A compiled program with the storage that the ABI's getters point to. Shared by all handles.
struct Program {
  std::shared_ptr<const Executable> executable;
  Bytes bytes;          // as received
  std::string options;  // the serialized compile options, as received
  std::string fingerprint;
  std::string name;
  NamedValues cost;
  std::vector<PJRT_Buffer_Type> result_types;
  std::vector<int64_t> result_dims;  // of all results, concatenated
  std::vector<size_t> result_ranks;
  std::vector<const char*> result_kinds, parameter_kinds;
  std::vector<size_t> result_kind_sizes, parameter_kind_sizes;
  std::vector<PJRT_Layouts_MemoryLayout*> result_layouts, parameter_layouts;
  ShardingTexts result_shardings, parameter_shardings;  // empty for one device
};

// Parses, verifies and compiles a program, or returns it from a cache.
Result<std::shared_ptr<const Program>> CompileProgram(std::string_view code,
                                                      std::string_view options);
// Serializes and deserializes an executable. Deserialization returns TK6111.
std::string SerializeProgram(const Program& program);
Result<std::shared_ptr<const Program>> DeserializeProgram(std::string_view bytes);

// A program that is not loaded into a client.
struct PJRT_Executable {
  std::shared_ptr<const Program> program;
};

struct PJRT_LoadedExecutable {
  Ref<PJRT_Client> client;
  std::shared_ptr<const Program> program;
  // The program's executable, wrapped if the client's arrays are on a device.
  std::shared_ptr<const Executable> executable;
  std::vector<PJRT_Device*> devices;
  std::vector<PJRT_LogicalDeviceIds> logical_ids;
  std::string device_assignment;
  std::atomic<bool> deleted{false};
};

// Loads a program onto the devices that its options name. Returns TK6109.
Result<PJRT_LoadedExecutable*> LoadProgram(PJRT_Client& client,
                                           std::shared_ptr<const Program> program,
                                           const PjrtCompileOptions& options);

}  // namespace tokamak
