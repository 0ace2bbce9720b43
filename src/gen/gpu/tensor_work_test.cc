#include <gtest/gtest.h>

#include "cost/work.h"
#include "gen/generator.h"
#include "ir/builder.h"

namespace tokamak::gpu {
namespace {

// bf16(dot + residual), in 128 x 256 tiles that two warpgroups share, or in 128 x 128 tiles that
// they have in turn.
Work WorkOfResidual(const Schedule& schedule, int64_t m, int64_t n, int64_t k) {
  const Machine machine = GpuMachine();
  Module module("m");
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kBF16, {m, k}));
  Instr* w = b.Parameter(Shape::Array(ElementType::kBF16, {k, n}));
  Instr* residual = b.Parameter(Shape::Array(ElementType::kBF16, {m, n}));
  DotAttrs attrs;
  attrs.lhs_contracting = {1};
  attrs.rhs_contracting = {0};
  Instr* dot = b.Dot(x, w, attrs);
  Instr* sum = b.Add(dot, residual);
  EXPECT_TRUE(b.Finish(sum).ok());
  FusedRegion region{.computation = sum->parent(),
                     .instrs = {dot, sum},
                     .inputs = {x, w, residual},
                     .roots = {sum}};
  BuildOutcome outcome = BuildRegion(region, schedule, machine, "k");
  EXPECT_TRUE(outcome.built.has_value()) << outcome.why_not;
  return outcome.built ? WorkOf(outcome.built->kernel, outcome.built->grid, machine) : Work{};
}

Schedule Bulk(int64_t inner_rows, int64_t columns, int64_t stages) {
  Schedule schedule{.kind = GeneratorKind::kContract};
  schedule.tile_rows = 128;
  schedule.tile_columns = columns;
  schedule.tile_depth = 64;
  schedule.inner_rows = inner_rows;
  schedule.inner_columns = columns;
  schedule.threads = 384;
  schedule.stages = stages;
  schedule.group = 8;
  schedule.staging = Staging::kBulk;
  return schedule;
}

// A residual comes once, however few of its boxes have a buffer, and its copies are no turns.
TEST(TensorWork, ResidualsAreCopiedOnce) {
  constexpr int64_t kM = 4096, kN = 1024, kK = 256, kBytes = kM * kN * 2;
  for (int64_t stages : {3, 4}) {
    Work shared = WorkOfResidual(Bulk(64, 256, stages), kM, kN, kK);
    EXPECT_NEAR(shared.result_bytes, kBytes, 0.02 * kBytes) << stages;
    EXPECT_FALSE(shared.takes_turns);
  }
  Work in_turn = WorkOfResidual(Bulk(128, 128, 5), kM, kN, kK);
  EXPECT_NEAR(in_turn.result_bytes, kBytes, 0.05 * kBytes);
  EXPECT_TRUE(in_turn.takes_turns);
}

}  // namespace
}  // namespace tokamak::gpu
