#pragma once

#include <cstdint>

// Memory of a thread for team arrays that are too large for its stack. Generated code asks for it.

namespace tokamak::cpu {

inline constexpr int64_t kMaxScratchBytes = int64_t{8} << 20;
inline constexpr const char* kScratchSymbol = "tok_take_scratch";

// At least so many bytes, at most kMaxScratchBytes, aligned to 64. The thread's own until it asks
// again; freed with the thread.
void* TakeScratch(int64_t bytes);

}  // namespace tokamak::cpu
