#include "analysis/dimension_flow.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

// Known cases. tests/index_maps compares the factors of random instructions with what is read.

namespace tokamak {
namespace {

class DimensionFlowOf : public testing::Test {
 protected:
  Instr* Array(Dims dims) { return b_.Parameter(Shape::Array(ElementType::kF32, std::move(dims))); }
  Instr* Indices(Dims dims) {
    return b_.Parameter(Shape::Array(ElementType::kS32, std::move(dims)));
  }

  // The operand dimensions of the factor of a dimension of the result.
  static std::vector<FlowDim> Carriers(const Instr& instr, size_t result_dim) {
    for (const DimFactor& factor : DimensionFlow(instr))
      if (factor.result_dim == result_dim) return factor.operand_dims;
    return {};
  }
  // The same of reduced factors that any operand has.
  static std::vector<std::vector<FlowDim>> Reduced(const Instr& instr) {
    std::vector<std::vector<FlowDim>> reduced;
    for (const DimFactor& factor : DimensionFlow(instr))
      if (!factor.result_dim && !factor.operand_dims.empty())
        reduced.push_back(factor.operand_dims);
    return reduced;
  }

  Module module_{"m"};
  Builder b_{module_, "main"};
};

using FlowDims = std::vector<FlowDim>;

TEST_F(DimensionFlowOf, ADotSharesBatchAndContractedDimensions) {
  for (int64_t size : {int64_t{7}, kDynamic}) {  // names are enough
    DotAttrs attrs;
    attrs.lhs_batch = attrs.rhs_batch = {0};
    attrs.lhs_contracting = {2};
    attrs.rhs_contracting = {1};
    const Instr& dot = *b_.Dot(Array({5, 2, size}), Array({5, size, 3}), attrs);
    EXPECT_EQ(Carriers(dot, 0), (FlowDims{{0, 0}, {1, 0}}));
    EXPECT_EQ(Carriers(dot, 1), (FlowDims{{0, 1}}));
    EXPECT_EQ(Carriers(dot, 2), (FlowDims{{1, 2}}));
    EXPECT_EQ(Reduced(dot), (std::vector<FlowDims>{{{0, 2}, {1, 1}}}));
  }
}

TEST_F(DimensionFlowOf, AConvolutionSharesBatchAndFeatures) {
  ConvolutionAttrs attrs;
  attrs.dims.input_batch = attrs.dims.output_batch = 0;
  attrs.dims.input_feature = attrs.dims.output_feature = 2;
  attrs.dims.input_spatial = attrs.dims.output_spatial = {1};
  attrs.dims.kernel_spatial = {0};
  attrs.dims.kernel_input = 1;
  attrs.dims.kernel_output = 2;
  attrs.window = {WindowDim{.size = 3}};
  const Instr& conv = *b_.Convolution(Array({4, 9, 6}), Array({3, 6, 8}), attrs);
  EXPECT_EQ(Carriers(conv, 0), (FlowDims{{0, 0}}));
  EXPECT_EQ(Carriers(conv, 1), FlowDims{});  // windows need neighbours
  EXPECT_EQ(Carriers(conv, 2), (FlowDims{{1, 2}}));
  // The input features of both, and taps of the kernel.
  EXPECT_EQ(Reduced(conv), (std::vector<FlowDims>{{{0, 2}, {1, 1}}, {{1, 0}}}));
}

TEST_F(DimensionFlowOf, AReductionLeavesPartialResults) {
  Builder body(module_, "sum");
  Instr* x = body.Parameter(Shape::Scalar(ElementType::kF32));
  Instr* y = body.Parameter(Shape::Scalar(ElementType::kF32));
  Computation* sum = body.FinishValid(body.Add(x, y));
  const Instr& reduce = *b_.Reduce({Array({2, kDynamic, 4})}, {Array({})}, {1}, sum);
  EXPECT_EQ(Carriers(reduce, 0), (FlowDims{{0, 0}}));
  EXPECT_EQ(Carriers(reduce, 1), (FlowDims{{0, 2}}));
  EXPECT_EQ(Reduced(reduce), (std::vector<FlowDims>{{{0, 1}}}));
}

TEST_F(DimensionFlowOf, TheMajorDimensionOfAReshapeFlows) {
  const Instr& merge = *b_.Reshape(Array({5, 8, 3}), {5, 24});
  EXPECT_EQ(Carriers(merge, 0), (FlowDims{{0, 0}}));
  EXPECT_EQ(Carriers(merge, 1), (FlowDims{{0, 1, true}}));
  const Instr& split = *b_.Reshape(Array({5, 24}), {5, 8, 3});
  EXPECT_EQ(Carriers(split, 1), (FlowDims{{0, 1, true}}));
  EXPECT_EQ(Carriers(split, 2), FlowDims{});
}

TEST_F(DimensionFlowOf, AGatherFollowsItsIndicesAndWholeSlices) {
  GatherAttrs attrs;
  attrs.offset_dims = {1};
  attrs.collapsed_slice_dims = attrs.start_index_map = {0};
  attrs.index_vector_dim = 1;
  attrs.slice_sizes = {1, 16};
  const Instr& rows = *b_.Gather(Array({100, 16}), Indices({8}), attrs);
  EXPECT_EQ(Carriers(rows, 0), (FlowDims{{1, 0}}));
  EXPECT_EQ(Carriers(rows, 1), (FlowDims{{0, 1}}));
}

TEST_F(DimensionFlowOf, ShiftedDimensionsDoNotFlow) {
  Instr* x = Array({4, 6});
  EXPECT_EQ(Carriers(*b_.Reverse(x, {0}), 0), FlowDims{});
  EXPECT_EQ(Carriers(*b_.Reverse(x, {0}), 1), (FlowDims{{0, 1}}));
  EXPECT_EQ(Carriers(*b_.Slice(x, {0, 0}, {2, 6}), 0), FlowDims{});
  EXPECT_EQ(Carriers(*b_.Concatenate({x, x}, 0), 0), FlowDims{});
  EXPECT_EQ(Carriers(*b_.Concatenate({x, x}, 0), 1), (FlowDims{{0, 1}, {1, 1}}));
  const Instr& block = *b_.DynamicUpdateSlice(x, Array({1, 6}), {Indices({}), Indices({})});
  EXPECT_EQ(Carriers(block, 0), FlowDims{});
  EXPECT_EQ(Carriers(block, 1), (FlowDims{{0, 1}, {1, 1}}));
}

}  // namespace
}  // namespace tokamak
