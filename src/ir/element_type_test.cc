#include "ir/element_type.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr ElementType kSmallFloats[] = {
    ElementType::kF4E2M1FN,   ElementType::kF6E2M3FN,      ElementType::kF6E3M2FN,
    ElementType::kF8E3M4,     ElementType::kF8E4M3,        ElementType::kF8E4M3FN,
    ElementType::kF8E4M3FNUZ, ElementType::kF8E4M3B11FNUZ, ElementType::kF8E5M2,
    ElementType::kF8E5M2FNUZ, ElementType::kF8E8M0FNU,     ElementType::kBF16,
    ElementType::kF16};

uint64_t PatternCount(ElementType type) {
  return uint64_t{1} << InfoOf(type).bits;
}

TEST(ElementType, NamesLeadBack) {
  for (int i = 0; i <= static_cast<int>(ElementType::kC128); ++i) {
    auto type = static_cast<ElementType>(i);
    EXPECT_EQ(ElementTypeFromHlo(InfoOf(type).hlo), type);
    EXPECT_EQ(ElementTypeFromMlir(InfoOf(type).mlir), type);
    EXPECT_EQ(InfoOf(type).type, type);
  }
  EXPECT_FALSE(ElementTypeFromHlo("f31").has_value());
}

TEST(ElementType, EveryPatternRoundTrips) {
  for (ElementType type : kSmallFloats) {
    for (uint64_t bits = 0; bits < PatternCount(type); ++bits) {
      double value = DecodeFloat(type, bits);
      uint64_t again = EncodeFloat(type, value);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(DecodeFloat(type, again))) << HloName(type) << " " << bits;
      } else {
        EXPECT_EQ(again, bits) << HloName(type) << " " << value;
      }
    }
  }
}

// A value halfway between two neighbours rounds to the even pattern; other values round to the
// nearest.
TEST(ElementType, RoundsToNearestTiesToEven) {
  for (ElementType type : kSmallFloats) {
    uint64_t half = PatternCount(type) / (FormatOf(type).has_sign ? 2 : 1);
    for (uint64_t bits = 0; bits + 1 < half; ++bits) {
      double a = DecodeFloat(type, bits), b = DecodeFloat(type, bits + 1);
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      double middle = a + (b - a) / 2;
      // A value that encodes to the pattern of -0 has no even neighbour below.
      uint64_t even = bits % 2 == 0 ? bits : bits + 1;
      EXPECT_EQ(EncodeFloat(type, middle), even) << HloName(type) << " " << middle;
      EXPECT_EQ(EncodeFloat(type, std::nextafter(middle, -kInf)), bits) << HloName(type);
      EXPECT_EQ(EncodeFloat(type, std::nextafter(middle, kInf)), bits + 1) << HloName(type);
    }
  }
}

TEST(ElementType, OverflowsAsItsFormatSays) {
  EXPECT_EQ(RoundToType(ElementType::kF16, 65519), 65504);
  EXPECT_EQ(RoundToType(ElementType::kF16, 65520), kInf);
  EXPECT_EQ(RoundToType(ElementType::kBF16, 1e39), kInf);
  EXPECT_EQ(RoundToType(ElementType::kF8E5M2, 61440), kInf);
  EXPECT_EQ(RoundToType(ElementType::kF8E5M2, -1e9), -kInf);
  EXPECT_EQ(RoundToType(ElementType::kF8E4M3FN, 448), 448);
  EXPECT_EQ(RoundToType(ElementType::kF8E4M3FN, 463), 448);
  EXPECT_TRUE(std::isnan(RoundToType(ElementType::kF8E4M3FN, 465)));
  EXPECT_TRUE(std::isnan(RoundToType(ElementType::kF8E4M3FN, kInf)));
  EXPECT_TRUE(std::isnan(RoundToType(ElementType::kF8E4M3FNUZ, 1000)));
  EXPECT_EQ(RoundToType(ElementType::kF8E4M3FNUZ, 240), 240);
  EXPECT_EQ(RoundToType(ElementType::kF8E5M2FNUZ, 57344), 57344);
  EXPECT_EQ(RoundToType(ElementType::kF8E4M3B11FNUZ, 30), 30);
  EXPECT_EQ(RoundToType(ElementType::kF4E2M1FN, 100), 6);
  EXPECT_EQ(RoundToType(ElementType::kF4E2M1FN, -kInf), -6);
  EXPECT_EQ(RoundToType(ElementType::kF6E2M3FN, 8), 7.5);
  EXPECT_EQ(RoundToType(ElementType::kF6E3M2FN, 1e9), 28);
}

TEST(ElementType, ZerosAndTheirSigns) {
  EXPECT_TRUE(std::signbit(RoundToType(ElementType::kF8E5M2, -0.0)));
  EXPECT_TRUE(std::signbit(RoundToType(ElementType::kF4E2M1FN, -0.1)));
  // fnuz has one zero; its -0 pattern is NaN.
  EXPECT_EQ(EncodeFloat(ElementType::kF8E4M3FNUZ, -0.0), 0u);
  EXPECT_EQ(EncodeFloat(ElementType::kF8E5M2FNUZ, -1e-30), 0u);
  EXPECT_TRUE(std::isnan(DecodeFloat(ElementType::kF8E5M2FNUZ, 0x80)));
}

TEST(ElementType, PowersOfTwo) {
  EXPECT_EQ(RoundToType(ElementType::kF8E8M0FNU, 1.0), 1.0);
  EXPECT_EQ(RoundToType(ElementType::kF8E8M0FNU, 1.4), 1.0);
  EXPECT_EQ(RoundToType(ElementType::kF8E8M0FNU, 1.6), 2.0);
  EXPECT_EQ(RoundToType(ElementType::kF8E8M0FNU, std::ldexp(1.0, -127)), std::ldexp(1.0, -127));
  EXPECT_TRUE(std::isnan(RoundToType(ElementType::kF8E8M0FNU, -1.0)));
  EXPECT_TRUE(std::isnan(DecodeFloat(ElementType::kF8E8M0FNU, 255)));
}

TEST(ElementType, SubnormalsOfF16AndBf16) {
  EXPECT_EQ(DecodeFloat(ElementType::kF16, 1), std::ldexp(1.0, -24));
  EXPECT_EQ(RoundToType(ElementType::kF16, std::ldexp(1.0, -25)), 0);
  EXPECT_EQ(RoundToType(ElementType::kF16, std::ldexp(1.5, -25)), std::ldexp(1.0, -24));
  EXPECT_EQ(DecodeFloat(ElementType::kBF16, 1), std::ldexp(1.0, -133));
}

}  // namespace
}  // namespace tokamak
