#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "support/result.h"

// The CUDA driver, opened when it is first asked for: what cuda.h of CUDA 12 and 13 declares, under
// names of our own. Handles are pointers, results numbers.

namespace tokamak::cuda {

using Address = uint64_t;  // CUdeviceptr
using Handle = void*;      // CUcontext, CUstream, CUevent, CUmodule, CUfunction ...

// TOK_DRIVER(our name, the driver's, parameters)
#define TOK_DRIVER_FUNCTIONS(TOK_DRIVER)                                                    \
  TOK_DRIVER(init, "cuInit", (unsigned))                                                    \
  TOK_DRIVER(version, "cuDriverGetVersion", (int*))                                         \
  TOK_DRIVER(error_name, "cuGetErrorName", (int, const char**))                             \
  TOK_DRIVER(error_text, "cuGetErrorString", (int, const char**))                           \
  TOK_DRIVER(device_count, "cuDeviceGetCount", (int*))                                      \
  TOK_DRIVER(device, "cuDeviceGet", (int*, int))                                            \
  TOK_DRIVER(device_name, "cuDeviceGetName", (char*, int, int))                             \
  TOK_DRIVER(device_memory, "cuDeviceTotalMem_v2", (size_t*, int))                          \
  TOK_DRIVER(device_attribute, "cuDeviceGetAttribute", (int*, int, int))                    \
  TOK_DRIVER(retain_context, "cuDevicePrimaryCtxRetain", (Handle*, int))                    \
  TOK_DRIVER(set_current, "cuCtxSetCurrent", (Handle))                                      \
  TOK_DRIVER(allocate, "cuMemAlloc_v2", (Address*, size_t))                                 \
  TOK_DRIVER(free, "cuMemFree_v2", (Address))                                               \
  TOK_DRIVER(allocate_host, "cuMemHostAlloc", (void**, size_t, unsigned))                   \
  TOK_DRIVER(free_host, "cuMemFreeHost", (void*))                                           \
  TOK_DRIVER(copy_in, "cuMemcpyHtoDAsync_v2", (Address, const void*, size_t, Handle))       \
  TOK_DRIVER(copy_out, "cuMemcpyDtoHAsync_v2", (void*, Address, size_t, Handle))            \
  TOK_DRIVER(copy_within, "cuMemcpyDtoDAsync_v2", (Address, Address, size_t, Handle))       \
  TOK_DRIVER(fill, "cuMemsetD8Async", (Address, unsigned char, size_t, Handle))             \
  TOK_DRIVER(create_stream, "cuStreamCreate", (Handle*, unsigned))                          \
  TOK_DRIVER(stream_wait, "cuStreamWaitEvent", (Handle, Handle, unsigned))                  \
  TOK_DRIVER(synchronize, "cuStreamSynchronize", (Handle))                                  \
  TOK_DRIVER(create_event, "cuEventCreate", (Handle*, unsigned))                            \
  TOK_DRIVER(record, "cuEventRecord", (Handle, Handle))                                     \
  TOK_DRIVER(query, "cuEventQuery", (Handle))                                               \
  TOK_DRIVER(wait, "cuEventSynchronize", (Handle))                                          \
  TOK_DRIVER(load, "cuModuleLoadData", (Handle*, const void*))                              \
  TOK_DRIVER(unload, "cuModuleUnload", (Handle))                                            \
  TOK_DRIVER(function, "cuModuleGetFunction", (Handle*, Handle, const char*))               \
  TOK_DRIVER(function_attribute, "cuFuncGetAttribute", (int*, int, Handle))                 \
  TOK_DRIVER(set_function_attribute, "cuFuncSetAttribute", (Handle, int, int))              \
  TOK_DRIVER(launch, "cuLaunchKernel",                                                      \
             (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
              Handle, void**, void**))

struct DriverApi {
#define TOK_DRIVER(name, symbol, parameters) int(*name) parameters = nullptr;
  TOK_DRIVER_FUNCTIONS(TOK_DRIVER)
#undef TOK_DRIVER
  int supports = 0;  // 13000: CUDA 13.0

  // Opened once. TK4201.
  static Result<const DriverApi*> Open();
  // "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
  std::string TextOf(int result) const;
};

// Numbers of cuda.h.
inline constexpr int kNotReady = 600;
inline constexpr int kOutOfDeviceMemory = 2;
inline constexpr int kAttributeMultiprocessors = 16;
inline constexpr int kAttributeMajor = 75, kAttributeMinor = 76;
inline constexpr int kFunctionRegisters = 4, kFunctionLocalBytes = 3, kFunctionDynamicBytes = 8;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventBlockingSync = 1, kEventNoTiming = 2;

}  // namespace tokamak::cuda
