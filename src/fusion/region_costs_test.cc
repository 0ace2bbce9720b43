#include "fusion/region_costs.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tokamak {
namespace {

// A matrix product, and two values computed from it.
struct Product {
  Module module{"m"};
  Builder b{module, "main"};
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {200, 64}));
  Instr* w = b.Parameter(Shape::Array(ElementType::kF32, {64, 240}));
  Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {200, 240}));
  Instr* dot = b.Dot(x, w, Contracting());
  Instr* sum = b.Add(dot, y);
  Instr* most = b.Maximum(sum, y);

  static DotAttrs Contracting() {
    DotAttrs attrs;
    attrs.lhs_contracting = {1};
    attrs.rhs_contracting = {0};
    return attrs;
  }

  FusedRegion Of(std::vector<const Instr*> roots) {
    return {.computation = dot->parent(),
            .instrs = {dot, sum, most},
            .inputs = {x, w, y},
            .roots = std::move(roots)};
  }
};

TEST(RegionCosts, ContractionsOfACpuMayStoreSeveralValues) {
  Product product;
  ASSERT_TRUE(product.b.Finish(product.b.Tuple({product.sum, product.most})).ok());
  Machine machine;
  RegionCosts costs(*product.dot->parent(), machine);
  FusedRegion both = product.Of({product.sum, product.most});
  const RegionCost& cost = costs.ModeledCostOf(both);
  EXPECT_EQ(cost.kind, GeneratorKind::kContract);
  EXPECT_TRUE(cost.HasKernel()) << cost.why_not;
  // Estimates do not cover this case.
  EXPECT_TRUE(costs.AllHaveKernels({both}));
  EXPECT_FALSE(costs.AllHaveReliablyEstimatedKernels({both}, {costs.hasher().KeyOf(both)}));
  FusedRegion one = product.Of({product.most});
  EXPECT_TRUE(costs.AllHaveReliablyEstimatedKernels({one}, {costs.hasher().KeyOf(one)}));
}

// The kernel of an in-place update may not read the updated array, except for the slice that is
// overwritten.
TEST(RegionCosts, OverwrittenElementsAreNotRead) {
  Module module("m");
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {64}));
  Instr* at = b.Parameter(Shape::Array(ElementType::kS32, {}));
  Instr* first = b.Slice(x, {0}, {8}, {1});
  Instr* of_first = b.Tanh(first);
  Instr* reads = b.DynamicUpdateSlice(x, of_first, {at});
  Instr* same = b.DynamicSlice(x, {at}, {8});
  Instr* of_same = b.Tanh(same);
  Instr* recomputed = b.DynamicUpdateSlice(x, of_same, {at});
  ASSERT_TRUE(b.Finish(b.Tuple({reads, recomputed})).ok());
  Machine machine;
  RegionCosts costs(*x->parent(), machine);
  auto is_legal = [&](const std::vector<const Instr*>& instrs) {
    return costs
        .ModeledCostOf(FusedRegion{.computation = x->parent(),
                                   .instrs = instrs,
                                   .inputs = {x, at},
                                   .roots = {instrs.back()}})
        .HasKernel();
  };
  EXPECT_FALSE(is_legal({first, of_first, reads}));
  EXPECT_TRUE(is_legal({same, of_same, recomputed}));
}

}  // namespace
}  // namespace tokamak
