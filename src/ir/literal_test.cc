#include "ir/literal.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

Bytes Floats(std::vector<float> values) {
  return Bytes::Copy(values.data(), values.size() * sizeof(float));
}

const Shape kF32x3 = Shape::Array(ElementType::kF32, {3});

TEST(Literal, EqualElementsBecomeASplat) {
  Literal spelled = Literal::Array(kF32x3, Floats({2, 2, 2}));
  Literal splat = Literal::Splat(kF32x3, Floats({2}));
  EXPECT_TRUE(spelled.is_splat());
  EXPECT_EQ(spelled, splat);
  EXPECT_EQ(spelled.Hash(), splat.Hash());
  EXPECT_EQ(spelled.DoubleAt(2), 2);
  EXPECT_FALSE(Literal::Array(kF32x3, Floats({2, 2, 1})).is_splat());
}

TEST(Literal, SplatsOfOneAndOfNone) {
  Literal one = Literal::Splat(Shape::Array(ElementType::kF32, {1}), Floats({4}));
  EXPECT_EQ(one, Literal::Array(Shape::Array(ElementType::kF32, {1}), Floats({4})));
  Literal none = Literal::Splat(Shape::Array(ElementType::kF32, {0, 7}), Floats({4}));
  EXPECT_EQ(none, Literal::Array(Shape::Array(ElementType::kF32, {0, 7}), {}));
}

TEST(Literal, AHugeSplatCostsNothing) {
  Literal huge =
      Literal::Splat(Shape::Array(ElementType::kS8, {1 << 20, 1 << 30}), Bytes::Copy("\x7f", 1));
  EXPECT_EQ(huge.IntAt(int64_t{1} << 49), 127);
  EXPECT_EQ(huge.data().size(), 1u);
}

TEST(Literal, ZerosOfBothSignsAreNoSplat) {
  EXPECT_FALSE(
      Literal::Array(Shape::Array(ElementType::kF32, {2}), Floats({0.0f, -0.0f})).is_splat());
}

TEST(Literal, Scalars) {
  EXPECT_EQ(Literal::ScalarInt(ElementType::kS4, -1).BitsAt(0), 15u);
  EXPECT_EQ(Literal::ScalarInt(ElementType::kS4, -1).IntAt(0), -1);
  EXPECT_EQ(Literal::ScalarInt(ElementType::kU4, -1).IntAt(0), 15);
  EXPECT_EQ(Literal::ScalarInt(ElementType::kPred, 7).BitsAt(0), 1u);
  EXPECT_EQ(Literal::Scalar(ElementType::kC128, 1.5).ComplexAt(0), std::complex<double>(1.5, 0));
  EXPECT_EQ(Literal::Scalar(ElementType::kC64, 1.5).data().size(), 8u);
  EXPECT_EQ(Literal::Scalar(ElementType::kBF16, 1.0).BitsAt(0), 0x3f80u);
  EXPECT_EQ(Literal::ScalarInt(ElementType::kU64, -1).DoubleAt(0), 18446744073709551616.0);
}

TEST(Literal, Tuples) {
  Literal tuple = Literal::Tuple({Literal::Scalar(ElementType::kF32, 1), Literal::Tuple({})});
  EXPECT_EQ(ToString(tuple.shape()), "(f32[], ())");
  EXPECT_EQ(tuple, Literal::Tuple({Literal::Scalar(ElementType::kF32, 1), Literal::Tuple({})}));
  EXPECT_FALSE(tuple == Literal::Tuple({}));
}

}  // namespace
}  // namespace tokamak
