#include "runtime/host_allocator.h"

#include <cstdint>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

TEST(HostAllocator, GivesAlignedMemoryOfAnySize) {
  HostAllocator allocator(64 * kMebibyte);
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{63}, kMebibyte - 1, kMebibyte,
                       3 * kMebibyte + 5, 40 * kMebibyte}) {
    void* data = allocator.Allocate(bytes);
    ASSERT_NE(data, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % HostAllocator::kAlignment, 0u);
    std::memset(data, 1, bytes);
    allocator.Free(data, bytes);
  }
}

TEST(HostAllocator, KeepsWhatIsLarge) {
  HostAllocator allocator(64 * kMebibyte);
  void* first = allocator.Allocate(10 * kMebibyte);
  allocator.Free(first, 10 * kMebibyte);
  EXPECT_GE(allocator.kept(), 10 * kMebibyte);
  // A buffer of almost the same size gets the same block.
  void* second = allocator.Allocate(10 * kMebibyte - 4096);
  EXPECT_EQ(first, second);
  EXPECT_EQ(allocator.reused(), 1);
  EXPECT_EQ(allocator.kept(), 0u);
  allocator.Free(second, 10 * kMebibyte - 4096);
  allocator.Trim();
  EXPECT_EQ(allocator.kept(), 0u);
}

// Medium blocks are cached, too: their pages are not repeatedly requested from the system.
TEST(HostAllocator, KeepsWhatIsOfMediumSize) {
  HostAllocator allocator(64 * kMebibyte);
  for (size_t bytes : {size_t{100} << 10, size_t{400000}, kMebibyte - 64}) {
    int64_t before = allocator.reused();
    void* first = allocator.Allocate(bytes);
    allocator.Free(first, bytes);
    EXPECT_EQ(allocator.Allocate(bytes), first);
    EXPECT_EQ(allocator.reused(), before + 1);
    allocator.Free(first, bytes);
  }
}

TEST(HostAllocator, KeepsFewBlocks) {
  HostAllocator allocator(size_t{1} << 40);
  std::vector<void*> all;
  size_t bytes = HostAllocator::kLarge;
  for (size_t i = 0; i < 2 * HostAllocator::kMostKept; ++i)
    all.push_back(allocator.Allocate(bytes));
  for (void* data : all) allocator.Free(data, bytes);
  EXPECT_LE(allocator.kept(), HostAllocator::kMostKept * bytes);
}

TEST(HostAllocator, KeepsNoMoreThanItMay) {
  HostAllocator allocator(20 * kMebibyte);
  std::vector<void*> all;
  for (int i = 0; i < 8; ++i) all.push_back(allocator.Allocate(4 * kMebibyte));
  for (void* data : all) allocator.Free(data, 4 * kMebibyte);
  EXPECT_LE(allocator.kept(), 20 * kMebibyte);
  void* large = allocator.Allocate(30 * kMebibyte);
  allocator.Free(large, 30 * kMebibyte);  // exceeds the cache: released
  EXPECT_LE(allocator.kept(), 20 * kMebibyte);
}

TEST(HostAllocator, SaysWhenThereIsNoMore) {
  HostAllocator allocator(kMebibyte);
  EXPECT_EQ(allocator.Allocate(SIZE_MAX / 2), nullptr);
  EXPECT_EQ(allocator.Allocate(size_t{1} << 60), nullptr);
}

TEST(HostAllocator, ServesThreads) {
  HostAllocator allocator(64 * kMebibyte);
  auto use = [&] {
    for (int i = 0; i < 50; ++i) {
      void* data = allocator.Allocate(2 * kMebibyte);
      std::memset(data, i, 64);
      allocator.Free(data, 2 * kMebibyte);
    }
  };
  std::thread other(use);
  use();
  other.join();
  EXPECT_LE(allocator.kept(), 64 * kMebibyte);
}

}  // namespace
}  // namespace tokamak
