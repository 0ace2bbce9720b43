#include "support/memo.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// All keys have the same hash.
struct Number {
  int value;
  static uint64_t Hash() { return 7; }
  bool operator==(const Number&) const = default;
};

TEST(Memo, KeysOfOneHashHaveValuesOfTheirOwn) {
  Memo<Number, int> squares(100);
  int made = 0;
  auto square = [&](int i) {
    return squares.Get({i}, [&] {
      ++made;
      return i * i;
    });
  };
  for (int repetition = 0; repetition < 2; ++repetition)
    for (int i = 0; i < 10; ++i) EXPECT_EQ(square(i), i * i);
  EXPECT_EQ(made, 10);
}

TEST(Memo, EvictedEntriesAreRebuilt) {
  Memo<Number, int> few(3);
  int made = 0;
  for (int repetition = 0; repetition < 2; ++repetition)
    for (int i = 0; i < 5; ++i) EXPECT_EQ(few.Get({i}, [&] { return ++made, i; }), i);
  EXPECT_EQ(made, 7);
}

}  // namespace
}  // namespace tokamak
