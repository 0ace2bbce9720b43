#include "backend/cuda/pointer_sets.h"

#include <gtest/gtest.h>

namespace tokamak::cuda {
namespace {

using Kind = PointerSets::Kind;

std::vector<void*> SetOf(uintptr_t number) {
  std::vector<void*> pointers;
  for (uintptr_t i = 0; i < 3; ++i) pointers.push_back(reinterpret_cast<void*>(number * 4096 + i));
  return pointers;
}

TEST(PointerSets, KeepsASetThatIsMetTwice) {
  PointerSets sets;
  EXPECT_EQ(sets.Find(SetOf(1)), Kind::kOther);
  EXPECT_EQ(sets.Find(SetOf(1)), Kind::kAdded);
  EXPECT_EQ(sets.slot(), 0u);
  EXPECT_EQ(sets.Find(SetOf(1)), Kind::kKept);
  EXPECT_EQ(sets.Find(SetOf(2)), Kind::kOther);
}

TEST(PointerSets, KeepsAlternatingSetsApart) {
  PointerSets sets;
  for (uintptr_t i = 0; i < 2; ++i) EXPECT_EQ(sets.Find(SetOf(i)), Kind::kOther);
  for (uintptr_t i = 0; i < 2; ++i) EXPECT_EQ(sets.Find(SetOf(i)), Kind::kAdded);
  for (uintptr_t i = 0; i < 20; ++i) {
    EXPECT_EQ(sets.Find(SetOf(i % 2)), Kind::kKept);
    EXPECT_EQ(sets.slot(), i % 2);
  }
}

TEST(PointerSets, NeverKeepsSetsThatDoNotRecur) {
  PointerSets sets;
  for (uintptr_t i = 0; i < 1000; ++i) EXPECT_EQ(sets.Find(SetOf(i)), Kind::kOther);
}

// More sets than slots must not replace each other in every run: an instance is expensive.
TEST(PointerSets, DoesNotReplaceSetsInUse) {
  PointerSets sets;
  size_t added = 0;
  for (uintptr_t i = 0; i < 10 * PointerSets::kUnusedRuns; ++i)
    added += sets.Find(SetOf(i % 6)) == Kind::kAdded;
  EXPECT_EQ(added, PointerSets::kMaxSets);
}

TEST(PointerSets, ReplacesTheSetUnusedLongest) {
  PointerSets sets;
  for (uintptr_t i = 0; i < 4; ++i)
    for (int run = 0; run < 2; ++run) sets.Find(SetOf(i));
  for (size_t run = 0; run < PointerSets::kUnusedRuns; ++run)
    for (uintptr_t i = 1; i < 4; ++i) EXPECT_EQ(sets.Find(SetOf(i)), Kind::kKept);
  EXPECT_EQ(sets.Find(SetOf(9)), Kind::kOther);
  EXPECT_EQ(sets.Find(SetOf(9)), Kind::kAdded);
  EXPECT_EQ(sets.slot(), 0u);
  EXPECT_EQ(sets.Find(SetOf(0)), Kind::kOther);
}

TEST(PointerSets, ForgetsADroppedSet) {
  PointerSets sets;
  sets.Find(SetOf(1));
  EXPECT_EQ(sets.Find(SetOf(1)), Kind::kAdded);
  sets.Drop();
  EXPECT_NE(sets.Find(SetOf(1)), Kind::kKept);
}

}  // namespace
}  // namespace tokamak::cuda
