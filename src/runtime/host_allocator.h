#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

// The host allocator for buffers.
namespace tokamak {

// Memory for buffers. Large blocks are mapped from the system, from 1 MiB on in huge pages where
// available, and are cached when they are freed: page faults on fresh pages cost more than most
// programs' work on them (measured: 0.25 ms per MiB), and malloc returns memory at the end of its
// heap to the system. Not initialised. Thread-safe.
class HostAllocator {
 public:
  // Bytes: a cache line, and the width of the widest vectors.
  static constexpr size_t kAlignment = 64;
  // Bytes. Smaller blocks are left to malloc, which caches them itself.
  static constexpr size_t kLarge = size_t{1} << 16;

  // Maximum number of cached blocks. Bounds the linear search; chosen, no measurement on record.
  static constexpr size_t kMostKept = 512;

  // Caches at most `max_kept` freed bytes, in at most kMostKept blocks.
  explicit HostAllocator(size_t max_kept);
  HostAllocator(const HostAllocator&) = delete;
  HostAllocator& operator=(const HostAllocator&) = delete;
  ~HostAllocator();

  // The allocator of the process: it caches up to an eighth of the machine's memory. Never
  // destroyed.
  static HostAllocator& OfProcess();

  // Aligned to at least kAlignment; null if the machine has no more. 0 bytes yield a valid pointer,
  // too.
  void* Allocate(size_t bytes);
  // `bytes`: as passed to Allocate.
  void Free(void* data, size_t bytes);
  // Returns the cached blocks to the system.
  void Trim();

  size_t kept() const;
  int64_t reused() const;  // allocations served from the cache

 private:
  struct Kept {
    void* data;
    size_t size;
  };
  void ShrinkLocked(size_t to, size_t blocks);

  size_t max_kept_;
  mutable std::mutex mutex_;
  std::vector<Kept> free_;  // oldest first
  size_t kept_ = 0;
  int64_t reused_ = 0;
};

}  // namespace tokamak
