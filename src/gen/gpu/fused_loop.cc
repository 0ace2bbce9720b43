// GPU kernels for fused loops (gen/fused_loop.h): one thread runs all iterations of one point.
// Adjacent threads have adjacent points, so accesses of each iteration are coalesced. If there are
// few points with dots, a group of threads runs each point.

#include "gen/fused_loop.h"

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/gpu/prefetch_loads.h"

namespace tokamak::gpu {
namespace {

// Block size. Chosen.
constexpr int64_t kFusedLoopThreads = 128;
// Threads per SM up to which a point gets several threads, and the maximum per point. Chosen.
constexpr int64_t kFusedLoopMinThreadsPerSm = 128;
constexpr int64_t kMostTogether = 8;
// Bytes of static shared memory per block (CUDA limit).
constexpr int64_t kMostBytes = 48 << 10;

// Threads per point.
int64_t TogetherFor(const FusedLoopRegion& region, const Machine& machine) {
  std::vector<FusedLoopDot> products = DotsToDistribute(region);
  if (products.empty()) return 1;
  int64_t together = kMostTogether, bytes = 0;
  for (const FusedLoopDot& product : products)
    bytes += (product.taps + product.sums) * BytesOf(ComputeType(product.dot->shape().type()));
  while (together > 1 &&
         region.form.Points() * together > machine.cores * kFusedLoopMinThreadsPerSm)
    together /= 2;
  while (together > 1 && bytes * (kFusedLoopThreads / together) > kMostBytes) together /= 2;
  return bytes * (kFusedLoopThreads / together) > kMostBytes ? 1 : together;
}

BuildOutcome BuildTogether(const FusedLoopRegion& region, int64_t together,
                           const std::string& name) {
  KernelBuilder b(name, Dialect::kGpu);
  FusedLoopKernel kernel(b, region);
  int64_t count = region.form.Points(), points = kFusedLoopThreads / together;
  int64_t grid = CeilDiv(count, points);
  b.For("block", LoopRole::kGrid, b.Index(grid), [&](Scalar g) {
    b.For("t", LoopRole::kThread, b.Index(kFusedLoopThreads), [&](Scalar t) {
      Scalar member = t % b.Index(together), slot = t / b.Index(together);
      // All threads must reach the barriers: the last point may be run several times.
      Scalar wanted = g * b.Index(points) + slot, linear = LesserOf(wanted, b.Index(count - 1));
      if (count % points != 0) kernel.WriteWhere(wanted < b.Index(count));
      kernel.SetThreadGroup(
          {.threads = together, .points = points, .member = member, .slot = slot});
      kernel.Run(Delinearized(b, linear, region.form.sizes),
                 (linear == b.Index(0)) & (member == b.Index(0)));
    });
  });
  return kernel.Finish(grid, /*exact=*/false);
}

BuildOutcome BuildAlone(const FusedLoopRegion& region, const Machine& machine,
                        const std::string& name) {
  KernelBuilder b(name, Dialect::kGpu);
  FusedLoopKernel kernel(b, region);
  int64_t count = region.form.Points();
  // Few points are distributed over all SMs, in blocks of one warp.
  int64_t threads = ThreadsFor(count, kFusedLoopThreads, kWarp, machine);
  int64_t grid = ForThreads(b, count, threads, [&](Scalar linear) {
    kernel.Run(Delinearized(b, linear, region.form.sizes), linear == b.Index(0));
  });
  return kernel.Finish(grid, /*exact=*/true);
}

}  // namespace

BuildOutcome BuildFusedLoop(const FusedLoopRegion& region, const Machine& machine,
                            const std::string& name) {
  int64_t together = TogetherFor(region, machine);
  BuildOutcome outcome =
      together > 1 ? BuildTogether(region, together, name) : BuildAlone(region, machine, name);
  if (!outcome.built && !region.form.dots.empty()) {
    BuildOutcome thread_map = BuildDistributedFusedLoop(region, machine, name);
    if (!thread_map.built) outcome.why_not += "; " + thread_map.why_not;
    if (thread_map.built) {
      outcome = std::move(thread_map);
      PrefetchLoads(outcome.built->kernel);
    }
  }
  if (outcome.built) FinishKernel(outcome.built->kernel);
  return outcome;
}

}  // namespace tokamak::gpu
