#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "support/result.h"

// The CUDA driver API, loaded on first use: the declarations of cuda.h (CUDA 12 and 13) under our
// own names. Handles are pointers, results are ints.

namespace tokamak::cuda {

using Address = uint64_t;  // CUdeviceptr
using Handle = void*;      // CUcontext, CUstream, CUevent, CUmodule, CUfunction ...

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
  Handle function = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned dynamic_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  Handle kernel = nullptr, context = nullptr;
};

// CUDA_MEMCPY3D.
struct CopyNode {
  struct Side {
    size_t x = 0, y = 0, z = 0, lod = 0;
    unsigned memory_type = 2;  // CU_MEMORYTYPE_DEVICE
    const void* host = nullptr;
    Address device = 0;
    Handle array = nullptr;
    void* reserved = nullptr;
    size_t pitch = 0, height = 0;
  };
  Side from, to;
  size_t width = 0, height = 1, depth = 1;
};

// TOK_DRIVER(our name, the driver's symbol, parameters)
#define TOK_DRIVER_FUNCTIONS(TOK_DRIVER)                                                           \
  TOK_DRIVER(init, "cuInit", (unsigned))                                                           \
  TOK_DRIVER(version, "cuDriverGetVersion", (int*))                                                \
  TOK_DRIVER(error_name, "cuGetErrorName", (int, const char**))                                    \
  TOK_DRIVER(error_text, "cuGetErrorString", (int, const char**))                                  \
  TOK_DRIVER(device_count, "cuDeviceGetCount", (int*))                                             \
  TOK_DRIVER(device, "cuDeviceGet", (int*, int))                                                   \
  TOK_DRIVER(device_name, "cuDeviceGetName", (char*, int, int))                                    \
  TOK_DRIVER(device_memory, "cuDeviceTotalMem_v2", (size_t*, int))                                 \
  TOK_DRIVER(device_attribute, "cuDeviceGetAttribute", (int*, int, int))                           \
  TOK_DRIVER(retain_context, "cuDevicePrimaryCtxRetain", (Handle*, int))                           \
  TOK_DRIVER(set_current, "cuCtxSetCurrent", (Handle))                                             \
  TOK_DRIVER(allocate, "cuMemAlloc_v2", (Address*, size_t))                                        \
  TOK_DRIVER(free, "cuMemFree_v2", (Address))                                                      \
  TOK_DRIVER(allocate_host, "cuMemHostAlloc", (void**, size_t, unsigned))                          \
  TOK_DRIVER(free_host, "cuMemFreeHost", (void*))                                                  \
  TOK_DRIVER(copy_in, "cuMemcpyHtoDAsync_v2", (Address, const void*, size_t, Handle))              \
  TOK_DRIVER(copy_out, "cuMemcpyDtoHAsync_v2", (void*, Address, size_t, Handle))                   \
  TOK_DRIVER(copy_within, "cuMemcpyDtoDAsync_v2", (Address, Address, size_t, Handle))              \
  TOK_DRIVER(fill, "cuMemsetD8Async", (Address, unsigned char, size_t, Handle))                    \
  TOK_DRIVER(create_stream, "cuStreamCreate", (Handle*, unsigned))                                 \
  TOK_DRIVER(stream_wait, "cuStreamWaitEvent", (Handle, Handle, unsigned))                         \
  TOK_DRIVER(synchronize, "cuStreamSynchronize", (Handle))                                         \
  TOK_DRIVER(create_event, "cuEventCreate", (Handle*, unsigned))                                   \
  TOK_DRIVER(record, "cuEventRecord", (Handle, Handle))                                            \
  TOK_DRIVER(query, "cuEventQuery", (Handle))                                                      \
  TOK_DRIVER(wait, "cuEventSynchronize", (Handle))                                                 \
  TOK_DRIVER(load, "cuModuleLoadData", (Handle*, const void*))                                     \
  TOK_DRIVER(unload, "cuModuleUnload", (Handle))                                                   \
  TOK_DRIVER(function, "cuModuleGetFunction", (Handle*, Handle, const char*))                      \
  TOK_DRIVER(function_attribute, "cuFuncGetAttribute", (int*, int, Handle))                        \
  TOK_DRIVER(set_function_attribute, "cuFuncSetAttribute", (Handle, int, int))                     \
  TOK_DRIVER(create_graph, "cuGraphCreate", (Handle*, unsigned))                                   \
  TOK_DRIVER(destroy_graph, "cuGraphDestroy", (Handle))                                            \
  TOK_DRIVER(add_kernel, "cuGraphAddKernelNode_v2",                                                \
             (Handle*, Handle, const Handle*, size_t, const KernelNode*))                          \
  TOK_DRIVER(add_copy, "cuGraphAddMemcpyNode",                                                     \
             (Handle*, Handle, const Handle*, size_t, const CopyNode*, Handle))                    \
  TOK_DRIVER(instantiate, "cuGraphInstantiateWithFlags", (Handle*, Handle, unsigned long long))    \
  TOK_DRIVER(destroy_instance, "cuGraphExecDestroy", (Handle))                                     \
  TOK_DRIVER(set_kernel, "cuGraphExecKernelNodeSetParams_v2", (Handle, Handle, const KernelNode*)) \
  TOK_DRIVER(set_copy, "cuGraphExecMemcpyNodeSetParams",                                           \
             (Handle, Handle, const CopyNode*, Handle))                                            \
  TOK_DRIVER(launch_graph, "cuGraphLaunch", (Handle, Handle))                                      \
  TOK_DRIVER(max_active_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                     \
             (int*, Handle, int, size_t))                                                          \
  TOK_DRIVER(launch_together, "cuLaunchCooperativeKernel",                                         \
             (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,        \
              Handle, void**))                                                                     \
  TOK_DRIVER(launch, "cuLaunchKernel",                                                             \
             (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,        \
              Handle, void**, void**))

struct DriverApi {
#define TOK_DRIVER(name, symbol, parameters) int(*name) parameters = nullptr;
  TOK_DRIVER_FUNCTIONS(TOK_DRIVER)
#undef TOK_DRIVER
  // cuTensorMapEncodeTiled: map, data type, rank, address, sizes, strides in bytes, boxes, element
  // strides, interleave, swizzle, L2 promotion, fill. Null if the driver has no such function.
  int (*encode_tensor_map)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                           const uint32_t*, const uint32_t*, int, int, int, int) = nullptr;
  int supports = 0;  // 13000: CUDA 13.0

  // Loaded once. TK4201.
  static Result<const DriverApi*> Open();
  // "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
  std::string TextOf(int result) const;
};

// Enumerators of cuda.h.
inline constexpr int kNotReady = 600;
inline constexpr int kInvalidValue = 1, kOutOfDeviceMemory = 2;
inline constexpr int kAttributeMultiprocessors = 16;
inline constexpr int kAttributeMajor = 75, kAttributeMinor = 76;
inline constexpr int kAttributeClock = 13, kAttributeMemoryClock = 36, kAttributeBusWidth = 37,
                     kAttributeL2 = 38, kAttributeThreads = 39, kAttributeShared = 81,
                     kAttributeRegisters = 82;
inline constexpr int kFunctionRegisters = 4, kFunctionDynamicBytes = 8;
// CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
inline constexpr int kFunctionLargeCluster = 14;
// Blocks of a cluster that every device with clusters supports (CUDA programming guide).
inline constexpr int kPortableCluster = 8;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventBlockingSync = 1, kEventNoTiming = 2;

}  // namespace tokamak::cuda
