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

namespace tokamak {

// Where a BlockAllocator has its memory from, in large pieces. Called under its lock.
class RegionSource {
 public:
  virtual ~RegionSource() = default;
  // Null when there is no more.
  virtual void* TakeRegion(size_t bytes) = 0;
  // Nothing that was given to the device may still use it when this returns.
  virtual void GiveRegion(void* region, size_t bytes) = 0;
};

struct BlockStats {
  int64_t in_use = 0, peak = 0;             // bytes of blocks
  int64_t reserved = 0, peak_reserved = 0;  // bytes of regions
  int64_t allocations = 0, largest = 0;
  int64_t largest_free = 0;
  int64_t limit = 0;
};

// Cuts regions of memory into blocks, without ever touching it: the best fitting free block is
// taken, free neighbours become one. What is freed may be given out again at once, so whoever works
// in it does all work in one order. Regions stay until memory is short. Any thread may call it.
class BlockAllocator {
 public:
  static constexpr size_t kGranule = 256;

  // Not more than `limit` bytes in all.
  BlockAllocator(RegionSource& source, int64_t limit);
  BlockAllocator(const BlockAllocator&) = delete;
  BlockAllocator& operator=(const BlockAllocator&) = delete;
  ~BlockAllocator();

  // Aligned to kGranule. `user`: who it is for, in words, for the message of TK4204, which names
  // those that have the most.
  Result<void*> Allocate(size_t bytes, std::string_view user);
  void Free(void* block);

  BlockStats Stats() const;
  // Peaks begin anew.
  void ClearPeaks();

 private:
  struct Block {
    size_t bytes = 0;
    size_t region = 0;  // by number
    bool is_free = false;
    std::string user;
  };
  struct Region {
    uintptr_t begin = 0;
    size_t bytes = 0;  // 0: it was given back
  };
  using Blocks = std::map<uintptr_t, Block>;

  void* TakeLocked(size_t bytes, std::string_view user);
  bool GrowLocked(size_t bytes);
  bool AddRegionLocked(size_t bytes);
  // Gives regions back that hold nothing; whether there was any.
  bool ShrinkLocked();
  Error OutOfMemoryLocked(size_t bytes, std::string_view user) const;

  RegionSource& source_;
  mutable std::mutex mutex_;
  Blocks blocks_;
  std::set<std::pair<size_t, uintptr_t>> free_;
  std::vector<Region> regions_;
  BlockStats stats_;
};

}  // namespace tokamak
