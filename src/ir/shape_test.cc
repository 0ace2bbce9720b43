#include "ir/shape.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

const Shape kMatrix = Shape::Array(ElementType::kF32, {2, 3});

Layout ColumnMajor() {
  Layout layout;
  layout.minor_to_major = {0, 1};
  return layout;
}

TEST(Shape, Text) {
  EXPECT_EQ(ToString(kMatrix), "f32[2,3]");
  EXPECT_EQ(ToString(kMatrix.WithLayout(ColumnMajor())), "f32[2,3]{0,1}");
  EXPECT_EQ(ToString(Shape::Tuple({kMatrix, Shape::Token()})), "(f32[2,3], token[])");
  EXPECT_EQ(
      ToString(Shape::Array(ElementType::kBF16, {kDynamic, kDynamic}).WithBounds({4, kDynamic})),
      "bf16[<=4,?]");
  EXPECT_EQ(ToString(Shape()), "()");
  EXPECT_EQ(ToString(Shape::Unranked(ElementType::kPred)), "pred[*]");
}

TEST(Shape, EqualityWithAndWithoutLayouts) {
  Layout plain;
  plain.minor_to_major = {1, 0};
  EXPECT_EQ(kMatrix.WithLayout(plain), kMatrix);
  EXPECT_FALSE(kMatrix.WithLayout(ColumnMajor()) == kMatrix);
  EXPECT_TRUE(Compatible(kMatrix.WithLayout(ColumnMajor()), kMatrix));
  EXPECT_EQ(Shape::Tuple({kMatrix.WithLayout(ColumnMajor())}).WithoutLayout(),
            Shape::Tuple({kMatrix}));
  EXPECT_EQ(kMatrix.WithLayout(ColumnMajor()).Hash(), kMatrix.Hash());
}

TEST(Shape, DynamicDimensionsAgreeWithAny) {
  Shape open = Shape::Array(ElementType::kF32, {kDynamic, 3});
  EXPECT_FALSE(Compatible(open, kMatrix));
  EXPECT_TRUE(CompatibleWithDynamic(open, kMatrix));
  EXPECT_FALSE(CompatibleWithDynamic(Shape::Array(ElementType::kF32, {kDynamic, 4}), kMatrix));
  EXPECT_TRUE(Shape::Tuple({kMatrix, open}).HasDynamicDims());
}

TEST(Shape, StaticArraysHaveNoDynamicDimensions) {
  EXPECT_TRUE(kMatrix.IsStaticArray());
  EXPECT_FALSE(Shape::Array(ElementType::kF32, {kDynamic}).IsStaticArray());
  EXPECT_FALSE(Shape::Tuple({kMatrix}).IsStaticArray());
}

TEST(Shape, AdjacentDimensionsAreInOrder) {
  EXPECT_TRUE(AreAdjacent({}));
  EXPECT_TRUE(AreAdjacent({1, 2, 3}));
  EXPECT_FALSE(AreAdjacent({1, 3}));
  EXPECT_FALSE(AreAdjacent({2, 1}));
}

TEST(Shape, QuantizationIsPartOfIt) {
  QuantType quant;
  quant.scales = {0.5};
  quant.zero_points = {0};
  Shape bytes = Shape::Array(ElementType::kS8, {2});
  EXPECT_FALSE(Compatible(bytes.WithQuant(quant), bytes));
  EXPECT_EQ(bytes.WithQuant(quant).WithoutQuant(), bytes);
  EXPECT_EQ(bytes.WithQuant(quant).WithType(ElementType::kF32).quant(), nullptr);
}

TEST(Shape, CountsWithoutOverflow) {
  EXPECT_EQ(CheckedElementCount(Dims{2, 3}), 6);
  EXPECT_EQ(CheckedElementCount(Dims{}), 1);
  EXPECT_EQ(CheckedElementCount(Dims{kDynamic, 3}), 3);
  EXPECT_EQ(CheckedElementCount(Dims{0, 5}), 0);
  EXPECT_FALSE(CheckedElementCount(Dims{-1}).has_value());
  EXPECT_FALSE(CheckedElementCount(Dims{int64_t{1} << 40, int64_t{1} << 40}).has_value());
  EXPECT_FALSE(CheckedElementCount(Dims{0, int64_t{1} << 40, int64_t{1} << 40}).has_value());
  EXPECT_FALSE(CheckedElementCount(Dims{INT64_MAX}).has_value());
}

}  // namespace
}  // namespace tokamak
