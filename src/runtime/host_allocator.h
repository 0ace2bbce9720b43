#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tokamak {

// Memory for buffers. What is large comes from the system, from 1 MiB on in huge pages where it has
// them, and is kept when it is freed: fresh pages cost more than most programs do with them (here
// 0.25 ms a MiB), and the C library gives back to the system what it has at its end. Not
// initialised. Any thread may use it.
class HostAllocator {
 public:
  static constexpr size_t kAlignment = 64;
  // Below this the C library keeps memory itself.
  static constexpr size_t kLarge = size_t{1} << 16;

  static constexpr size_t kMostKept = 512;

  // Keeps at most `max_kept` freed bytes, in at most kMostKept places.
  explicit HostAllocator(size_t max_kept);
  HostAllocator(const HostAllocator&) = delete;
  HostAllocator& operator=(const HostAllocator&) = delete;
  ~HostAllocator();

  // The allocator of the process: it keeps up to an eighth of the machine's memory. Never
  // destroyed.
  static HostAllocator& OfProcess();

  // Aligned to kAlignment, at least; null when the machine has no more. 0 bytes are a place, too.
  void* Allocate(size_t bytes);
  // With the bytes that it was allocated with.
  void Free(void* data, size_t bytes);
  // Gives back to the system what is kept.
  void Trim();

  size_t kept() const;
  int64_t reused() const;  // allocations that were served from what was kept

 private:
  struct Kept {
    void* data;
    size_t size;
  };
  void ShrinkLocked(size_t to, size_t places);

  size_t max_kept_;
  mutable std::mutex mutex_;
  std::vector<Kept> free_;  // the oldest first
  size_t kept_ = 0;
  int64_t reused_ = 0;
};

}  // namespace tokamak
