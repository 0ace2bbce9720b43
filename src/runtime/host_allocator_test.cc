#include "runtime/host_allocator.h"

#include <cstdint>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(HostAllocator, GivesAlignedMemoryOfAnySize) {
  HostAllocator allocator(64 * kMiB);
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{63}, kMiB - 1, kMiB, 3 * kMiB + 5, 40 * kMiB}) {
    void* data = allocator.Allocate(bytes);
    ASSERT_NE(data, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % HostAllocator::kAlignment, 0u);
    std::memset(data, 1, bytes);
    allocator.Free(data, bytes);
  }
}

TEST(HostAllocator, KeepsWhatIsLarge) {
  HostAllocator allocator(64 * kMiB);
  void* first = allocator.Allocate(10 * kMiB);
  allocator.Free(first, 10 * kMiB);
  EXPECT_GE(allocator.kept(), 10 * kMiB);
  // A buffer of almost the size gets the same place.
  void* second = allocator.Allocate(10 * kMiB - 4096);
  EXPECT_EQ(first, second);
  EXPECT_EQ(allocator.reused(), 1);
  EXPECT_EQ(allocator.kept(), 0u);
  allocator.Free(second, 10 * kMiB - 4096);
  allocator.Trim();
  EXPECT_EQ(allocator.kept(), 0u);
}

// What is not so large is kept, too: no page of it is asked of the system again and again.
TEST(HostAllocator, KeepsWhatIsOfMediumSize) {
  HostAllocator allocator(64 * kMiB);
  for (size_t bytes : {size_t{100} << 10, size_t{400000}, kMiB - 64}) {
    int64_t before = allocator.reused();
    void* first = allocator.Allocate(bytes);
    allocator.Free(first, bytes);
    EXPECT_EQ(allocator.Allocate(bytes), first);
    EXPECT_EQ(allocator.reused(), before + 1);
    allocator.Free(first, bytes);
  }
}

TEST(HostAllocator, KeepsFewPlaces) {
  HostAllocator allocator(size_t{1} << 40);
  std::vector<void*> all;
  size_t bytes = HostAllocator::kLarge;
  for (size_t i = 0; i < 2 * HostAllocator::kMostKept; ++i)
    all.push_back(allocator.Allocate(bytes));
  for (void* data : all) allocator.Free(data, bytes);
  EXPECT_LE(allocator.kept(), HostAllocator::kMostKept * bytes);
}

TEST(HostAllocator, KeepsNoMoreThanItMay) {
  HostAllocator allocator(20 * kMiB);
  std::vector<void*> all;
  for (int i = 0; i < 8; ++i) all.push_back(allocator.Allocate(4 * kMiB));
  for (void* data : all) allocator.Free(data, 4 * kMiB);
  EXPECT_LE(allocator.kept(), 20 * kMiB);
  void* large = allocator.Allocate(30 * kMiB);
  allocator.Free(large, 30 * kMiB);  // more than may be kept: given back
  EXPECT_LE(allocator.kept(), 20 * kMiB);
}

TEST(HostAllocator, SaysWhenThereIsNoMore) {
  HostAllocator allocator(kMiB);
  EXPECT_EQ(allocator.Allocate(SIZE_MAX / 2), nullptr);
  EXPECT_EQ(allocator.Allocate(size_t{1} << 60), nullptr);
}

TEST(HostAllocator, ServesThreads) {
  HostAllocator allocator(64 * kMiB);
  auto use = [&] {
    for (int i = 0; i < 50; ++i) {
      void* data = allocator.Allocate(2 * kMiB);
      std::memset(data, i, 64);
      allocator.Free(data, 2 * kMiB);
    }
  };
  std::thread other(use);
  use();
  other.join();
  EXPECT_LE(allocator.kept(), 64 * kMiB);
}

}  // namespace
}  // namespace tokamak
