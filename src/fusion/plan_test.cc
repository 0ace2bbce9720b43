#include "fusion/plan.h"

#include <gtest/gtest.h>

#include "cost/rates.h"
#include "ir/builder.h"

namespace tokamak {
namespace {

Computation* SumIn(Module& module) {
  Builder b(module, "sum");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {}));
  Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {}));
  return b.Finish(b.Add(x, y)).value();
}

// A matrix product whose rows are divided by their sums: one kernel, or several cheaper ones.
Computation* DividedRows(Module& module, int64_t rows, int64_t inner) {
  Computation* sum = SumIn(module);
  constexpr int64_t kColumns = 768;
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {rows, inner}));
  Instr* w = b.Parameter(Shape::Array(ElementType::kF32, {inner, kColumns}));
  DotAttrs attrs;
  attrs.lhs_contracting = {1};
  attrs.rhs_contracting = {0};
  Instr* dot = b.Exp(b.Dot(x, w, attrs));
  Instr* zero = b.Scalar(ElementType::kF32, 0);
  Instr* sums = b.Reduce({dot}, {zero}, {1}, sum);
  return b.Finish(b.Divide(dot, b.Broadcast(sums, {rows, kColumns}, {0}))).value();
}

TEST(Plan, SearchNeverCostsMoreThanItsStart) {
  Machine machine;
  Rates rates = DefaultRates(MachineKind::kCpu);
  rates.is_default = false;  // pretend that rates were measured
  machine.rates = &rates;
  for (int64_t rows : {64, 512, 4096})
    for (int64_t inner : {32, 64, 256, 1024}) {
      Module module("m");
      DecisionLog log;
      PlanningStats stats =
          PlanComputation(*DividedRows(module, rows, inner), machine, {}, log).stats;
      EXPECT_LE(stats.chosen_us, stats.baseline_us);
      EXPECT_LE(stats.chosen_us, stats.greedy_us);
      // The unfused plan is a starting plan only if it is clearly cheaper (plan.cc).
      EXPECT_LE(0.97 * stats.chosen_us, stats.unfused_us);
    }
}

}  // namespace
}  // namespace tokamak
