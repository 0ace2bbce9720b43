#include <gtest/gtest.h>

#include "gen/accepts_rows.h"
#include "gen/generator.h"
#include "ir/builder.h"

namespace tokamak {
namespace {

// A matrix product with elementwise producers and consumers.
struct Product {
  Module module{"m"};
  Builder b{module, "main"};
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {64, 32}));
  Instr* w = b.Parameter(Shape::Array(ElementType::kF32, {32, 96}));
  Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {64, 96}));

  Instr* Dot(Instr* left, Instr* right) {
    DotAttrs attrs;
    attrs.lhs_contracting = {1};
    attrs.rhs_contracting = {0};
    return b.Dot(left, right, attrs);
  }

  // Asks both AcceptsContract and the generator, and expects that they agree.
  Accepts Ask(std::vector<const Instr*> instrs, Instr* root) {
    EXPECT_TRUE(b.Finish(root).ok());
    FusedRegion region{.computation = root->parent(),
                       .instrs = std::move(instrs),
                       .inputs = {x, w, y},
                       .roots = {root}};
    Machine machine;
    bool built = BuildRegion(region, GeneratorKind::kContract, machine, "k").built.has_value();
    Accepts accepts = AcceptsContract(region, machine);
    EXPECT_TRUE(accepts == Accepts::kUnknown || (accepts == Accepts::kYes) == built);
    return accepts;
  }
};

TEST(AcceptsContract, AcceptsAnElementwiseEpilogue) {
  Product p;
  Instr* twice = p.b.Add(p.x, p.x);
  Instr* dot = p.Dot(twice, p.w);
  Instr* sum = p.b.Add(dot, p.y);
  EXPECT_EQ(p.Ask({twice, dot, sum}, sum), Accepts::kYes);
}

TEST(AcceptsContract, AcceptsOperandsReadAtFixedIndices) {
  Product p;
  Instr* reversed = p.b.Reverse(p.x, {0, 1});
  Instr* dot = p.Dot(reversed, p.w);
  EXPECT_EQ(p.Ask({reversed, dot}, dot), Accepts::kYes);
}

TEST(AcceptsContract, LeavesOpenOperandsReadInPart) {
  Product p;
  Instr* half = p.b.Slice(p.x, {0, 0}, {32, 32});
  Instr* both = p.b.Concatenate({half, half}, 0);
  Instr* dot = p.Dot(both, p.w);
  EXPECT_EQ(p.Ask({half, both, dot}, dot), Accepts::kUnknown);
}

TEST(AcceptsContract, LeavesOpenWhatMovesResults) {
  Product p;
  Instr* dot = p.Dot(p.x, p.w);
  Instr* part = p.b.Slice(dot, {0, 1}, {64, 96});
  EXPECT_EQ(p.Ask({dot, part}, part), Accepts::kUnknown);
  Product q;
  dot = q.Dot(q.x, q.w);
  Instr* transposed = q.b.Transpose(dot, {1, 0});
  EXPECT_EQ(q.Ask({dot, transposed}, transposed), Accepts::kUnknown);
}

TEST(AcceptsContract, LeavesOpenASecondProduct) {
  Product p;
  Instr* first = p.Dot(p.x, p.w);
  Instr* v = p.b.Transpose(p.y, {1, 0});
  Instr* second = p.Dot(first, v);
  EXPECT_EQ(p.Ask({first, v, second}, second), Accepts::kUnknown);
}

}  // namespace
}  // namespace tokamak
