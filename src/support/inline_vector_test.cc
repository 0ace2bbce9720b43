#include "support/inline_vector.h"

#include <span>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(InlineVector, KeepsItsElementsWhenItNoLongerFits) {
  InlineVector<int, 3> vector;
  for (int i = 0; i < 10; ++i) {
    vector.push_back(i);
    ASSERT_EQ(vector.size(), static_cast<size_t>(i) + 1);
    for (int k = 0; k <= i; ++k) EXPECT_EQ(vector[static_cast<size_t>(k)], k);
    EXPECT_EQ(vector.back(), i);
  }
}

TEST(InlineVector, CopiesAreIndependent) {
  for (int count : {2, 5}) {
    InlineVector<int, 3> vector;
    for (int i = 0; i < count; ++i) vector.push_back(i);
    InlineVector<int, 3> copy = vector;
    copy[0] = 7;
    EXPECT_EQ(vector[0], 0);
    EXPECT_EQ(std::span<const int>(copy).size(), static_cast<size_t>(count));
    EXPECT_EQ(copy[0], 7);
  }
}

TEST(InlineVector, IsReusedAfterClear) {
  InlineVector<int, 3> vector;
  for (int i = 0; i < 5; ++i) vector.push_back(i);
  vector.clear();
  EXPECT_TRUE(vector.empty());
  for (int i = 0; i < 5; ++i) vector.push_back(10 + i);
  EXPECT_EQ(vector[4], 14);
  EXPECT_EQ(vector.end() - vector.begin(), 5);
}

}  // namespace
}  // namespace tokamak
