// GPU kernels for fused loops (gen/whole_loop.h): one thread runs all iterations of one point.
// Adjacent threads have adjacent points, so accesses of each iteration are coalesced. If there are
// few points with dots, a group of threads runs each point.

#include "gen/whole_loop.h"

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/gpu/prefetch_loads.h"

namespace tokamak::gpu {
namespace {

// Block size. Chosen: one warp for each of an SM's four schedulers, and a thread may have all of
// its 255 registers.
constexpr int64_t kWholeLoopThreads = 128;
// Threads per SM up to which a point gets several threads. Chosen: with more, all schedulers have a
// warp, and splitting points adds shuffles. Maximum per point. Chosen: further threads would save
// less of a dot than their reduction costs.
constexpr int64_t kWholeLoopMinThreadsPerSm = 128;
constexpr int64_t kMaxThreadsPerPoint = 8;

// Threads per point.
int64_t ThreadsPerPoint(const WholeLoopRegion& region, const Machine& machine) {
  std::vector<WholeLoopMatVec> products = DotsToDistribute(region);
  if (products.empty()) return 1;
  int64_t threads_per_point = kMaxThreadsPerPoint, bytes = 0;
  for (const WholeLoopMatVec& product : products)
    bytes += (product.terms + product.results) * BytesOf(ComputeType(product.dot->shape().type()));
  while (threads_per_point > 1 && region.independence.Points() * threads_per_point >
                                      machine.cores * kWholeLoopMinThreadsPerSm)
    threads_per_point /= 2;
  while (threads_per_point > 1 &&
         bytes * (kWholeLoopThreads / threads_per_point) > kStaticSharedBytes)
    threads_per_point /= 2;
  return bytes * (kWholeLoopThreads / threads_per_point) > kStaticSharedBytes ? 1
                                                                              : threads_per_point;
}

BuildOutcome BuildGroupPerPoint(const WholeLoopRegion& region, int64_t threads_per_point,
                                const std::string& name) {
  KernelBuilder b(name, Dialect::kGpu);
  WholeLoopKernel kernel(b, region);
  int64_t count = region.independence.Points(), points = kWholeLoopThreads / threads_per_point;
  int64_t grid = CeilDiv(count, points);
  b.For("block", LoopRole::kGrid, b.Index(grid), [&](Scalar g) {
    b.For("t", LoopRole::kThread, b.Index(kWholeLoopThreads), [&](Scalar t) {
      Scalar member = t % b.Index(threads_per_point), slot = t / b.Index(threads_per_point);
      // All threads must reach the barriers: the last point may be run several times.
      Scalar wanted = g * b.Index(points) + slot, linear = LesserOf(wanted, b.Index(count - 1));
      if (count % points != 0) kernel.SetStorePredicate(wanted < b.Index(count));
      kernel.SetThreadGroup({.threads = threads_per_point,
                             .points = points,
                             .member = member,
                             .point_in_block = slot});
      kernel.Run(Delinearized(b, linear, region.independence.sizes),
                 (linear == b.Index(0)) & (member == b.Index(0)));
    });
  });
  return kernel.Finish(grid, /*writes_once=*/false);
}

BuildOutcome BuildThreadPerPoint(const WholeLoopRegion& region, const Machine& machine,
                                 const std::string& name) {
  KernelBuilder b(name, Dialect::kGpu);
  WholeLoopKernel kernel(b, region);
  int64_t count = region.independence.Points();
  // Few points are distributed over all SMs, in blocks of one warp.
  int64_t threads = BlockSizeFor(count, kWholeLoopThreads, kWarpSize, machine);
  int64_t grid = ForThreads(b, count, threads, [&](Scalar linear) {
    kernel.Run(Delinearized(b, linear, region.independence.sizes), linear == b.Index(0));
  });
  return kernel.Finish(grid, /*writes_once=*/true);
}

BuildOutcome BuildDistributed(const WholeLoopRegion& region, const Machine& machine,
                              const std::string& name) {
  BuildOutcome outcome = BuildDistributedWholeLoop(region, machine, name);
  if (outcome.built) PrefetchLoads(outcome.built->kernel);
  return outcome;
}

// Replaces a kernel by another one of the same loop, if that is predicted to be faster.
void TakeCheaper(BuildOutcome other, const Machine& machine, BuildOutcome& outcome) {
  if (!other.built) {
    if (!outcome.built) outcome.why_not += "; " + other.why_not;
    return;
  }
  if (!outcome.built ||
      WholeLoopMicros(*other.built, machine) < WholeLoopMicros(*outcome.built, machine))
    outcome = std::move(other);
}

}  // namespace

BuildOutcome BuildWholeLoop(const WholeLoopRegion& region, const Machine& machine,
                            const std::string& name) {
  int64_t threads_per_point = ThreadsPerPoint(region, machine);
  BuildOutcome outcome = threads_per_point > 1 ? BuildGroupPerPoint(region, threads_per_point, name)
                                               : BuildThreadPerPoint(region, machine, name);
  if (region.independence.dots.empty()) {
    // Each point may recompute all dots, because their operands are the same for all points.
    WholeLoopRegion one = region;
    one.independence = FindOnePoint(region.loop);
    if (one.independence.why_not.empty())
      TakeCheaper(BuildDistributed(one, machine, name), machine, outcome);
  }
  if (!region.independence.dots.empty()) {
    TakeCheaper(BuildDistributed(region, machine, name), machine, outcome);
    TakeCheaper(BuildTiledWholeLoop(region, machine, name), machine, outcome);
  }
  if (outcome.built) FinalizeGpuKernel(outcome.built->kernel);
  return outcome;
}

}  // namespace tokamak::gpu
