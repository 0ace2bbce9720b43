#include <algorithm>

#include <gtest/gtest.h>

#include "cost/rates.h"
#include "cost/units.h"
#include "cost/work.h"
#include "gen/generator.h"
#include "gen/gpu/tensor_tiling.h"
#include "ir/builder.h"

namespace tokamak::gpu {
namespace {

// Calls body(region, dot) with the region of bf16(dot + residual).
template <typename Body>
void WithResidual(int64_t m, int64_t n, int64_t k, Body&& body) {
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
  body(region, *dot);
}

Work WorkOfRegion(const FusedRegion& region, const Schedule& schedule, const Machine& machine) {
  BuildOutcome outcome = BuildRegion(region, schedule, machine, "k");
  EXPECT_TRUE(outcome.built.has_value()) << outcome.why_not;
  return outcome.built ? WorkOf(outcome.built->kernel, outcome.built->grid, machine) : Work{};
}

// In 128 x 256 tiles that two warpgroups share, or in 128 x 128 tiles that they have in turn.
Work WorkOfResidual(const Schedule& schedule, int64_t m, int64_t n, int64_t k) {
  Work work;
  WithResidual(m, n, k, [&](const FusedRegion& region, const Instr&) {
    work = WorkOfRegion(region, schedule, GpuMachine());
  });
  return work;
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

// No kernel is predicted to multiply faster than the tensor cores, whatever part of the SMs has
// tiles in the last wave, and the schedule that is preferred without its kernel is among the best.
TEST(TensorWork, TakesNoLessThanTensorCores) {
  const Machine machine = GpuMachine();
  const Rates& rates = RatesOf(machine);
  struct Sizes {
    int64_t m, n, k;
  };
  for (auto [m, n, k] : {Sizes{8192, 768, 3072}, Sizes{768, 2304, 8192}, Sizes{1024, 768, 1024},
                         Sizes{8192, 3072, 768}, Sizes{4096, 4096, 512}, Sizes{1000, 1112, 2224}})
    WithResidual(m, n, k, [&](const FusedRegion& region, const Instr& dot) {
      DotDimensions dot_dims(dot);
      double least_us = static_cast<double>(m * n * k) *
                        rates.ns[static_cast<size_t>(Pipe::kTensor)] /
                        static_cast<double>(machine.cores) / kNsPerUs;
      double preferred = 0, best = 0;
      for (const Schedule& schedule :
           TensorSchedules(TensorDotOf(region, dot, dot_dims), machine)) {
        double us = EstimateCost(WorkOfRegion(region, schedule, machine), machine).compute;
        EXPECT_GE(us, least_us) << m << " x " << n << " x " << k << " in " << schedule.tile_rows
                                << " x " << schedule.tile_columns;
        if (preferred == 0) preferred = best = us;
        best = std::min(best, us);
      }
      EXPECT_LE(preferred, 1.15 * best) << m << " x " << n << " x " << k;
    });
}

}  // namespace
}  // namespace tokamak::gpu
