#include "fusion/kernel_memo.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tokamak {
namespace {

// The same done to two arrays, and something else to them.
struct Twice {
  Module module{"m"};
  Builder b{module, "main"};
  Shape shape = Shape::Array(ElementType::kF32, {64});
  Instr* x = b.Parameter(shape);
  Instr* y = b.Parameter(shape);
  Instr* tanh_x = b.Tanh(x);
  Instr* of_x = b.Subtract(tanh_x, x);
  Instr* tanh_y = b.Tanh(y);
  Instr* of_y = b.Subtract(tanh_y, y);
  Instr* turned = b.Subtract(y, tanh_y);
  Instr* mixed = b.Subtract(tanh_y, x);

  Region Of(const Instr* first, const Instr* root, std::vector<const Instr*> inputs) {
    return {.computation = root->parent(),
            .instrs = {first, root},
            .inputs = std::move(inputs),
            .roots = {root}};
  }
};

TEST(KernelMemo, WhatIsTheSameIsMadeOnce) {
  Twice t;
  ASSERT_TRUE(t.b.Finish(t.b.Tuple({t.of_x, t.of_y, t.turned, t.mixed})).ok());
  Machine machine;
  KernelMemo kernels(*t.x->parent(), machine);
  Region of_y = t.Of(t.tanh_y, t.of_y, {t.y});
  auto made = kernels.Make(t.Of(t.tanh_x, t.of_x, {t.x}), RegionKind::kLoop);
  ASSERT_TRUE(made->outcome.built.has_value());
  EXPECT_EQ(kernels.Make(of_y, RegionKind::kLoop), made);
  EXPECT_NE(kernels.Make(t.Of(t.tanh_y, t.turned, {t.y}), RegionKind::kLoop), made);
  EXPECT_NE(kernels.Make(t.Of(t.tanh_y, t.mixed, {t.y, t.x}), RegionKind::kLoop), made);
  // Another array in the place of each.
  BuiltKernel built = KernelFor(of_y, *made, "of_y");
  EXPECT_EQ(built.kernel.name, "of_y");
  ASSERT_EQ(built.arguments.size(), 2);
  EXPECT_EQ(built.arguments[0].instr, t.y);
  EXPECT_EQ(built.arguments[1].instr, t.of_y);
  EXPECT_TRUE(built.arguments[1].is_output);
}

// A value of its own for each of several that are taken out of one array.
struct Taken {
  Module module{"m"};
  Builder b{module, "main"};
  Instr* all = b.Parameter(Shape::Array(ElementType::kF32, {37}));
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {64}));

  Region Of(int64_t first, int64_t count, int64_t stride = 1) {
    Instr* part = b.Slice(all, {first}, {first + count * stride}, {stride});
    Instr* root = b.Tanh(part);
    return {
        .computation = root->parent(), .instrs = {part, root}, .inputs = {all}, .roots = {root}};
  }
};

TEST(RegionHasher, WhereAFewElementsAreTakenFromDoesNotMatter) {
  Taken t;
  Region first = t.Of(0, 1), third = t.Of(2, 1), fifth = t.Of(4, 1), apart = t.Of(4, 4, 2),
         far = t.Of(2, 4), many = t.Of(2, 20), more = t.Of(3, 20);
  ASSERT_TRUE(t.b.Finish(t.b.Tanh(t.x)).ok());
  RegionHasher hasher(*t.x->parent());
  EXPECT_EQ(hasher.Of(third), hasher.Of(fifth));
  // But the beginning is where it was, and vectors are a matter of places.
  EXPECT_NE(hasher.Of(first), hasher.Of(third));
  EXPECT_NE(hasher.Of(apart), hasher.Of(far));
  EXPECT_NE(hasher.Of(many), hasher.Of(more));
  // As kernels, they are not the same.
  EXPECT_NE(hasher.OfEach(third), hasher.OfEach(fifth));
}

}  // namespace
}  // namespace tokamak
