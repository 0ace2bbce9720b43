// A while as one kernel of a GPU: a thread runs all rounds for one place. Neighbouring threads have
// neighbouring places, so that what is stacked is written, and what is read each round, side by
// side.

#include "gen/rounds.h"

#include "gen/gpu/gpu.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kThreads = 128;

}  // namespace

BuildOutcome BuildRounds(const RoundsRegion& region, const Machine& machine,
                         const std::string& name) {
  KernelBuilder b(name, Dialect::kGpu);
  RoundsKernel kernel(b, region);
  int64_t count = region.form.Places();
  // Few places are spread over all multiprocessors, a warp each.
  int64_t threads = ThreadsFor(count, kThreads, kWarp, machine);
  int64_t grid = CeilDiv(count, threads);
  b.For("block", LoopRole::kGrid, b.Index(grid), [&](Scalar g) {
    b.For("t", LoopRole::kThread, b.Index(threads), [&](Scalar t) {
      Scalar linear = g * b.Index(threads) + t;
      b.If(linear < b.Index(count),
           [&] { kernel.Run(Delinearized(b, linear, region.form.sizes), linear == b.Index(0)); });
    });
  });
  BuildOutcome outcome = kernel.Finish(grid, /*exact=*/true);
  if (outcome.built) FinishKernel(outcome.built->kernel);
  return outcome;
}

}  // namespace tokamak::gpu
