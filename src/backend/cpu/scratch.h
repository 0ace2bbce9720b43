#pragma once

#include <cstdint>

// Per-thread scratch memory for shared arrays that are too large for the stack. Generated code
// calls it.

namespace tokamak::cpu {

// Bytes per thread. Chosen; no measurement on record; kernels that need more are rejected.
inline constexpr int64_t kMaxScratchBytes = int64_t{8} << 20;
inline constexpr const char* kScratchSymbol = "tok_take_scratch";

// At least `bytes` (at most kMaxScratchBytes), aligned to 64. Valid until the thread's next call;
// freed with the thread.
void* TakeScratch(int64_t bytes);

}  // namespace tokamak::cpu
