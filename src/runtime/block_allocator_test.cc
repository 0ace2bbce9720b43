#include "runtime/block_allocator.h"

#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A source of addresses without memory.
class Numbers final : public SlabSource {
 public:
  void* AllocateSlab(size_t bytes) override {
    if (left < bytes) return nullptr;
    left -= bytes;
    next_ += kMiB << 12;
    ++allocated;
    return reinterpret_cast<void*>(next_);
  }
  void FreeSlab(void*, size_t bytes) override {
    left += bytes;
    --allocated;
  }
  size_t left = size_t{1} << 40;
  int allocated = 0;

 private:
  uintptr_t next_ = kMiB << 12;
};

TEST(BlockAllocator, FreeBlocksAreReused) {
  Numbers source;
  BlockAllocator blocks(source, int64_t{1} << 40);
  void* x = blocks.Allocate(1000, "x").value();
  void* y = blocks.Allocate(1000, "y").value();
  EXPECT_NE(x, y);
  EXPECT_EQ(blocks.Stats().in_use, 2048);
  blocks.Free(x);
  EXPECT_EQ(blocks.Allocate(900, "z").value(), x);
  EXPECT_EQ(source.allocated, 1);
  EXPECT_EQ(blocks.Stats().peak, 2048);
  EXPECT_EQ(blocks.Stats().allocations, 3);
}

TEST(BlockAllocator, NeighboursBecomeOne) {
  Numbers source;
  BlockAllocator blocks(source, 32 * kMiB);
  std::vector<void*> all;
  for (int i = 0; i < 32; ++i) all.push_back(blocks.Allocate(kMiB, "part").value());
  for (size_t i : {1, 3, 2, 0}) blocks.Free(all[i]);
  EXPECT_EQ(blocks.Allocate(4 * kMiB, "all of them").value(), all[0]);
}

TEST(BlockAllocator, NamesTheLargestUsers) {
  Numbers source;
  BlockAllocator blocks(source, 64 * kMiB);
  void* large = blocks.Allocate(40 * kMiB, "results of 'big'").value();
  ASSERT_TRUE(blocks.Allocate(kMiB, "results of 'small'").ok());
  Result<void*> more = blocks.Allocate(50 * kMiB, "results of 'more'");
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::kDeviceMemory);
  EXPECT_NE(more.error().message.find("results of 'more'"), std::string::npos);
  EXPECT_NE(more.error().notes.at(0).find("results of 'big'"), std::string::npos);
  blocks.Free(large);
  EXPECT_TRUE(blocks.Allocate(40 * kMiB, "repeat").ok());
}

// Empty slabs are released if a larger one is needed.
TEST(BlockAllocator, ReturnsEmptySlabs) {
  Numbers source;
  source.left = 100 * kMiB;
  BlockAllocator blocks(source, int64_t{1} << 40);
  blocks.Free(blocks.Allocate(60 * kMiB, "before").value());
  EXPECT_TRUE(blocks.Allocate(90 * kMiB, "after").ok());
  EXPECT_EQ(blocks.Stats().reserved, static_cast<int64_t>(90 * kMiB));
}

TEST(BlockAllocator, BlocksNeverOverlap) {
  Numbers source;
  BlockAllocator blocks(source, int64_t{1} << 40);
  std::mt19937 random(1);
  std::map<uintptr_t, size_t> held;
  for (int i = 0; i < 20000; ++i) {
    if (!held.empty() && random() % 2 == 0) {
      auto at = std::next(held.begin(), random() % held.size());
      blocks.Free(reinterpret_cast<void*>(at->first));
      held.erase(at);
      continue;
    }
    size_t bytes = random() % (4 * kMiB);
    auto begin = reinterpret_cast<uintptr_t>(blocks.Allocate(bytes, "any").value());
    EXPECT_EQ(begin % BlockAllocator::kGranule, 0u);
    auto after = held.lower_bound(begin);
    if (after != held.end()) {
      ASSERT_LE(begin + bytes, after->first);
    }
    if (after != held.begin()) {
      auto before = std::prev(after);
      ASSERT_LE(before->first + before->second, begin);
    }
    held[begin] = bytes;
  }
}

}  // namespace
}  // namespace tokamak
