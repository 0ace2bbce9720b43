#pragma once

#include <cstdint>

// Hardware limits of thread blocks, for compute capability 9.0 (CUDA programming guide, technical
// specifications). Generators, the verifier and the CUDA backend use the same numbers.

namespace tokamak {

inline constexpr int64_t kMaxThreadsPerBlock = 1024;
// Threads of a warp.
inline constexpr int64_t kWarpSize = 32;
// Bytes of a register.
inline constexpr int64_t kRegisterBytes = 4;
// Thread blocks per cluster, with the non-portable size.
inline constexpr int64_t kMaxClusterBlocks = 16;
// Bytes of shared memory per block: static, and dynamic after opting in.
inline constexpr int64_t kStaticSharedBytes = 48 << 10, kMaxSharedBytes = 227 << 10;

}  // namespace tokamak
