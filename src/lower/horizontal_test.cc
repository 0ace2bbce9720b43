// Horizontally fused launches: their position, in-place updates, and cyclic dependences.

#include "fusion/horizontal.h"

#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "lower/lowerer.h"
#include "lower/simulated_run.h"

namespace tokamak {
namespace {

const std::vector<float> kInput = {1, 2, 3, 4, 5, 6, 7, 8};

// The program of a function of x, f32[8].
template <typename Body>
std::unique_ptr<Module> Program(Body&& body) {
  auto module = std::make_unique<Module>("m");
  Builder b(*module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {8}));
  auto main = b.Finish(body(b, x));
  EXPECT_TRUE(main.ok());
  module->set_entry(main.value());
  return module;
}

struct Lowered {
  LoweredProgram program;
  DecisionLog log;

  int64_t Horizontal() const {
    return std::count_if(program.steps.begin(), program.steps.end(),
                         [](const RunStep& step) { return step.kind == StepKind::kHorizontal; });
  }
  bool Says(std::string_view rule) const {
    return std::any_of(log.all().begin(), log.all().end(),
                       [&](const Decision& decision) { return decision.rule == rule; });
  }
};

// One kernel per instruction. Launch groups are named by the instructions they compute.
void LowerHorizontal(const Module& module,
                     const std::vector<std::vector<const Instr*>>& launch_groups,
                     Lowered& lowered) {
  LowerOptions options;
  options.plan.mode = FusionMode::kNone;
  options.alias_results = {-1};
  options.poison = true;
  ComputationPlan plan =
      PlanComputation(*module.entry(), options.machine, options.plan, lowered.log);
  for (const std::vector<const Instr*>& group : launch_groups) {
    plan.launch_groups.emplace_back();
    for (const Instr* instr : group) plan.launch_groups.back().push_back(plan.kernel_of[instr]);
  }
  Lowerer lowerer(module, options, lowered.log);
  lowerer.Take(std::move(plan));
  lowered.program = lowerer.Run();
  EXPECT_FALSE(lowerer.is_cyclic());
}

std::vector<float> ValuesOf(const Lowered& lowered) {
  return RunSimulated(lowered.program, kInput, 8);
}

TEST(Horizontal, RunAsOneLaunch) {
  Instr *p = nullptr, *q = nullptr;
  auto module = Program([&](Builder& b, Instr* x) {
    p = b.Negate(x);
    q = b.Reverse(x, {0});
    return b.Multiply(p, q);
  });
  Lowered plain, horizontal;
  LowerHorizontal(*module, {}, plain);
  LowerHorizontal(*module, {{p, q}}, horizontal);
  EXPECT_EQ(plain.program.launches, 3);
  EXPECT_EQ(horizontal.program.launches, 2);
  EXPECT_EQ(horizontal.Horizontal(), 1);
  EXPECT_EQ(horizontal.program.kernels.size(), 3u);
  EXPECT_EQ(ValuesOf(plain), ValuesOf(horizontal));
}

// In separate launches, the first kernel may overwrite its input, because the second runs before
// it.
TEST(Horizontal, WhatAnotherKernelReadsIsNotWrittenOver) {
  Instr *t = nullptr, *p = nullptr, *q = nullptr;
  auto module = Program([&](Builder& b, Instr* x) {
    t = b.Negate(x);
    p = b.Abs(t);
    q = b.Reverse(t, {0});
    return b.Reverse(b.Multiply(b.Reverse(p, {0}), q), {0});
  });
  for (bool first : {false, true}) {
    Lowered plain, horizontal;
    LowerHorizontal(*module, {}, plain);
    LowerHorizontal(*module,
                    {first ? std::vector<const Instr*>{p, q} : std::vector<const Instr*>{q, p}},
                    horizontal);
    ASSERT_EQ(horizontal.Horizontal(), 1);
    for (const RunStep& step : horizontal.program.steps) {
      if (step.kind != StepKind::kHorizontal) continue;
      BufferSlice read = step.blocks[0][0].slices[0];
      EXPECT_EQ(read, step.blocks[0][1].slices[0]);
      for (const RunStep& launch : step.blocks[0]) EXPECT_FALSE(launch.slices[1] == read);
    }
    EXPECT_EQ(ValuesOf(plain), ValuesOf(horizontal));
  }
}

TEST(Horizontal, AKernelWritesOverWhatItAloneReads) {
  Instr *p = nullptr, *q = nullptr;
  auto module = Program([&](Builder& b, Instr* x) {
    Instr *s = b.Negate(x), *t = b.Reverse(x, {0});
    p = b.Abs(s);
    q = b.Negate(t);
    return b.Reverse(b.Multiply(p, b.Reverse(q, {0})), {0});
  });
  Lowered horizontal;
  LowerHorizontal(*module, {{p, q}}, horizontal);
  for (const RunStep& step : horizontal.program.steps) {
    if (step.kind != StepKind::kHorizontal) continue;
    for (const RunStep& launch : step.blocks[0]) EXPECT_EQ(launch.slices[0], launch.slices[1]);
  }
}

TEST(Horizontal, ThatWaitForThemselvesAreSplit) {
  Instr *p = nullptr, *q = nullptr, *r = nullptr;
  auto module = Program([&](Builder& b, Instr* x) {
    p = b.Negate(x);
    q = b.Reverse(p, {0});
    r = b.Abs(q);
    return b.Multiply(r, x);
  });
  Lowered plain, horizontal;
  LowerHorizontal(*module, {}, plain);
  LowerHorizontal(*module, {{p, r}}, horizontal);
  EXPECT_TRUE(horizontal.Says("lower.cyclic-horizontal-fusion"));
  EXPECT_EQ(horizontal.Horizontal(), 0);
  EXPECT_EQ(horizontal.program.launches, plain.program.launches);
  EXPECT_EQ(ValuesOf(plain), ValuesOf(horizontal));
}

// Either of the two groups is possible, but not both.
TEST(Horizontal, OneOfTwoThatWaitForEachOtherIsSplit) {
  Instr *p = nullptr, *q = nullptr, *r = nullptr, *s = nullptr;
  auto module = Program([&](Builder& b, Instr* x) {
    p = b.Negate(x);
    q = b.Reverse(p, {0});
    r = b.Abs(x);
    s = b.Reverse(r, {0});
    return b.Multiply(q, s);
  });
  Lowered plain, horizontal;
  LowerHorizontal(*module, {}, plain);
  LowerHorizontal(*module, {{p, s}, {q, r}}, horizontal);
  EXPECT_TRUE(horizontal.Says("lower.cyclic-horizontal-fusion"));
  EXPECT_EQ(horizontal.Horizontal(), 1);
  EXPECT_EQ(horizontal.program.launches, plain.program.launches - 1);
  EXPECT_EQ(ValuesOf(plain), ValuesOf(horizontal));
}

}  // namespace
}  // namespace tokamak
