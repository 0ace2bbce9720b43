// A while as one kernel of a GPU: a thread runs all rounds for one place. Neighbouring threads have
// neighbouring places, so that what is stacked is written, and what is read each round, side by
// side. Where few places compute products, some threads run one place together.

#include "gen/rounds.h"

#include <algorithm>

#include "gen/gpu/ahead.h"
#include "gen/gpu/gpu.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kRoundsThreads = 128;
// Threads that a multiprocessor has at least, where threads share places.
constexpr int64_t kRoundsFewThreads = 128;
constexpr int64_t kMostTogether = 8;
// Of team memory, which a kernel has without asking for more.
constexpr int64_t kMostBytes = 48 << 10;

// Threads that run a place together.
int64_t TogetherFor(const RoundsRegion& region, const Machine& machine) {
  std::vector<RoundsProduct> products = ProductsToShare(region);
  if (products.empty()) return 1;
  int64_t together = kMostTogether, bytes = 0;
  for (const RoundsProduct& product : products)
    bytes += (product.taps + product.sums) * BytesOf(ComputeType(product.dot->shape().type()));
  while (together > 1 && region.form.Places() * together > machine.cores * kRoundsFewThreads)
    together /= 2;
  while (together > 1 && bytes * (kRoundsThreads / together) > kMostBytes) together /= 2;
  return bytes * (kRoundsThreads / together) > kMostBytes ? 1 : together;
}

BuildOutcome BuildTogether(const RoundsRegion& region, int64_t together, const std::string& name) {
  KernelBuilder b(name, Dialect::kGpu);
  RoundsKernel kernel(b, region);
  int64_t count = region.form.Places(), places = kRoundsThreads / together;
  int64_t grid = CeilDiv(count, places);
  b.For("block", LoopRole::kGrid, b.Index(grid), [&](Scalar g) {
    b.For("t", LoopRole::kThread, b.Index(kRoundsThreads), [&](Scalar t) {
      Scalar member = t % b.Index(together), slot = t / b.Index(together);
      // All threads come to the barriers: the last place may be run several times.
      Scalar wanted = g * b.Index(places) + slot, linear = LesserOf(wanted, b.Index(count - 1));
      if (count % places != 0) kernel.WriteWhere(wanted < b.Index(count));
      kernel.ShareOut({.threads = together, .places = places, .member = member, .slot = slot});
      kernel.Run(Delinearized(b, linear, region.form.sizes),
                 (linear == b.Index(0)) & (member == b.Index(0)));
    });
  });
  return kernel.Finish(grid, /*exact=*/false);
}

BuildOutcome BuildAlone(const RoundsRegion& region, const Machine& machine,
                        const std::string& name) {
  KernelBuilder b(name, Dialect::kGpu);
  RoundsKernel kernel(b, region);
  int64_t count = region.form.Places();
  // Few places are spread over all multiprocessors, a warp each.
  int64_t threads = ThreadsFor(count, kRoundsThreads, kWarp, machine);
  int64_t grid = ForThreads(b, count, threads, [&](Scalar linear) {
    kernel.Run(Delinearized(b, linear, region.form.sizes), linear == b.Index(0));
  });
  return kernel.Finish(grid, /*exact=*/true);
}

}  // namespace

BuildOutcome BuildRounds(const RoundsRegion& region, const Machine& machine,
                         const std::string& name) {
  int64_t together = TogetherFor(region, machine);
  BuildOutcome outcome =
      together > 1 ? BuildTogether(region, together, name) : BuildAlone(region, machine, name);
  if (!outcome.built && !region.form.dots.empty()) {
    BuildOutcome spread = BuildSpreadRounds(region, machine, name);
    if (!spread.built) outcome.why_not += "; " + spread.why_not;
    if (spread.built) {
      outcome = std::move(spread);
      LoadAhead(outcome.built->kernel);
    }
  }
  if (outcome.built) FinishKernel(outcome.built->kernel);
  return outcome;
}

}  // namespace tokamak::gpu
