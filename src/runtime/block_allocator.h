#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/result.h"

// A best-fit suballocator for device memory.
namespace tokamak {

// The source of a BlockAllocator's memory, in large slabs. Called under the allocator's lock.
class SlabSource {
 public:
  virtual ~SlabSource() = default;
  // Null if there is no more memory.
  virtual void* AllocateSlab(size_t bytes) = 0;
  // No work of the device may still use the slab when this returns.
  virtual void FreeSlab(void* slab, size_t bytes) = 0;
};

struct BlockStats {
  int64_t in_use = 0, peak = 0;             // bytes of blocks
  int64_t reserved = 0, peak_reserved = 0;  // bytes of slabs
  int64_t allocations = 0, largest = 0;
  int64_t largest_free = 0;
  int64_t limit = 0;
};

// Divides slabs of memory into blocks without touching the memory. Allocation is best-fit; adjacent
// free blocks coalesce. A freed block may be reused at once, so all work on the memory must run in
// one order (one stream). Slabs are kept until memory is short. Thread-safe.
class BlockAllocator {
 public:
  // Bytes: alignment and smallest size of a block, as cuMemAlloc aligns (CUDA programming guide).
  static constexpr size_t kGranule = 256;

  // At most `limit` bytes in all.
  BlockAllocator(SlabSource& source, int64_t limit);
  BlockAllocator(const BlockAllocator&) = delete;
  BlockAllocator& operator=(const BlockAllocator&) = delete;
  ~BlockAllocator();

  // Aligned to kGranule. `user` describes the owner; TK4204 lists those that hold the most memory.
  Result<void*> Allocate(size_t bytes, std::string_view user);
  void Free(void* block);

  BlockStats Stats() const;
  // Restarts the peaks at the current values.
  void ClearPeaks();

 private:
  struct Block {
    size_t bytes = 0;
    size_t slab = 0;  // index into slabs_
    bool is_free = false;
    std::string user;
  };
  struct Slab {
    uintptr_t begin = 0;
    size_t bytes = 0;  // 0: released
  };
  using Blocks = std::map<uintptr_t, Block>;

  void* TakeLocked(size_t bytes, std::string_view user);
  bool GrowLocked(size_t bytes);
  bool AddSlabLocked(size_t bytes);
  // Releases empty slabs; returns whether there were any.
  bool ShrinkLocked();
  Error OutOfMemoryLocked(size_t bytes, std::string_view user) const;

  SlabSource& source_;
  mutable std::mutex mutex_;
  Blocks blocks_;
  std::set<std::pair<size_t, uintptr_t>> free_;
  std::vector<Slab> slabs_;
  BlockStats stats_;
};

}  // namespace tokamak
