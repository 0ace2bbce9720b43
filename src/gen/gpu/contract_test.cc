#include <algorithm>

#include <gtest/gtest.h>

#include "gen/generator.h"
#include "ir/builder.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"

namespace tokamak::gpu {
namespace {

struct Sizes {
  int64_t m, n, k;
};

// Small integers, so that sums are exact in any order.
float Factor(int64_t i) {
  return static_cast<float>(i * 7 % 11 - 5);
}

std::vector<float> Factors(int64_t count) {
  std::vector<float> factors;
  for (int64_t i = 0; i < count; ++i) factors.push_back(Factor(i));
  return factors;
}

std::vector<float> Products(const Sizes& of) {
  std::vector<float> sums;
  for (int64_t i = 0; i < of.m; ++i)
    for (int64_t j = 0; j < of.n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < of.k; ++p) sum += Factor(i * of.k + p) * Factor(p * of.n + j);
      sums.push_back(sum);
    }
  return sums;
}

// Multiplies as a GPU with 132 SMs would: the simulated device has one SM, for which no tiling is
// narrow.
TEST(BlockContract, NarrowProductsOfALargeGpu) {
  for (const Sizes& of : {Sizes{32, 24, 256}, Sizes{5, 9, 700}, Sizes{40, 16, 130}}) {
    Module module("m");
    Builder b(module, "main");
    Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {of.m, of.k}));
    Instr* w = b.Parameter(Shape::Array(ElementType::kF32, {of.k, of.n}));
    DotAttrs attrs;
    attrs.lhs_contracting = {1};
    attrs.rhs_contracting = {0};
    Instr* dot = b.Dot(x, w, attrs);
    ASSERT_TRUE(b.Finish(dot).ok());
    FusedRegion region{
        .computation = dot->parent(), .instrs = {dot}, .inputs = {x, w}, .roots = {dot}};
    BuildOutcome outcome = BuildRegion(region, GeneratorKind::kContract, GpuMachine(), "k");
    ASSERT_TRUE(outcome.built.has_value()) << outcome.why_not;
    const Kernel& kernel = outcome.built->kernel;
    ASSERT_TRUE(VerifyKernel(kernel).ok());
    auto is_partial_sums = [](const Array& array) { return array.name == "partial_sums"; };
    ASSERT_TRUE(std::ranges::any_of(kernel.arrays, is_partial_sums)) << "it is not narrow";
    std::vector<float> lhs = Factors(of.m * of.k), rhs = Factors(of.k * of.n);
    for (uint64_t seed : {0, 1}) {
      std::vector<float> y(static_cast<size_t>(of.m * of.n));
      SimArgument arguments[] = {
          {lhs.data(), of.m * of.k}, {rhs.data(), of.k * of.n}, {y.data(), of.m * of.n}};
      SimOptions options;
      if (seed > 0) options.seed = seed;
      Result<SimReport> report = SimulateKernel(kernel, arguments, {}, options);
      ASSERT_TRUE(report.ok()) << Render(report.error());
      EXPECT_EQ(y, Products(of)) << of.m << " x " << of.n << " x " << of.k;
    }
  }
}

}  // namespace
}  // namespace tokamak::gpu
