// Entry points of PJRT for compiling, loading, serializing and describing programs. Three objects:
//
//   Program                  the compiled program and the storage of its getters; immutable, shared
//   PJRT_Executable          a handle of a Program, without devices
//   PJRT_LoadedExecutable    a Program with device assignment and client; JAX executes it
//
// The ABI returns pointers to arrays that must live as long as the handle, so a Program precomputes
// result types, dimensions and memory kinds in the ABI's layout. Byte strings are handed over with
// a deleter (OwnedBytes). Fields that newer versions of the ABI added are written only if the
// caller's struct has them (TOK_PJRT_HOLDS).

#include "pjrt/executable.h"

#include <algorithm>
#include <cstring>

#include "driver/run/cuda_executable.h"
#include "pjrt/slots.h"
#include "runtime/host_allocator.h"

namespace tokamak {
namespace {

// Bytes that the caller frees through a deleter of ours.
template <typename Handle>
struct OwnedBytes {
  static Handle* MakeOwned(std::string bytes, const char** data, size_t* size) {
    auto* held = new std::string(std::move(bytes));
    *data = held->data();
    *size = held->size();
    return reinterpret_cast<Handle*>(held);
  }
  static void Free(Handle* handle) { delete reinterpret_cast<std::string*>(handle); }
};

}  // namespace

// A portable program of one device has no device assignment: each execution names its device.
// Logical ids are replica-major.
Result<PJRT_LoadedExecutable*> LoadProgram(PJRT_Client& client,
                                           std::shared_ptr<const Program> program,
                                           const PjrtCompileOptions& options) {
  auto loaded = std::make_unique<PJRT_LoadedExecutable>();
  std::vector<int64_t> devices = options.devices;
  int64_t count = options.num_replicas * options.num_partitions;
  bool portable = options.portable && count == 1;
  if (devices.empty() || portable) {
    devices.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) devices[static_cast<size_t>(i)] = i;
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    PJRT_Device* device = client.FindDevice(devices[i]);
    if (device == nullptr)
      return MakeError(ErrorCode::kUnknownDevice,
                       "compile: the program is for device " + std::to_string(devices[i]) +
                           ", the client has " + std::to_string(client.devices.size()));
    auto n = static_cast<int>(i), partitions = static_cast<int>(options.num_partitions);
    loaded->devices.push_back(device);
    loaded->logical_ids.push_back({n / partitions, n % partitions});
  }
  if (!portable)
    loaded->device_assignment =
        options.device_assignment.empty()
            ? WriteDeviceAssignment(options.num_replicas, options.num_partitions, devices)
            : options.device_assignment;
  loaded->client = Ref<PJRT_Client>::Share(&client);
  loaded->program = std::move(program);
  loaded->executable = loaded->program->executable;
  if (client.on != nullptr && loaded->executable->device() == nullptr)
    loaded->executable = OnDevice(loaded->executable, *client.on);
  return loaded.release();
}

PJRT_Error* PJRT_Client_Compile(PJRT_Client_Compile_Args& args) {
  if (Status running = args.client->CheckRunning(); !running.ok()) return Fail(running.error());
  std::string_view format(args.program->format, args.program->format_size);
  if (format != "mlir")
    return Fail(ErrorCode::kUnknownFormat,
                "compile: the program has format '" + std::string(format) + "', expected 'mlir'");
  std::string_view options(args.compile_options, args.compile_options_size);
  std::string_view code(args.program->code, args.program->code_size);
  TOK_PJRT_TRY(PjrtCompileOptions read, ReadCompileOptions(options));
  // A new program needs other allocation sizes: release the memory cached for earlier ones.
  HostAllocator::OfProcess().Trim();
  TOK_PJRT_TRY(std::shared_ptr<const Program> program, CompileProgram(code, options));
  TOK_PJRT_TRY(args.executable, LoadProgram(*args.client, std::move(program), read));
  return nullptr;
}

PJRT_Error* PJRT_Compile(PJRT_Compile_Args& args) {
  std::string_view options(args.compile_options, args.compile_options_size);
  std::string_view code(args.program->code, args.program->code_size);
  TOK_PJRT_TRY(std::shared_ptr<const Program> program, CompileProgram(code, options));
  args.executable = new PJRT_Executable{std::move(program)};
  return nullptr;
}

PJRT_Error* PJRT_Client_Load(PJRT_Client_Load_Args& args) {
  std::string_view given(args.compile_options, args.compile_options_size);
  std::shared_ptr<const Program> program = args.executable->program;
  TOK_PJRT_TRY(PjrtCompileOptions options,
               ReadCompileOptions(given.empty() ? std::string_view(program->options) : given));
  TOK_PJRT_TRY(args.loaded_executable, LoadProgram(*args.client, std::move(program), options));
  return nullptr;
}

PJRT_Error* PJRT_Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args& args) {
  if (Status running = args.client->CheckRunning(); !running.ok()) return Fail(running.error());
  std::string_view bytes(args.serialized_executable, args.serialized_executable_size);
  TOK_PJRT_TRY(std::shared_ptr<const Program> program, DeserializeProgram(bytes));
  std::string_view options = program->options;
  if (TOK_PJRT_HOLDS(args, overridden_serialized_compile_options_size) &&
      args.overridden_serialized_compile_options_size > 0)
    options = {args.overridden_serialized_compile_options,
               args.overridden_serialized_compile_options_size};
  TOK_PJRT_TRY(PjrtCompileOptions read, ReadCompileOptions(options));
  TOK_PJRT_TRY(args.loaded_executable, LoadProgram(*args.client, std::move(program), read));
  return nullptr;
}

PJRT_Error* PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args& args) {
  delete args.executable;
  return nullptr;
}

PJRT_Error* PJRT_Executable_Name(PJRT_Executable_Name_Args& args) {
  args.executable_name = args.executable->program->name.c_str();
  args.executable_name_size = args.executable->program->name.size();
  return nullptr;
}

PJRT_Error* PJRT_Executable_NumReplicas(PJRT_Executable_NumReplicas_Args& args) {
  args.num_replicas = static_cast<size_t>(args.executable->program->executable->replicas());
  return nullptr;
}

PJRT_Error* PJRT_Executable_NumPartitions(PJRT_Executable_NumPartitions_Args& args) {
  args.num_partitions = static_cast<size_t>(args.executable->program->executable->partitions());
  return nullptr;
}

PJRT_Error* PJRT_Executable_NumOutputs(PJRT_Executable_NumOutputs_Args& args) {
  args.num_outputs = args.executable->program->result_types.size();
  return nullptr;
}

PJRT_Error* PJRT_Executable_SizeOfGeneratedCodeInBytes(
    PJRT_Executable_SizeOfGeneratedCodeInBytes_Args& args) {
  args.size_in_bytes = args.executable->program->executable->memory().code;
  return nullptr;
}

PJRT_Error* PJRT_Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args& args) {
  args.properties = args.executable->program->cost.data();
  args.num_properties = args.executable->program->cost.size();
  return nullptr;
}

PJRT_Error* PJRT_Executable_GetCompiledMemoryStats(
    PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  const MemoryAnalysis& memory = args.executable->program->executable->memory();
  args.generated_code_size_in_bytes = memory.code;
  args.argument_size_in_bytes = memory.arguments;
  args.output_size_in_bytes = memory.results;
  args.alias_size_in_bytes = memory.aliased;
  args.temp_size_in_bytes = memory.temporary;
  int64_t peak = memory.arguments + memory.results - memory.aliased + memory.temporary;
#define TOK_SET(field, value) \
  if (TOK_PJRT_HOLDS(args, field)) args.field = (value)
  TOK_SET(host_generated_code_size_in_bytes, 0);
  TOK_SET(host_argument_size_in_bytes, 0);
  TOK_SET(host_output_size_in_bytes, 0);
  TOK_SET(host_alias_size_in_bytes, 0);
  TOK_SET(host_temp_size_in_bytes, 0);
  TOK_SET(peak_memory_in_bytes, peak);
  TOK_SET(total_size_in_bytes, peak + memory.code);
  TOK_SET(total_allocation_bytes, peak);
  TOK_SET(indefinite_allocations, 0);
  TOK_SET(peak_unpadded_heap_bytes, peak);
#undef TOK_SET
  return nullptr;
}

PJRT_Error* PJRT_Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args& args) {
  const Program& program = *args.executable->program;
  args.output_types = const_cast<PJRT_Buffer_Type*>(program.result_types.data());
  args.num_output_types = program.result_types.size();
  return nullptr;
}

PJRT_Error* PJRT_Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args& args) {
  const Program& program = *args.executable->program;
  args.num_outputs = program.result_ranks.size();
  args.dims = program.result_dims.data();
  args.dim_sizes = program.result_ranks.data();
  return nullptr;
}

PJRT_Error* PJRT_Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args& args) {
  const Program& program = *args.executable->program;
  args.num_outputs = program.result_kinds.size();
  args.memory_kinds = program.result_kinds.data();
  args.memory_kind_sizes = program.result_kind_sizes.data();
  return nullptr;
}

PJRT_Error* PJRT_Executable_ParameterMemoryKinds(PJRT_Executable_ParameterMemoryKinds_Args& args) {
  const Program& program = *args.executable->program;
  args.num_parameters = program.parameter_kinds.size();
  args.memory_kinds = program.parameter_kinds.data();
  args.memory_kind_sizes = program.parameter_kind_sizes.data();
  return nullptr;
}

// Called twice: for the size, then for the bytes.
PJRT_Error* PJRT_Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args& args) {
  static constexpr std::string_view kFormat = "mlir";
  const Bytes& code = args.executable->program->bytes;
  PJRT_Program& program = *args.program;
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  if (program.code == nullptr) {
    program.code_size = code.size();
    return nullptr;
  }
  if (program.code_size < code.size())
    return Fail(ErrorCode::kHostBuffer, "optimized program: it has " + std::to_string(code.size()) +
                                            " bytes, but the buffer has " +
                                            std::to_string(program.code_size));
  std::memcpy(program.code, code.data(), code.size());
  return nullptr;
}

PJRT_Error* PJRT_Executable_Serialize(PJRT_Executable_Serialize_Args& args) {
  using Owned = OwnedBytes<PJRT_SerializedExecutable>;
  if (args.executable->program->executable->calls_host())
    return Fail(ErrorCode::kSerializedProgram,
                "serialize: '" + args.executable->program->name +
                    "' calls host functions, which exist only in this process");
  args.serialized_executable =
      Owned::MakeOwned(SerializeProgram(*args.executable->program), &args.serialized_bytes,
                       &args.serialized_bytes_size);
  args.serialized_executable_deleter = Owned::Free;
  return nullptr;
}

PJRT_Error* PJRT_Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args& args) {
  using Owned = OwnedBytes<PJRT_SerializedCompileOptions>;
  args.serialized_compile_options = Owned::MakeOwned(
      args.executable->program->options, &args.serialized_bytes, &args.serialized_bytes_size);
  args.serialized_compile_options_deleter = Owned::Free;
  return nullptr;
}

PJRT_Error* PJRT_Executable_Fingerprint(PJRT_Executable_Fingerprint_Args& args) {
  args.executable_fingerprint = args.executable->program->fingerprint.c_str();
  args.executable_fingerprint_size = args.executable->program->fingerprint.size();
  return nullptr;
}

PJRT_Error* PJRT_LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args& args) {
  args.executable_fingerprint = args.executable->program->fingerprint.c_str();
  args.executable_fingerprint_size = args.executable->program->fingerprint.size();
  return nullptr;
}

PJRT_Error* PJRT_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args& args) {
  delete args.executable;
  return nullptr;
}

PJRT_Error* PJRT_LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  args.executable = new PJRT_Executable{args.loaded_executable->program};
  return nullptr;
}

PJRT_Error* PJRT_LoadedExecutable_AddressableDevices(
    PJRT_LoadedExecutable_AddressableDevices_Args& args) {
  args.addressable_devices = args.executable->devices.data();
  args.num_addressable_devices = args.executable->devices.size();
  return nullptr;
}

PJRT_Error* PJRT_LoadedExecutable_AddressableDeviceLogicalIds(
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args& args) {
  args.addressable_device_logical_ids = args.executable->logical_ids.data();
  args.num_addressable_device_logical_ids = args.executable->logical_ids.size();
  return nullptr;
}

PJRT_Error* PJRT_LoadedExecutable_GetDeviceAssignment(
    PJRT_LoadedExecutable_GetDeviceAssignment_Args& args) {
  using Owned = OwnedBytes<PJRT_DeviceAssignmentSerialized>;
  args.serialized_device_assignment = Owned::MakeOwned(
      args.executable->device_assignment, &args.serialized_bytes, &args.serialized_bytes_size);
  args.serialized_device_assignment_deleter = Owned::Free;
  return nullptr;
}

PJRT_Error* PJRT_LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args& args) {
  args.executable->deleted.store(true);
  return nullptr;
}

PJRT_Error* PJRT_LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args& args) {
  args.is_deleted = args.executable->deleted.load();
  return nullptr;
}

}  // namespace tokamak
