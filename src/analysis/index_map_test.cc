#include "analysis/index_map.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

// What users derive from maps. The maps themselves are compared with the interpreter, on random
// instructions (tests/index_maps).

namespace tokamak {
namespace {

class IndexMapOfOps : public testing::Test {
 protected:
  Instr* Array(Dims dims) { return b_.Parameter(Shape::Array(ElementType::kF32, std::move(dims))); }
  Instr* Index() { return b_.Parameter(Shape::Scalar(ElementType::kS32)); }

  Module module_{"m"};
  Builder b_{module_, "main"};
};

// Per dimension of the operand: the dimension of the result that it is, or -1.
Dims SameDims(const Instr& instr, size_t operand) {
  IndexMap map = *IndexMapOf(instr, operand);
  const Dims& dims = instr.operand(operand)->shape().dims();
  Dims same;
  for (size_t d = 0; d < dims.size(); ++d) {
    std::optional<size_t> dim = map.SameDim(d, dims[d]);
    same.push_back(dim ? static_cast<int64_t>(*dim) : -1);
  }
  return same;
}

TEST_F(IndexMapOfOps, PreservesDimensionsThatAreReadAtTheirOwnIndex) {
  Instr* x = Array({2, 3, 4});
  EXPECT_EQ(SameDims(*b_.Transpose(x, {2, 0, 1}), 0), (Dims{1, 2, 0}));
  EXPECT_EQ(SameDims(*b_.Reverse(x, {1}), 0), (Dims{0, -1, 2}));
  EXPECT_EQ(SameDims(*b_.Slice(x, {0, 0, 1}, {2, 3, 4}), 0), (Dims{0, 1, -1}));
  EXPECT_EQ(SameDims(*b_.Slice(x, {0, 0, 0}, {2, 2, 4}), 0), (Dims{0, -1, 2}));
  EXPECT_EQ(SameDims(*b_.Reshape(x, {2, 1, 12}), 0), (Dims{0, -1, -1}));
  EXPECT_EQ(SameDims(*b_.Reshape(x, {2, 3, 2, 2}), 0), (Dims{0, 1, -1}));
  EXPECT_EQ(SameDims(*b_.Concatenate({x, x}, 1), 1), (Dims{0, -1, 2}));
  EXPECT_EQ(SameDims(*b_.DynamicSlice(x, {Index(), Index(), Index()}, {1, 3, 4}), 0),
            (Dims{-1, 1, 2}));
}

TEST_F(IndexMapOfOps, ContractedDimensionsAreIterated) {
  DotAttrs attrs;
  attrs.lhs_batch = attrs.rhs_batch = {0};
  attrs.lhs_contracting = {2};
  attrs.rhs_contracting = {1};
  Instr* lhs = Array({5, 2, 7});
  Instr* dot = b_.Dot(lhs, Array({5, 7, 3}), attrs);
  EXPECT_EQ(SameDims(*dot, 0), (Dims{0, 1, -1}));
  EXPECT_EQ(SameDims(*dot, 1), (Dims{0, -1, 2}));
  IndexMap map = *IndexMapOf(*dot, 1);
  EXPECT_EQ(map.ReadsPerElement(), 7);
  // Both operands name the contracted extent after the left one.
  EXPECT_EQ(map.variables.back().array, lhs);
  EXPECT_EQ(map.variables.back().dim, 2u);
}

TEST_F(IndexMapOfOps, AnUpdateReadsTheArrayOutsideOfItsBlock) {
  Instr* x = Array({4, 6});
  Instr* update = b_.DynamicUpdateSlice(x, Array({1, 6}), {Index(), Index()});
  EXPECT_EQ(SameDims(*update, 0), (Dims{0, 1}));
  IndexMap map = *IndexMapOf(*update, 0);
  ASSERT_EQ(map.guards.size(), 2u);
  EXPECT_TRUE(map.outside);
  EXPECT_FALSE(map.AlwaysHolds(map.guards[0]));
  EXPECT_TRUE(map.AlwaysHolds(map.guards[1]));
}

bool ReadsOneFixedElement(const Instr& instr) {
  return IndexMapOf(instr, 0)->ReadsOneFixedElement();
}

TEST_F(IndexMapOfOps, SaysWhetherEveryElementReadsOneFixedElement) {
  Instr *x = Array({2, 3}), *zero = Array({});
  EXPECT_TRUE(ReadsOneFixedElement(*b_.Transpose(x, {1, 0})));
  EXPECT_TRUE(ReadsOneFixedElement(*b_.Reverse(x, {0})));
  EXPECT_TRUE(ReadsOneFixedElement(*b_.Reshape(x, {6})));
  EXPECT_TRUE(ReadsOneFixedElement(*b_.Slice(x, {0, 1}, {2, 3})));
  EXPECT_TRUE(ReadsOneFixedElement(*b_.Pad(x, zero, PadAttrs{{0, 0}, {0, 0}, {0, 0}})));
  EXPECT_FALSE(ReadsOneFixedElement(*b_.Pad(x, zero, PadAttrs{{0, 1}, {0, 0}, {0, 0}})));
  EXPECT_FALSE(ReadsOneFixedElement(*b_.Concatenate({x, x}, 0)));
  // The first dimension is read at a start index, the second one as a whole.
  EXPECT_FALSE(ReadsOneFixedElement(*b_.DynamicSlice(x, {Index(), Index()}, {1, 3})));
  EXPECT_TRUE(ReadsOneFixedElement(*b_.DynamicSlice(x, {Index(), Index()}, {2, 3})));
}

// More dimensions than a map stores inline.
TEST_F(IndexMapOfOps, HoldsForManyDimensions) {
  Dims dims{1, 2, 3, 4, 5, 6, 7, 8}, order{7, 6, 5, 4, 3, 2, 1, 0};
  EXPECT_EQ(SameDims(*b_.Transpose(Array(dims), order), 0), order);
}

TEST_F(IndexMapOfOps, VariablesNeedNoSizes) {
  Instr* x = Array({kDynamic, 3});
  EXPECT_EQ(SameDims(*b_.Transpose(x, {1, 0}), 0), (Dims{1, 0}));
  Instr* reversed = b_.Reverse(x, {0});
  EXPECT_FALSE(HasIndexMap(*reversed, 0));
  EXPECT_FALSE(IndexMapOf(*reversed, 0));
}

TEST_F(IndexMapOfOps, OpsWithoutFixedGeometryHaveNoMap) {
  Instr* x = Array({4, 4});
  EXPECT_FALSE(IndexMapOf(*b_.Append(Op::kCholesky, {x}, CholeskyAttrs{}), 0));
  EXPECT_FALSE(IndexMapOf(*b_.Tuple({x}), 0));
}

}  // namespace
}  // namespace tokamak
