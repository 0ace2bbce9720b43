#pragma once

// A minimal caller of the plugin for tests: every call goes through the ABI's function table.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pjrt/abi.h"

extern "C" const tokamak::PJRT_Api* GetPjrtApi();

namespace tokamak::test {

// Arguments of a call, zeroed except for their size.
template <typename Args>
Args Fresh() {
  Args args{};
  args.struct_size = kStructSize<Args>;
  return args;
}

// The text of an error, which is destroyed; empty for null.
inline std::string TextOf(PJRT_Error* error, PJRT_Error_Code* code = nullptr) {
  if (error == nullptr) return "";
  auto message = Fresh<PJRT_Error_Message_Args>();
  message.error = error;
  GetPjrtApi()->PJRT_Error_Message(&message);
  std::string text(message.message, message.message_size);
  auto get = Fresh<PJRT_Error_GetCode_Args>();
  get.error = error;
  GetPjrtApi()->PJRT_Error_GetCode(&get);
  if (code != nullptr) *code = get.code;
  auto destroy = Fresh<PJRT_Error_Destroy_Args>();
  destroy.error = error;
  GetPjrtApi()->PJRT_Error_Destroy(&destroy);
  return text;
}

// TOK_CALL(PJRT_Client_Create, args): calls a slot and returns the error text.
#define TOK_CALL(name, args) ::tokamak::test::TextOf(GetPjrtApi()->name(&(args)))

// Waits for an event and destroys it.
inline std::string Await(PJRT_Event* event) {
  auto await = Fresh<PJRT_Event_Await_Args>();
  await.event = event;
  std::string text = TOK_CALL(PJRT_Event_Await, await);
  auto destroy = Fresh<PJRT_Event_Destroy_Args>();
  destroy.event = event;
  TOK_CALL(PJRT_Event_Destroy, destroy);
  return text;
}

inline void Destroy(PJRT_Buffer* buffer) {
  auto args = Fresh<PJRT_Buffer_Destroy_Args>();
  args.buffer = buffer;
  TOK_CALL(PJRT_Buffer_Destroy, args);
}

inline void Delete(PJRT_Buffer* buffer) {
  auto args = Fresh<PJRT_Buffer_Delete_Args>();
  args.buffer = buffer;
  TOK_CALL(PJRT_Buffer_Delete, args);
}

inline bool IsDeleted(PJRT_Buffer* buffer) {
  auto args = Fresh<PJRT_Buffer_IsDeleted_Args>();
  args.buffer = buffer;
  TOK_CALL(PJRT_Buffer_IsDeleted, args);
  return args.is_deleted;
}

inline std::string Ready(PJRT_Buffer* buffer) {
  auto args = Fresh<PJRT_Buffer_ReadyEvent_Args>();
  args.buffer = buffer;
  TOK_CALL(PJRT_Buffer_ReadyEvent, args);
  return Await(args.event);
}

inline uintptr_t PointerOf(PJRT_Buffer* buffer) {
  auto args = Fresh<PJRT_Buffer_UnsafePointer_Args>();
  args.buffer = buffer;
  return TOK_CALL(PJRT_Buffer_UnsafePointer, args).empty() ? args.buffer_pointer : 0;
}

// The floats of a buffer; an error is stored in `error`.
inline std::vector<float> Get(PJRT_Buffer* buffer, std::string* error = nullptr) {
  auto dims = Fresh<PJRT_Buffer_Dimensions_Args>();
  dims.buffer = buffer;
  TOK_CALL(PJRT_Buffer_Dimensions, dims);
  size_t count = 1;
  for (size_t i = 0; i < dims.num_dims; ++i) count *= static_cast<size_t>(dims.dims[i]);
  std::vector<float> values(count);
  auto args = Fresh<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer;
  args.dst = values.data();
  args.dst_size = values.size() * sizeof(float);
  std::string text = TOK_CALL(PJRT_Buffer_ToHostBuffer, args);
  if (text.empty()) text = Await(args.event);
  if (error != nullptr) *error = text;
  return text.empty() ? values : std::vector<float>();
}

class Client {
 public:
  explicit Client(int64_t devices = 1) {
    auto args = Fresh<PJRT_Client_Create_Args>();
    PJRT_NamedValue option{};
    option.struct_size = kStructSize<PJRT_NamedValue>;
    option.name = "num_devices";
    option.name_size = 11;
    option.type = PJRT_NamedValue_kInt64;
    option.int64_value = devices;
    args.create_options = &option;
    args.num_options = 1;
    error = TOK_CALL(PJRT_Client_Create, args);
    client = args.client;
    if (client == nullptr) return;
    auto list = Fresh<PJRT_Client_Devices_Args>();
    list.client = client;
    TOK_CALL(PJRT_Client_Devices, list);
    device.assign(list.devices, list.devices + list.num_devices);
  }
  ~Client() { Stop(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Stop() {
    auto args = Fresh<PJRT_Client_Destroy_Args>();
    args.client = std::exchange(client, nullptr);
    if (args.client != nullptr) TOK_CALL(PJRT_Client_Destroy, args);
  }

  // Returns null on failure, with the reason in `error`.
  PJRT_LoadedExecutable* Compile(const std::string& text, const std::string& options = "") {
    PJRT_Program program{};
    program.struct_size = kStructSize<PJRT_Program>;
    program.code = const_cast<char*>(text.data());
    program.code_size = text.size();
    program.format = "mlir";
    program.format_size = 4;
    auto args = Fresh<PJRT_Client_Compile_Args>();
    args.client = client;
    args.program = &program;
    args.compile_options = options.data();
    args.compile_options_size = options.size();
    error = TOK_CALL(PJRT_Client_Compile, args);
    return error.empty() ? args.executable : nullptr;
  }

  PJRT_Buffer* Put(const std::vector<float>& values, size_t on = 0) {
    auto args = Fresh<PJRT_Client_BufferFromHostBuffer_Args>();
    int64_t count = static_cast<int64_t>(values.size());
    args.client = client;
    args.data = values.data();
    args.type = PJRT_Buffer_Type_F32;
    args.dims = &count;
    args.num_dims = 1;
    args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    args.device = device[on];
    error = TOK_CALL(PJRT_Client_BufferFromHostBuffer, args);
    if (!error.empty()) return nullptr;
    Await(args.done_with_host_buffer);
    return args.buffer;
  }

  // Runs on one device. Returns no buffers on failure, with the reason in `error`.
  std::vector<PJRT_Buffer*> Execute(PJRT_LoadedExecutable* executable,
                                    std::vector<PJRT_Buffer*> inputs, size_t outputs,
                                    std::vector<int64_t> keep = {}) {
    std::vector<PJRT_Buffer*> results(outputs, nullptr);
    PJRT_Buffer* const* argument_list = inputs.data();
    PJRT_Buffer** output_list = results.data();
    PJRT_Event* done = nullptr;
    auto options = Fresh<PJRT_ExecuteOptions>();
    options.non_donatable_input_indices = keep.data();
    options.num_non_donatable_input_indices = keep.size();
    auto args = Fresh<PJRT_LoadedExecutable_Execute_Args>();
    args.executable = executable;
    args.options = &options;
    args.argument_lists = &argument_list;
    args.num_devices = 1;
    args.num_args = inputs.size();
    args.output_lists = &output_list;
    args.device_complete_events = &done;
    std::string text = TOK_CALL(PJRT_LoadedExecutable_Execute, args);
    if (!text.empty()) {
      error = text;
      return {};
    }
    auto destroy = Fresh<PJRT_Event_Destroy_Args>();
    destroy.event = done;
    TOK_CALL(PJRT_Event_Destroy, destroy);
    return results;
  }

  PJRT_Client* client = nullptr;
  std::vector<PJRT_Device*> device;
  std::string error;
};

inline void Destroy(PJRT_LoadedExecutable* executable) {
  auto args = Fresh<PJRT_LoadedExecutable_Destroy_Args>();
  args.executable = executable;
  TOK_CALL(PJRT_LoadedExecutable_Destroy, args);
}

}  // namespace tokamak::test
