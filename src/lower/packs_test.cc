// Packs: where they stand, what may lie over what, and those that cannot be.

#include "fusion/packs.h"

#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "lower/lowerer.h"
#include "lower/simulated_run.h"

namespace tokamak {
namespace {

const std::vector<float> kInput = {1, 2, 3, 4, 5, 6, 7, 8};

// The program of a function from x, f32[8], to a value.
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

  int64_t Packs() const {
    return std::count_if(program.steps.begin(), program.steps.end(),
                         [](const RunStep& step) { return step.kind == StepKind::kPack; });
  }
  bool Says(std::string_view rule) const {
    return std::any_of(log.all().begin(), log.all().end(),
                       [&](const Decision& decision) { return decision.rule == rule; });
  }
};

// A kernel for each instruction; those of a pack are given by the instructions that they make.
void LowerPacked(const Module& module, const std::vector<std::vector<const Instr*>>& packs,
                 Lowered& lowered) {
  LowerOptions options;
  options.plan.mode = FusionMode::kNone;
  options.alias_results = {-1};
  options.poison = true;
  ComputationPlan plan =
      PlanComputation(*module.entry(), options.machine, options.plan, lowered.log);
  for (const std::vector<const Instr*>& pack : packs) {
    plan.packs.emplace_back();
    for (const Instr* instr : pack) plan.packs.back().push_back(plan.kernel_of[instr]);
  }
  Lowerer lowerer(module, options, lowered.log);
  lowerer.Take(std::move(plan));
  lowered.program = lowerer.Run();
  EXPECT_FALSE(lowerer.is_cyclic());
}

std::vector<float> ValuesOf(const Lowered& lowered) {
  return RunSimulated(lowered.program, kInput, 8);
}

TEST(Packs, RunAsOneLaunch) {
  Instr *p = nullptr, *q = nullptr;
  auto module = Program([&](Builder& b, Instr* x) {
    p = b.Negate(x);
    q = b.Reverse(x, {0});
    return b.Multiply(p, q);
  });
  Lowered plain, packed;
  LowerPacked(*module, {}, plain);
  LowerPacked(*module, {{p, q}}, packed);
  EXPECT_EQ(plain.program.launches, 3);
  EXPECT_EQ(packed.program.launches, 2);
  EXPECT_EQ(packed.Packs(), 1);
  EXPECT_EQ(packed.program.kernels.size(), 3u);
  EXPECT_EQ(ValuesOf(plain), ValuesOf(packed));
}

// Alone, the first may write over what it reads, and the second comes before it.
TEST(Packs, WhatAnotherPartReadsIsNotWrittenOver) {
  Instr *t = nullptr, *p = nullptr, *q = nullptr;
  auto module = Program([&](Builder& b, Instr* x) {
    t = b.Negate(x);
    p = b.Abs(t);
    q = b.Reverse(t, {0});
    return b.Reverse(b.Multiply(b.Reverse(p, {0}), q), {0});
  });
  for (bool first : {false, true}) {
    Lowered plain, packed;
    LowerPacked(*module, {}, plain);
    LowerPacked(*module,
                {first ? std::vector<const Instr*>{p, q} : std::vector<const Instr*>{q, p}},
                packed);
    ASSERT_EQ(packed.Packs(), 1);
    for (const RunStep& step : packed.program.steps) {
      if (step.kind != StepKind::kPack) continue;
      Place read = step.blocks[0][0].places[0];
      EXPECT_EQ(read, step.blocks[0][1].places[0]);
      for (const RunStep& launch : step.blocks[0]) EXPECT_FALSE(launch.places[1] == read);
    }
    EXPECT_EQ(ValuesOf(plain), ValuesOf(packed));
  }
}

TEST(Packs, APartWritesOverWhatItAloneReads) {
  Instr *p = nullptr, *q = nullptr;
  auto module = Program([&](Builder& b, Instr* x) {
    Instr *s = b.Negate(x), *t = b.Reverse(x, {0});
    p = b.Abs(s);
    q = b.Negate(t);
    return b.Reverse(b.Multiply(p, b.Reverse(q, {0})), {0});
  });
  Lowered packed;
  LowerPacked(*module, {{p, q}}, packed);
  for (const RunStep& step : packed.program.steps) {
    if (step.kind != StepKind::kPack) continue;
    for (const RunStep& launch : step.blocks[0]) EXPECT_EQ(launch.places[0], launch.places[1]);
  }
}

TEST(Packs, ThatWaitForThemselvesAreTakenApart) {
  Instr *p = nullptr, *q = nullptr, *r = nullptr;
  auto module = Program([&](Builder& b, Instr* x) {
    p = b.Negate(x);
    q = b.Reverse(p, {0});
    r = b.Abs(q);
    return b.Multiply(r, x);
  });
  Lowered plain, packed;
  LowerPacked(*module, {}, plain);
  LowerPacked(*module, {{p, r}}, packed);
  EXPECT_TRUE(packed.Says("lower.cyclic-pack"));
  EXPECT_EQ(packed.Packs(), 0);
  EXPECT_EQ(packed.program.launches, plain.program.launches);
  EXPECT_EQ(ValuesOf(plain), ValuesOf(packed));
}

// Each of two packs is possible, but not both.
TEST(Packs, OneOfTwoThatWaitForEachOtherIsTakenApart) {
  Instr *p = nullptr, *q = nullptr, *r = nullptr, *s = nullptr;
  auto module = Program([&](Builder& b, Instr* x) {
    p = b.Negate(x);
    q = b.Reverse(p, {0});
    r = b.Abs(x);
    s = b.Reverse(r, {0});
    return b.Multiply(q, s);
  });
  Lowered plain, packed;
  LowerPacked(*module, {}, plain);
  LowerPacked(*module, {{p, s}, {q, r}}, packed);
  EXPECT_TRUE(packed.Says("lower.cyclic-pack"));
  EXPECT_EQ(packed.Packs(), 1);
  EXPECT_EQ(packed.program.launches, plain.program.launches - 1);
  EXPECT_EQ(ValuesOf(plain), ValuesOf(packed));
}

}  // namespace
}  // namespace tokamak
