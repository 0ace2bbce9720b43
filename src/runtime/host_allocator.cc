#include "runtime/host_allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <sys/mman.h>

#include "runtime/host_memory.h"

namespace tokamak {
namespace {

// Bytes (x86-64, and aarch64 with 4 KiB pages).
constexpr size_t kHugePage = size_t{2} << 20;
// Bytes: blocks of kHuge and more may have huge pages; smaller ones grow in steps of kSmallStep, a
// multiple of every page size. Chosen.
constexpr size_t kHuge = size_t{1} << 20, kSmallStep = size_t{1} << 16;

// The size to map for `bytes`: few distinct sizes, so that blocks can be reused; at most a quarter
// more. Untouched pages take no memory. 0 if too large.
size_t MappedSize(size_t bytes) {
  if (bytes > SIZE_MAX / 4) return 0;
  size_t least = bytes < kHuge ? kSmallStep : kHugePage;
  size_t step = std::max(std::bit_floor(bytes) / 4, least);
  return (bytes + step - 1) / step * step;
}

// `used`: the requested bytes.
void* Map(size_t size, size_t used) {
  if (used < kHuge) {
    void* got = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return got == MAP_FAILED ? nullptr : got;
  }
  // Aligned to huge pages manually: mmap aligns to small pages.
  void* got =
      mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  auto begin = reinterpret_cast<uintptr_t>(got);
  uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  size_t before = aligned - begin, after = kHugePage - before;
  if (before > 0) munmap(got, before);
  if (after > 0) munmap(reinterpret_cast<void*>(aligned + size), after);
  auto* data = reinterpret_cast<void*>(aligned);
  // Only a hint; without it pages are small. The last page is small unless most of it is used,
  // because a touched huge page is allocated as a whole.
  size_t whole = (used + kHugePage / 4) / kHugePage * kHugePage;
  if (whole > 0) madvise(data, whole, MADV_HUGEPAGE);
  if (whole < size) madvise(static_cast<char*>(data) + whole, size - whole, MADV_NOHUGEPAGE);
  return data;
}

}  // namespace

HostAllocator::HostAllocator(size_t max_kept) : max_kept_(max_kept) {}

HostAllocator::~HostAllocator() {
  Trim();
}

HostAllocator& HostAllocator::OfProcess() {
  static auto* allocator = new HostAllocator(HostMemory() / 8);
  return *allocator;
}

void* HostAllocator::Allocate(size_t bytes) {
  if (bytes < kLarge) {
    size_t rounded = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    return std::aligned_alloc(kAlignment, rounded);
  }
  size_t size = MappedSize(bytes);
  // With overcommit, the system would grant more than it has and kill the process that fills it.
  if (size == 0 || bytes > HostMemory()) return nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // The most recently freed block of this size: it is the most likely to be in the cache.
    auto found = std::find_if(free_.rbegin(), free_.rend(),
                              [&](const Kept& kept) { return kept.size == size; });
    if (found != free_.rend()) {
      void* data = found->data;
      free_.erase(std::next(found).base());
      kept_ -= size;
      ++reused_;
      return data;
    }
  }
  void* data = Map(size, bytes);
  if (data != nullptr) return data;
  Trim();
  return Map(size, bytes);
}

void HostAllocator::Free(void* data, size_t bytes) {
  if (data == nullptr) return;
  if (bytes < kLarge) return std::free(data);
  size_t size = MappedSize(bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  if (size > max_kept_) {
    munmap(data, size);
    return;
  }
  ShrinkLocked(max_kept_ - size, kMostKept - 1);
  free_.push_back({data, size});
  kept_ += size;
}

void HostAllocator::ShrinkLocked(size_t to, size_t blocks) {
  size_t gone = 0;
  for (; kept_ > to || free_.size() - gone > blocks; ++gone) {
    munmap(free_[gone].data, free_[gone].size);
    kept_ -= free_[gone].size;
  }
  free_.erase(free_.begin(), free_.begin() + static_cast<int64_t>(gone));
}

void HostAllocator::Trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  ShrinkLocked(0, 0);
}

size_t HostAllocator::kept() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return kept_;
}

int64_t HostAllocator::reused() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return reused_;
}

}  // namespace tokamak
