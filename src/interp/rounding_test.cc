#include "interp/rounding.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr ElementType kReals[] = {
    ElementType::kF4E2M1FN,   ElementType::kF6E2M3FN,  ElementType::kF6E3M2FN,
    ElementType::kF8E3M4,     ElementType::kF8E4M3,    ElementType::kF8E4M3FN,
    ElementType::kF8E4M3FNUZ, ElementType::kF8E5M2,    ElementType::kF8E4M3B11FNUZ,
    ElementType::kF8E5M2FNUZ, ElementType::kF8E8M0FNU, ElementType::kBF16,
    ElementType::kF16,        ElementType::kF32,       ElementType::kF64};

// The fast path gives the bits of the slow one, including ties and range limits.
TEST(Rounder, IsRoundToType) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponents(-160, 160), mantissas(1, 2);
  for (ElementType type : kReals) {
    Rounder repetition(type, NumericMode::kReference);
    for (int i = 0; i < 20000; ++i) {
      double x = std::ldexp(mantissas(random), static_cast<int>(exponents(random)) % 20);
      if (i % 3 == 0) x = std::ldexp(std::nearbyint(x * 64), -5);  // often a tie
      if (i % 5 == 0) x = -x;
      double fast = repetition(x), slow = RoundToType(type, x);
      ASSERT_TRUE(fast == slow || (std::isnan(fast) && std::isnan(slow)))
          << HloName(type) << " of " << x << ": " << fast << ", not " << slow;
    }
  }
}

TEST(Rounder, OracleKeepsReals) {
  EXPECT_EQ(Rounder(ElementType::kBF16, NumericMode::kOracle)(1.0000001), 1.0000001);
}

TEST(Rounder, WrapsIntegers) {
  EXPECT_EQ(Rounder(ElementType::kS8, NumericMode::kReference)(int64_t{200}), -56);
  EXPECT_EQ(Rounder(ElementType::kU4, NumericMode::kReference)(uint64_t{17}), 1u);
}

}  // namespace
}  // namespace tokamak
