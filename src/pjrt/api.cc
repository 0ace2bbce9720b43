// The function table, and the wrapper of every slot: it checks the caller's struct and lets no
// exception escape.

#include <new>
#include <stdexcept>

#include "pjrt/extensions.h"
#include "pjrt/slots.h"

namespace tokamak {
namespace {

// Minimum size of a caller's struct. Fields beyond it were added to the ABI later or are optional:
// functions check each with TOK_PJRT_HOLDS.
template <typename Args>
inline constexpr size_t kLeastSize = kStructSize<Args>;
template <>
inline constexpr size_t kLeastSize<PJRT_Device_MemoryStats_Args> =
    offsetof(PJRT_Device_MemoryStats_Args, peak_bytes_in_use);
template <>
inline constexpr size_t kLeastSize<PJRT_Client_Create_Args> = offsetof(PJRT_Client_Create_Args,
                                                                       kv_try_get_callback);
template <>
inline constexpr size_t kLeastSize<PJRT_Client_CreateViewOfDeviceBuffer_Args> =
    offsetof(PJRT_Client_CreateViewOfDeviceBuffer_Args, memory);
template <>
inline constexpr size_t kLeastSize<PJRT_Client_CreateErrorBuffer_Args> =
    offsetof(PJRT_Client_CreateErrorBuffer_Args, payload);
template <>
inline constexpr size_t kLeastSize<PJRT_Executable_DeserializeAndLoad_Args> =
    offsetof(PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options);
template <>
inline constexpr size_t kLeastSize<PJRT_Executable_GetCompiledMemoryStats_Args> =
    offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, host_generated_code_size_in_bytes);
template <>
inline constexpr size_t kLeastSize<PJRT_Device_PoisonExecution_Args> =
    offsetof(PJRT_Device_PoisonExecution_Args, payload);

template <typename Args>
bool IsLongEnough(const Args* args) {
  return args != nullptr && args->struct_size >= kLeastSize<Args>;
}

// Adapts a slot's function to the C table.
template <auto kFunction, typename Args>
PJRT_Error* Enter(Args* args) noexcept {
  try {
    if (!IsLongEnough(args)) [[unlikely]]
      return Fail(ErrorCode::kCallerStruct, "pjrt: an argument struct is null or too short");
    return kFunction(*args);
  } catch (const std::bad_alloc&) {
    return new (std::nothrow) PJRT_Error{nullptr, PJRT_Error_Code_RESOURCE_EXHAUSTED,
                                         "error[TK5002]: pjrt: out of memory"};
  } catch (const std::exception& exception) {
    return Fail(ErrorCode::kOutOfMemory, std::string("pjrt: ") + exception.what());
  }
}
template <auto kFunction, typename Args>
void EnterVoid(Args* args) noexcept {
  if (IsLongEnough(args)) kFunction(*args);
}

template <typename Returned, auto kFunction, typename Args>
constexpr auto Entry() {
  if constexpr (std::is_void_v<Returned>) {
    return &EnterVoid<kFunction, Args>;
  } else {
    return &Enter<kFunction, Args>;
  }
}

constexpr PJRT_Api_Version kApiVersion = {
    .struct_size = kStructSize<PJRT_Api_Version>,
    .extension_start = nullptr,
    .major_version = 0,
    .minor_version = 114,
};

const PJRT_Api kApi = {
    sizeof(PJRT_Api),
    Extensions(),
    kApiVersion,
#define TOK_PJRT_FUNCTION(name, offset, returned, optional) Entry<returned, &name, name##_Args>(),
#include "pjrt/abi.def"
};

}  // namespace
}  // namespace tokamak

extern "C" __attribute__((visibility("default"))) const tokamak::PJRT_Api* GetPjrtApi() {
  return &tokamak::kApi;
}
