#include "fusion/kernel_cache.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tokamak {
namespace {

// The same function of two arrays, and another function of them.
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

  FusedRegion Of(const Instr* first, const Instr* root, std::vector<const Instr*> inputs) {
    return {.computation = root->parent(),
            .instrs = {first, root},
            .inputs = std::move(inputs),
            .roots = {root}};
  }
};

TEST(KernelCache, EqualRegionsAreBuiltOnce) {
  Twice t;
  ASSERT_TRUE(t.b.Finish(t.b.Tuple({t.of_x, t.of_y, t.turned, t.mixed})).ok());
  Machine machine;
  KernelCache kernel_cache(*t.x->parent(), machine);
  FusedRegion of_y = t.Of(t.tanh_y, t.of_y, {t.y});
  auto result = kernel_cache.BuildOrGet(t.Of(t.tanh_x, t.of_x, {t.x}), GeneratorKind::kLoop);
  ASSERT_TRUE(result->outcome.built.has_value());
  EXPECT_EQ(kernel_cache.BuildOrGet(of_y, GeneratorKind::kLoop), result);
  EXPECT_NE(kernel_cache.BuildOrGet(t.Of(t.tanh_y, t.turned, {t.y}), GeneratorKind::kLoop), result);
  EXPECT_NE(kernel_cache.BuildOrGet(t.Of(t.tanh_y, t.mixed, {t.y, t.x}), GeneratorKind::kLoop),
            result);
  // Each reads another array.
  BuiltKernel built = RebindKernel(of_y, *result, "of_y");
  EXPECT_EQ(built.kernel.name, "of_y");
  ASSERT_EQ(built.arguments.size(), 2);
  EXPECT_EQ(built.arguments[0].instr, t.y);
  EXPECT_EQ(built.arguments[1].instr, t.of_y);
  EXPECT_TRUE(built.arguments[1].is_output);
}

// A reused kernel must_alias the array of the region for which it is reused.
TEST(KernelCache, AnUpdateIsOfItsOwnArray) {
  Module module("m");
  Builder b(module, "main");
  Shape shape = Shape::Array(ElementType::kF32, {64});
  Instr *x = b.Parameter(shape), *y = b.Parameter(shape);
  Instr* part = b.Parameter(Shape::Array(ElementType::kF32, {8}));
  Instr* at = b.Parameter(Shape::Array(ElementType::kS32, {}));
  Instr* in_x = b.DynamicUpdateSlice(x, part, {at});
  Instr* in_y = b.DynamicUpdateSlice(y, part, {at});
  ASSERT_TRUE(b.Finish(b.Tuple({in_x, in_y})).ok());
  auto region = [&](const Instr* root) {
    return FusedRegion{
        .computation = root->parent(), .instrs = {root}, .inputs = {part, at}, .roots = {root}};
  };
  Machine machine;
  KernelCache kernel_cache(*x->parent(), machine);
  auto result = kernel_cache.BuildOrGet(region(in_x), GeneratorKind::kLoop);
  ASSERT_TRUE(result->outcome.built.has_value()) << result->outcome.why_not;
  ASSERT_EQ(kernel_cache.BuildOrGet(region(in_y), GeneratorKind::kLoop), result);
  BuiltKernel built = RebindKernel(region(in_y), *result, "in_y");
  ASSERT_EQ(built.must_alias.size(), 1u);
  EXPECT_EQ(built.must_alias[0].second, y);
}

// Several elements sliced from one array, each used separately.
struct SliceProgram {
  Module module{"m"};
  Builder b{module, "main"};
  Instr* all = b.Parameter(Shape::Array(ElementType::kF32, {37}));
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {64}));

  FusedRegion Of(int64_t first, int64_t count, int64_t stride = 1) {
    Instr* part = b.Slice(all, {first}, {first + count * stride}, {stride});
    Instr* root = b.Tanh(part);
    return {
        .computation = root->parent(), .instrs = {part, root}, .inputs = {all}, .roots = {root}};
  }
};

TEST(FusedRegionHasher, TheOffsetOfAShortSliceDoesNotMatter) {
  SliceProgram t;
  FusedRegion first = t.Of(0, 1), third = t.Of(2, 1), fifth = t.Of(4, 1), apart = t.Of(4, 4, 2),
              strided = t.Of(2, 4), many = t.Of(2, 20), more = t.Of(3, 20);
  ASSERT_TRUE(t.b.Finish(t.b.Tanh(t.x)).ok());
  FusedRegionHasher hasher(*t.x->parent());
  EXPECT_EQ(hasher.HashOf(third), hasher.HashOf(fifth));
  // But a start of 0 is distinct, and starts of longer slices matter for vectors.
  EXPECT_NE(hasher.HashOf(first), hasher.HashOf(third));
  EXPECT_NE(hasher.HashOf(apart), hasher.HashOf(strided));
  EXPECT_NE(hasher.HashOf(many), hasher.HashOf(more));
  // As kernels, they differ.
  EXPECT_NE(hasher.ExactHashOf(third), hasher.ExactHashOf(fifth));
}

Computation* OfTwo(Module& module, Op op) {
  Builder b(module, "fold");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {}));
  Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {}));
  return b.Finish(op == Op::kAdd ? b.Add(x, y) : b.Maximum(x, y)).value();
}

TEST(FusedRegionHasher, TheCalledComputationMatters) {
  Module module("m");
  Computation *add = OfTwo(module, Op::kAdd), *recomputed = OfTwo(module, Op::kAdd),
              *most = OfTwo(module, Op::kMaximum);
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {64}));
  Instr* zero = b.Parameter(Shape::Array(ElementType::kF32, {}));
  std::vector<Instr*> reductions;
  for (Computation* reduction : {add, recomputed, most})
    reductions.push_back(b.Reduce({x}, {zero}, {0}, reduction));
  ASSERT_TRUE(b.Finish(b.Tuple(reductions)).ok());
  FusedRegionHasher hasher(*x->parent());
  auto of = [&](const Instr* reduction) {
    return hasher.HashOf(FusedRegion{.computation = x->parent(),
                                     .instrs = {reduction},
                                     .inputs = {x, zero},
                                     .roots = {reduction}});
  };
  EXPECT_EQ(of(reductions[0]), of(reductions[1]));
  EXPECT_NE(of(reductions[0]), of(reductions[2]));
}

}  // namespace
}  // namespace tokamak
