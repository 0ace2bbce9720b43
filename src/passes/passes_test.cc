// Invariants that every pass must keep. Every row of passes.def is tested automatically.

#include "passes/passes.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "cost/machine.h"
#include "gen/library/libraries.h"
#include "interp/value.h"
#include "ir/builder.h"
#include "ir/clone.h"
#include "ir/compare.h"
#include "ir/infer.h"

namespace tokamak {
namespace {

const Shape kScalar = Shape::Scalar(ElementType::kS32);
const Shape kVector = Shape::Array(ElementType::kS32, {4});

Sharding Maximal(int64_t device) {
  Sharding sharding;
  sharding.kind = ShardingKind::kMaximal;
  sharding.tile_devices.list = {device};
  return sharding;
}

Computation* Twice(Module& module) {
  Builder b(module, "twice");
  Instr* x = b.Parameter(kVector, "a");
  Computation* done = b.Finish(b.Tuple({b.Add(x, x), b.Negate(b.Negate(x))})).value();
  done->is_public = false;
  return done;
}

// A module with work for each pass: a call, tuples, dead code, equal values, constants, algebra, a
// loop over a tuple, side effects, shardings.
std::unique_ptr<Module> Example() {
  auto module = std::make_unique<Module>("example");
  Computation* twice = Twice(*module);
  Builder cond(*module, "cond");
  Shape state = Shape::Tuple({kScalar, kVector});
  Instr* s = cond.Parameter(state, "s");
  Computation* until =
      cond.Finish(cond.Compare(cond.GetTupleElement(s, 0), cond.Scalar(ElementType::kS32, 3),
                               CompareDirection::kLt))
          .value();
  Builder step(*module, "body");
  s = step.Parameter(state, "s");
  Instr* i = step.Add(step.GetTupleElement(s, 0), step.Scalar(ElementType::kS32, 1));
  Instr* v = step.GetTupleElement(s, 1);
  Computation* body = step.Finish(step.Tuple({i, step.Add(v, v)})).value();
  until->is_public = body->is_public = false;

  Builder b(*module, "main");
  Instr* x = b.Parameter(kVector, "x");
  Instr* pair = b.Call(twice, {x});
  Instr* zero = b.Broadcast(b.Scalar(ElementType::kS32, 0), {4}, {});
  Instr* sum = b.Add(b.GetTupleElement(pair, 0), zero);
  b.Multiply(x, x);  // unused
  Instr* left = b.Subtract(sum, x);
  Instr* right = b.Subtract(sum, x);
  Instr* here = b.Add(left, b.GetTupleElement(pair, 1));
  Instr* there = b.Add(right, b.GetTupleElement(pair, 1));
  here->mutable_extras().sharding = Maximal(0);
  there->mutable_extras().sharding = Maximal(1);
  Instr* five = b.Add(b.Scalar(ElementType::kS32, 2), b.Scalar(ElementType::kS32, 3));
  Instr* loop = b.While(until, body, {b.Tuple({five, here})});
  Instr* root = b.Tuple({b.GetTupleElement(loop, 1), there, five});
  module->set_entry(b.Finish(root).value());
  for (const auto& computation : module->computations())
    for (Instr* instr : computation->Instrs())
      instr->set_origins(module->origins().Add(
          {.op_name = computation->name() + "/" + std::to_string(static_cast<int>(instr->id())),
           .op_type = "",
           .other = ""}));
  return module;
}

std::set<std::string> OriginsOf(const Module& module, const Instr& instr) {
  std::set<std::string> names;
  for (const Origin* origin : module.origins().Of(instr.origins())) names.insert(origin->op_name);
  return names;
}

// The origins of each element of the result.
std::vector<std::set<std::string>> OriginsOfResults(const Module& module) {
  std::vector<std::set<std::string>> all;
  for (const Instr* result : module.entry()->root()->operands())
    all.push_back(OriginsOf(module, *result));
  return all;
}

std::vector<int64_t> Shardings(const Module& module) {
  std::vector<int64_t> devices;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs())
      if (instr->extras().sharding)
        devices.push_back(instr->extras().sharding->tile_devices.list[0]);
  std::sort(devices.begin(), devices.end());
  return devices;
}

class EachPass : public testing::TestWithParam<size_t> {
 protected:
  std::vector<PassRun> Run(Module& module) {
    Step step{static_cast<Pass>(GetParam())};
    const Machine machine = (InfoOf(step.pass).targets & kGpu) != 0 ? GpuMachine() : Machine{};
    AssumedLibraries libraries(machine.is_gpu());
    std::vector<Value> added;
    PassContext context(log_, {}, {.added = &added}, TargetOf(machine, &libraries));
    PipelineOptions options;
    options.verify_each = true;
    auto runs = RunPasses(module, {&step, 1}, context, options);
    EXPECT_TRUE(runs.ok()) << runs.error().message;
    return runs.ok() ? std::move(runs).value() : std::vector<PassRun>();
  }
  DecisionLog log_;
};

TEST_P(EachPass, KeepsOriginsAndShardings) {
  auto module = Example();
  ASSERT_TRUE(VerifyModule(*module).ok());
  std::vector<std::set<std::string>> before = OriginsOfResults(*module);
  std::vector<int64_t> shardings = Shardings(*module);
  Run(*module);
  for (const auto& computation : module->computations())
    for (const Instr* instr : computation->Instrs())
      EXPECT_FALSE(OriginsOf(*module, *instr).empty()) << Describe(*instr);
  std::vector<std::set<std::string>> after = OriginsOfResults(*module);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(std::includes(after[i].begin(), after[i].end(), before[i].begin(), before[i].end()))
        << "result " << i;
  EXPECT_EQ(Shardings(*module), shardings);
  for (const Decision& decision : log_.all()) {
    EXPECT_FALSE(decision.subject.empty());
    EXPECT_NE(decision.rule.find('.'), std::string_view::npos) << decision.rule;
  }
}

TEST_P(EachPass, DoesTheSameTwiceAndNothingMoreTheSecondTime) {
  auto a = Example(), b = Example();
  Run(*a);
  Run(*b);
  EXPECT_EQ(FirstDifference(*a, *b), "");
  std::vector<PassRun> again = Run(*a);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].changed, Changed::kNo);
}

INSTANTIATE_TEST_SUITE_P(All, EachPass, testing::Range<size_t>(0, kPasses.size()),
                         [](const auto& row) {
                           std::string name(kPasses[row.param].name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Pipeline, TheDefaultOneSettles) {
  auto module = Example();
  DecisionLog log;
  PassContext context(log);
  PipelineOptions options;
  options.verify_each = true;
  auto runs = RunPasses(*module, kDefaultPipeline, context, options);
  ASSERT_TRUE(runs.ok()) << runs.error().message;
  EXPECT_EQ(module->FindComputation("twice"), nullptr);
  std::vector<std::unique_ptr<Module>> copies;
  copies.push_back(CloneModule(*module));
  ASSERT_TRUE(RunPasses(*module, kDefaultPipeline, context, options).ok());
  EXPECT_EQ(FirstDifference(*module, *copies[0]), "");
}

}  // namespace
}  // namespace tokamak
