#include "runtime/storage.h"

#include <cstdint>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Storage, IsAlignedAndCounted) {
  MemoryCounter counter;
  {
    Result<Ref<Storage>> storage = Storage::Allocate(100, &counter);
    ASSERT_TRUE(storage.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage.value()->data()) % kAlignment, 0u);
    EXPECT_EQ(storage.value()->size(), 100u);
    std::memset(storage.value()->data(), 1, 100);
    EXPECT_EQ(counter.in_use, 100);
  }
  EXPECT_EQ(counter.in_use, 0);
  EXPECT_EQ(counter.peak, 100);
  EXPECT_EQ(counter.allocations, 1);
}

TEST(Storage, OfNoBytesHasAnAddress) {
  Result<Ref<Storage>> storage = Storage::Allocate(0, nullptr);
  ASSERT_TRUE(storage.ok());
  EXPECT_NE(storage.value()->data(), nullptr);
}

TEST(Storage, TooLargeIsAnError) {
  Result<Ref<Storage>> storage = Storage::Allocate(SIZE_MAX - 10, nullptr);
  ASSERT_FALSE(storage.ok());
  EXPECT_EQ(storage.error().code, ErrorCode::kOutOfMemory);
}

TEST(Storage, BorrowedMemoryIsReleasedOnce) {
  char bytes[8] = {};
  int released = 0;
  {
    Ref<Storage> storage = Storage::Borrow(
        bytes, 8, false, [](void* user) { ++*static_cast<int*>(user); }, &released);
    Ref<Storage> other = storage;
    EXPECT_FALSE(storage->CanReuse());
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(Storage, ItsOnlyHolderReusesIt) {
  Result<Ref<Storage>> made = Storage::Allocate(8, nullptr);
  ASSERT_TRUE(made.ok());
  Ref<Storage> storage = std::move(made).value();
  EXPECT_TRUE(storage->CanReuse());
  storage->AddWriter();  // the program that fills it has not run yet
  EXPECT_TRUE(storage->CanReuse());
  Ref<Storage> reader = storage;
  EXPECT_FALSE(storage->CanReuse());
  reader = Ref<Storage>();
  storage->ReleaseWriter();
  EXPECT_TRUE(storage->CanReuse());
}

// A writer that leaves never makes a storage with another reader look reusable.
TEST(Storage, WritersLeaveWhileOthersAsk) {
  for (int repetition = 0; repetition < 500; ++repetition) {
    Ref<Storage> storage = std::move(Storage::Allocate(8, nullptr)).value();
    storage->AddWriter();
    Ref<Storage> reader = storage;
    std::thread writer([&] { storage->ReleaseWriter(); });
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(storage->CanReuse());
    writer.join();
  }
}

}  // namespace
}  // namespace tokamak
