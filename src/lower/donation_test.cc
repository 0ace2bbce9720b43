// Results that reuse the memory of donated arguments.

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "lower/lower.h"
#include "lower/simulated_run.h"

namespace tokamak {
namespace {

// A function of x and y, f32[4] each, with two results in donated memory: the first in that of x,
// the second in that of y.
template <typename Body>
LoweredProgram Donated(Module& module, Body&& body, std::vector<int64_t> into = {0, 1}) {
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {4}));
  Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {4}));
  auto [first, second] = body(b, x, y);
  module.set_entry(b.Finish(b.Tuple({first, second})).value());
  LowerOptions options;
  options.plan.mode = FusionMode::kNone;
  options.alias_results = std::move(into);
  DecisionLog log;
  return Lower(module, options, log).value();
}

template <typename Body>
std::vector<std::vector<float>> RunDonated(Body&& body) {
  Module module("m");
  LoweredProgram program = Donated(module, body);
  std::vector<float> x = {1, 2, 3, 4}, y = {50, 60, 70, 80};
  RunSimulated(program, {x.data(), y.data(), x.data(), y.data()});
  return {x, y};
}

TEST(Donation, ArgumentsThatSwapSlices) {
  auto swapped = [](Builder&, Instr* x, Instr* y) { return std::pair(y, x); };
  EXPECT_EQ(RunDonated(swapped), (std::vector<std::vector<float>>{{50, 60, 70, 80}, {1, 2, 3, 4}}));
}

TEST(Donation, OneResultIsTheOtherArgument) {
  auto moved = [](Builder& b, Instr* x, Instr* y) { return std::pair(b.Add(x, y), x); };
  EXPECT_EQ(RunDonated(moved), (std::vector<std::vector<float>>{{51, 62, 73, 84}, {1, 2, 3, 4}}));
}

TEST(Donation, AnArgumentIsReadAfterAResultIsThere) {
  auto later = [](Builder& b, Instr* x, Instr* y) {
    Instr* sum = b.Add(x, y);
    return std::pair(sum, b.Multiply(b.Negate(sum), x));
  };
  EXPECT_EQ(RunDonated(later),
            (std::vector<std::vector<float>>{{51, 62, 73, 84}, {-51, -124, -219, -336}}));
}

// A column sum and a tile of tensor cores are combined with donated arrays in place.
TEST(Donation, ReductionsAndDotsOnGpus) {
  constexpr int64_t kRows = 128, kColumns = 64, kDepth = 64;
  for (bool reduces : {false, true}) {
    Module module("m");
    Builder adding(module, "sum");
    const Shape scalar = Shape::Array(ElementType::kF32, {});
    Instr* left_term = adding.Parameter(scalar);
    Computation* plus = adding.Finish(adding.Add(left_term, adding.Parameter(scalar))).value();
    Builder b(module, "main");
    Dims dims = reduces ? Dims{kColumns} : Dims{kRows, kColumns};
    Instr* x = b.Parameter(Shape::Array(ElementType::kF32, dims));
    Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {kRows, kDepth}));
    Instr* z = b.Parameter(Shape::Array(ElementType::kF32, {kDepth, kColumns}));
    DotAttrs attrs;
    attrs.lhs_contracting = {1};
    attrs.rhs_contracting = {0};
    Instr* made =
        reduces ? b.Reduce({y}, {b.Scalar(ElementType::kF32, 0)}, {0}, plus) : b.Dot(y, z, attrs);
    Instr* sum = b.Add(made, x);
    module.set_entry(b.Finish(b.Tuple({sum})).value());
    LowerOptions options;
    options.machine = GpuMachine();
    options.alias_results = {0, -1, -1};
    DecisionLog log;
    LoweredProgram program = Lower(module, options, log).value();
    EXPECT_EQ(program.copies, 0) << reduces;
    std::vector<float> out(static_cast<size_t>(sum->shape().ElementCount()), 3),
        left(kRows * kDepth, 1), right(kDepth * kColumns, 2);
    RunSimulated(program, {out.data(), left.data(), right.data(), out.data()});
    EXPECT_EQ(out, std::vector<float>(out.size(), 3 + (reduces ? kRows : 2 * kDepth)));
  }
}

// The generated code must not assume that aliasing arguments are distinct.
TEST(Donation, KernelsKnowWhatMayOverlap) {
  for (bool donated : {true, false}) {
    Module module("m");
    auto negated = [](Builder& b, Instr* x, Instr* y) {
      return std::pair(b.Negate(x), b.Negate(y));
    };
    LoweredProgram program =
        donated ? Donated(module, negated) : Donated(module, negated, {-1, -1});
    ASSERT_EQ(program.kernels.size(), 2u);
    for (const Kernel& kernel : program.kernels)
      for (const Array& array : kernel.arrays) EXPECT_EQ(array.distinct, !donated);
  }
}

}  // namespace
}  // namespace tokamak
