#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/tensor_map.h"
#include "kernel/kernel.h"
#include "support/result.h"

// Kernel IR to CUDA C++: single kernels, horizontally fused launches and persistent loop kernels.
// NVRTC (nvrtc.h) compiles the text.
namespace tokamak::cuda {

// Types and functions of the prelude. A text contains only those that it uses.
enum class Helper : uint8_t {
  kVectorAccess,
  kBytes,
  kF16,
  kBf16,
  kF16Arithmetic,
  kBf16Arithmetic,
  kExtremes,
  kHidden,
  kApproximations,
  kDivision,
  kNarrowDivision,
  kOne,
  kSigns,
  kMatchLanes,
  kBlockMultiply,
  kCluster,
  kMbarriers,
  kPhases,
  kTensorMaps,
  kWarpgroupMultiply
};

// A function of a text: an asynchronous multiply of a warpgroup (wgmma).
struct WarpgroupMultiply {
  std::array<ScalarType, 2> types{};  // of lhs and rhs
  std::array<Float8, 2> float8{};
  int64_t columns = 0;
  bool lhs_in_registers = false, lhs_is_k_major = true, rhs_is_k_major = true;

  bool IsInteger() const { return BytesOf(types[0]) == 1 && float8[0] == Float8::kNone; }
  auto operator<=>(const WarpgroupMultiply&) const = default;
};

// A kernel in CUDA C++, to be compiled by NVRTC with --fmad=false and without headers.
struct CudaSource {
  std::string name;  // of the __global__ function, not mangled
  std::string text;
  // Threads of a block. The grid is one-dimensional: the product of the extents of all grid loops.
  std::array<int, 3> threads{1, 1, 1};
  // Thread blocks of a cluster. The grid has this many blocks per point of the grid loops.
  int cluster = 1;
  // Dynamic shared memory of the launch: used if a block needs more than the static limit of 48
  // KiB.
  int64_t dynamic_bytes = 0;
  std::set<Helper> helpers;
  std::set<WarpgroupMultiply> multiplies;
  // Parameters after all others: tensor maps, each a `const __grid_constant__ TensorMap`.
  std::vector<TensorMapForm> maps;
  bool uses_async = false;                // asynchronous work: the text needs kHopper
  bool is_custom = false;                 // a text of the user: compiled alone, with a time limit
  std::vector<std::string> options = {};  // of NVRTC, after ours; custom texts only
};

// The architecture of asynchronous work: compute capability 9.0 with its own features (CUDA).
inline constexpr const char* kHopper = "sm_90a";

// The types and functions that precede the functions of a text.
std::string Prelude(const CudaSource& source);

// Writes a verified kernel. The parameters are the arguments, then the extents; each value is one
// line; the kernel's notes are a comment above it. The lanes of a vector loop run in sequence in
// registers; loads and stores that are contiguous across the lanes and aligned become one wide
// access. Returns TK4120 if CUDA C++ cannot express the kernel.
Result<CudaSource> CudaText(const Kernel& kernel);

// Writes a kernel as a __device__ function `name`, without the prelude. Its parameters are the
// block index, shared memory, then the arguments. It runs on the first threads of a one-dimensional
// block; `dynamic_bytes` is all the shared memory that it needs. Requires a kernel without extents.
Result<CudaSource> DeviceFunctionText(const Kernel& kernel, const std::string& name);

// How a horizontally fused launch receives its pointers: the arguments of all kernels, in order.
enum class PointerTable : uint8_t {
  kParameter,  // by value: the only parameter of the launch
  kMemory,     // in device memory that the only parameter points to
};

struct HorizontalSource {
  CudaSource source;
  PointerTable table{};
};

// Horizontal fusion: one launch whose grid is the concatenation of the grids of several kernels.
// Equal kernels are one device function. A block has as many threads as the largest kernel needs;
// blocks of smaller kernels let their surplus threads exit at once.
struct HorizontalKernel {
  const Kernel* kernel = nullptr;
  int64_t blocks = 0;
};
Result<HorizontalSource> HorizontalText(const std::string& name,
                                        std::span<const HorizontalKernel> entries);

// A loop as one persistent cooperative kernel. As many thread blocks as are resident at once run
// all iterations. An iteration is a sequence of phases; a phase runs kernels (grid-stride over
// their blocks) or a copy. A grid barrier precedes each phase that reads what other blocks wrote
// since the last one:
//
//   for each iteration:  phase 0 | phase 1 | grid barrier | phase 2 | grid barrier
struct LoopShape {
  struct Phase {
    size_t entries = 0;          // number of kernels, which run concurrently; 0: a copy
    int64_t bytes = 0;           // of a copy, to the first of two pointers from the second
    bool needs_barrier = false;  // a grid barrier precedes it (one always ends an iteration)
    bool operator==(const Phase&) const = default;
  };
  // Phases that compute whether another iteration follows: a byte, whose pointer follows those of
  // the condition. Empty if the launch passes the trip count.
  std::vector<Phase> condition;
  std::vector<Phase> body;
  std::vector<Phase> closing;  // copies after an odd number of iterations
  // Double buffering: odd iterations have their own pointers, which follow those of even ones.
  bool alternates_buffers = false;

  bool has_condition() const { return !condition.empty(); }
  bool operator==(const LoopShape&) const = default;
};

// Number of pointers of a loop: of an iteration (odd and even ones have equally many) and in all.
struct LoopPointers {
  size_t condition = 0, iteration = 0, closing = 0, all = 0;
};
LoopPointers PointersOf(const LoopShape& shape, std::span<const HorizontalKernel> entries);

// `entries`: the kernels of the condition, then those of the body. Parameters of the kernel: all
// pointers by value; kLoopMemory zeroed bytes for the grid barrier; the maximum number of
// iterations of this launch; whether the first one is odd; whether the closing copies follow them.
// The kernel stores the number of iterations that it ran, and whether the condition ended the loop,
// in the last two 64-bit words of that memory.
// Bytes: the barrier's counter is at the front, the results at the end, in another cache line.
inline constexpr size_t kLoopMemory = 512;
Result<CudaSource> CudaLoopText(const std::string& name, std::span<const HorizontalKernel> entries,
                                const LoopShape& shape);

}  // namespace tokamak::cuda
