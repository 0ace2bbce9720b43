#include "kernel/narrow_arithmetic.h"

#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "kernel/builder.h"
#include "support/splitmix.h"

namespace tokamak {
namespace {

using enum ScalarType;

double Value(ScalarType type, uint64_t bits) {
  return DoubleOfBits(type, bits & 0xffff);
}

// The exact result, rounded to f64 such that rounding it again to 16 bits is one rounding: its last
// bit is odd unless it is exact.
double RoundedToOdd(Prim prim, double x, double y) {
  if (prim == Prim::kMul) return x * y;  // exact: 22 bits
  if (prim == Prim::kSub) y = -y;
  double sum = x + y, back = sum - x, lost = (x - (sum - back)) + (y - back);
  if (!std::isfinite(sum) || lost == 0) return sum;
  auto bits = std::bit_cast<int64_t>(sum);
  if ((bits & 1) == 0) bits += (lost > 0) == (sum > 0) ? 1 : -1;
  return std::bit_cast<double>(bits);
}

float InF32(Prim prim, double x, double y) {
  auto a = static_cast<float>(x), b = static_cast<float>(y);
  return prim == Prim::kAdd ? a + b : prim == Prim::kSub ? a - b : a * b;
}

// EvaluatePrim rounds an f64 once. A number of 16 bits has a special value, or is near another one
// in size, or anything.
TEST(NarrowArithmetic, RoundingTwiceIsInnocuous) {
  constexpr uint64_t kSpecial[] = {0x0000, 0x0001, 0x007f, 0x0080, 0x03ff, 0x0400, 0x3c00,
                                   0x3f80, 0x7bff, 0x7c00, 0x7c01, 0x7f7f, 0x7f80, 0x7fc0};
  constexpr int kPairs = 1'000'000;  // of each type: a sample of the 2^32
  SplitMix64 random(7);
  for (ScalarType type : {kBF16, kF16}) {
    for (int i = 0; i < kPairs; ++i) {
      uint64_t r = random.Next(), a = r, b = r >> 16;
      if (r >> 60 == 0) a = kSpecial[(r >> 32) % std::size(kSpecial)] | (a & 0x8000);
      if ((r >> 56 & 15) == 0) b = kSpecial[(r >> 40) % std::size(kSpecial)] | (b & 0x8000);
      if ((r >> 52 & 1) == 0) b = a + (b & 0xfff) - 0x800;
      double x = Value(type, a), y = Value(type, b);
      for (Prim prim : {Prim::kAdd, Prim::kSub, Prim::kMul}) {
        Bits once = BitsOfDouble(type, RoundedToOdd(prim, x, y));
        Bits twice = BitsOfDouble(type, static_cast<double>(InF32(prim, x, y)));
        if (std::isnan(Value(type, once)) && std::isnan(Value(type, twice))) continue;
        ASSERT_EQ(once, twice) << InfoOf(prim).text << " of " << x << " and " << y;
      }
    }
  }
}

struct Narrow : testing::Test {
  Scalar Loaded(ScalarType type) {
    ArrayId array = b.Argument({.name = "x", .type = type, .access = Access::kRead, .size = 8});
    return b.Load(array, b.Index(static_cast<int64_t>(array)));
  }
  bool Is(Scalar rounded) { return NarrowOperation(b.kernel(), rounded.id()).has_value(); }

  KernelBuilder b{"k", Dialect::kGpu};
};

TEST_F(Narrow, OperandsFromMemoryFromArithmeticAndConstants) {
  for (ScalarType type : {kBF16, kF16}) {
    Scalar x = Loaded(type).As(kF32), y = (x * x).As(type).As(kF32);
    EXPECT_TRUE(Is((x * x).As(type)));
    EXPECT_TRUE(Is((x - y).As(type)));
    EXPECT_TRUE(Is((x + 0.5).As(type)));
    EXPECT_TRUE(Is((x * AbsOf(-y)).As(type)));
    EXPECT_TRUE(Is((x * Choose(x < y, y, x.Like(0))).As(type)));
    EXPECT_FALSE(Is((x + 0.1).As(type)));
    EXPECT_FALSE(Is((x * (y * y)).As(type)));
    EXPECT_FALSE(Is(Fma(x, x, y).As(type)));
    EXPECT_FALSE(Is((x / y).As(type)));
    EXPECT_FALSE(Is(x * x));
    EXPECT_FALSE(Is((x * Loaded(kF32)).As(type)));
    EXPECT_FALSE(Is((x * x).As(type == kBF16 ? kF16 : kBF16)));
  }
  Scalar bits = Loaded(kU16).As(kU32);
  Scalar x = (bits << bits.Like(16)).BitsAs(kF32);
  EXPECT_TRUE(Is((x * x).As(kBF16)));
  EXPECT_FALSE(Is((x * x).As(kF16)));
  Scalar y = (bits << bits.Like(15)).BitsAs(kF32);
  EXPECT_FALSE(Is((y * y).As(kBF16)));
}

// A quotient that is off by 2 ulp of f32 rounds to the same normal bf16.
TEST(NarrowArithmetic, QuotientsAreFarFromTies) {
  for (uint64_t a = 0x80; a < 0x100; ++a)
    for (uint64_t b = 0x80; b < 0x100; ++b) {
      auto quotient = static_cast<float>(a) / static_cast<float>(b);
      Bits rounded = BitsOfDouble(kBF16, quotient);
      for (int ulps : {-2, 2}) {
        auto near = std::bit_cast<float>(std::bit_cast<int32_t>(quotient) + ulps);
        EXPECT_EQ(BitsOfDouble(kBF16, near), rounded) << a << " / " << b;
      }
    }
}

TEST_F(Narrow, Quotients) {
  Scalar x = Loaded(kBF16).As(kF32), y = Loaded(kBF16).As(kF32), z = Loaded(kF16).As(kF32);
  EXPECT_TRUE(NarrowQuotient(b.kernel(), (x / y).As(kBF16).id()).has_value());
  EXPECT_TRUE(NarrowQuotient(b.kernel(), (1 / y).As(kBF16).id()).has_value());
  EXPECT_FALSE(NarrowQuotient(b.kernel(), (x / (x + y)).As(kBF16).id()).has_value());
  EXPECT_FALSE(NarrowQuotient(b.kernel(), (z / z).As(kF16).id()).has_value());
}

// An array that keeps elements and their maxima, and one that also keeps a sum.
TEST_F(Narrow, ArraysThatKeepElements) {
  Scalar x = Loaded(kBF16).As(kF32);
  ArrayId kept = b.Local("kept", kF32, Space::kRegisters, 2);
  ArrayId mixed = b.Local("mixed", kF32, Space::kRegisters, 2);
  b.For("t", LoopRole::kThread, b.Index(32), [&](Scalar) {
    Scalar one = b.Index(1);
    b.Store(kept, b.Index(0), x);
    b.Store(kept, one, b.Make(Prim::kMaximum, {b.Read(kept, b.Index(0)), x}));
    b.Store(mixed, b.Index(0), x);
    b.Store(mixed, one, b.Read(mixed, b.Index(0)) + x);
  });
  NarrowArrays arrays(b.kernel());
  EXPECT_TRUE(arrays.Has(kept, kBF16));
  EXPECT_FALSE(arrays.Has(kept, kF16));
  EXPECT_FALSE(arrays.Has(mixed, kBF16));
}

}  // namespace
}  // namespace tokamak
