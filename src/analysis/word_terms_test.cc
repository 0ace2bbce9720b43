#include "analysis/word_terms.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

class Terms : public testing::Test {
 protected:
  WordTerms t;
  WordTerm x = t.NewLeaf({4}), y = t.NewLeaf({4}), z = t.NewLeaf({4});
};

TEST_F(Terms, SumsAreEqualHoweverTheyAreWritten) {
  WordTerm one = t.Number(1), two = t.Number(2);
  EXPECT_EQ(t.Add(t.Add(x, y), t.Add(one, two)), t.Add(t.Number(3), t.Add(y, x)));
  EXPECT_EQ(t.Subtract(t.Add(x, y), y), x);
  EXPECT_EQ(t.Subtract(x, x), t.Number(0));
  EXPECT_EQ(t.Add(t.Number(0xffffffff), one), t.Number(0));
  EXPECT_NE(t.Add(x, x), x);
}

TEST_F(Terms, ExclusiveOrsCancel) {
  EXPECT_EQ(t.Xor(t.Xor(x, y), t.Xor(y, z)), t.Xor(z, x));
  EXPECT_EQ(t.Xor(x, x), t.Number(0));
  EXPECT_EQ(t.Without(t.Xor(x, y), x), y);
  EXPECT_NE(t.Xor(x, y), t.Add(x, y));
}

TEST_F(Terms, RotationsByOrXorAndSum) {
  WordTerm left = t.ShiftLeft(x, 13), right = t.ShiftRight(x, 19);
  WordTerm rotated = t.Or(left, right);
  EXPECT_EQ(t.node(rotated).kind, TermKind::kRotate);
  EXPECT_EQ(t.Or(right, left), rotated);
  EXPECT_EQ(t.Add(right, left), rotated);
  EXPECT_EQ(t.Xor(right, left), rotated);
  EXPECT_EQ(t.Xor(t.Xor(right, y), left), t.Xor(y, rotated));
  EXPECT_EQ(t.Or(left, t.ShiftRight(x, 18)), kNoTerm);  // a common bit
  EXPECT_EQ(t.Or(left, t.ShiftRight(y, 19)), kNoTerm);
  EXPECT_EQ(t.ShiftLeft(x, 32), t.Number(0));
}

TEST_F(Terms, BroadcastsMoveToTheLeaves) {
  WordTerm a = t.NewLeaf({}), b = t.NewLeaf({});
  BroadcastMap wide{{4}, {-1}};
  EXPECT_EQ(t.Broadcast(t.Xor(a, b), wide), t.Xor(t.Broadcast(a, wide), t.Broadcast(b, wide)));
  EXPECT_EQ(t.Broadcast(t.Number(7), wide), t.Number(7));
  // A column broadcast to a matrix, directly or via [4,1].
  BroadcastMap column{{4, 1}, {0, -1}}, table{{4, 3}, {0, -1}};
  EXPECT_EQ(t.Broadcast(t.Broadcast(x, column), BroadcastMap{{4, 3}, {0, -1}}),
            t.Broadcast(x, table));
}

TEST_F(Terms, TooLargeTermsAreRejected) {
  WordTerm sum = x;
  for (int i = 0; i < 100; ++i) sum = t.Add(sum, t.NewLeaf({4}));
  EXPECT_EQ(sum, kNoTerm);
}

}  // namespace
}  // namespace tokamak
