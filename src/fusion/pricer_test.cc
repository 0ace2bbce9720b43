#include "fusion/pricer.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tokamak {
namespace {

// A product, and two values that follow from it.
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

  Region Of(std::vector<const Instr*> roots) {
    return {.computation = dot->parent(),
            .instrs = {dot, sum, most},
            .inputs = {x, w, y},
            .roots = std::move(roots)};
  }
};

TEST(Pricer, ContractionsOfACpuMayStoreSeveralValues) {
  Product product;
  ASSERT_TRUE(product.b.Finish(product.b.Tuple({product.sum, product.most})).ok());
  Machine machine;
  Pricer pricer(*product.dot->parent(), machine);
  Region both = product.Of({product.sum, product.most});
  const RegionPrice& price = pricer.Of(both);
  EXPECT_EQ(price.kind, RegionKind::kContract);
  EXPECT_TRUE(price.IsLegal()) << price.why_not;
  // What that is worth no estimate knows.
  EXPECT_TRUE(pricer.HaveKernels({both}));
  EXPECT_FALSE(pricer.HaveSimpleKernels({both}, {pricer.hasher().KeyOf(both)}));
  Region one = product.Of({product.most});
  EXPECT_TRUE(pricer.HaveSimpleKernels({one}, {pricer.hasher().KeyOf(one)}));
}

// An array that is updated in place is not read by the same kernel, but for the slice that is
// written again.
TEST(Pricer, WhatIsOverwrittenIsNotRead) {
  Module module("m");
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {64}));
  Instr* at = b.Parameter(Shape::Array(ElementType::kS32, {}));
  Instr* first = b.Slice(x, {0}, {8}, {1});
  Instr* of_first = b.Tanh(first);
  Instr* reads = b.DynamicUpdateSlice(x, of_first, {at});
  Instr* same = b.DynamicSlice(x, {at}, {8});
  Instr* of_same = b.Tanh(same);
  Instr* again = b.DynamicUpdateSlice(x, of_same, {at});
  ASSERT_TRUE(b.Finish(b.Tuple({reads, again})).ok());
  Machine machine;
  Pricer pricer(*x->parent(), machine);
  auto is_legal = [&](const std::vector<const Instr*>& instrs) {
    return pricer
        .Of(Region{.computation = x->parent(),
                   .instrs = instrs,
                   .inputs = {x, at},
                   .roots = {instrs.back()}})
        .IsLegal();
  };
  EXPECT_FALSE(is_legal({first, of_first, reads}));
  EXPECT_TRUE(is_legal({same, of_same, again}));
}

}  // namespace
}  // namespace tokamak
