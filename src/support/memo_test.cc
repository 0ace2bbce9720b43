#include "support/memo.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// All hashes are equal.
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
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 10; ++i) EXPECT_EQ(square(i), i * i);
  EXPECT_EQ(made, 10);
}

TEST(Memo, WhatIsTooMuchIsMadeAgain) {
  Memo<Number, int> few(3);
  int made = 0;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 5; ++i) EXPECT_EQ(few.Get({i}, [&] { return ++made, i; }), i);
  EXPECT_EQ(made, 7);
}

}  // namespace
}  // namespace tokamak
