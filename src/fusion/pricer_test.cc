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

}  // namespace
}  // namespace tokamak
