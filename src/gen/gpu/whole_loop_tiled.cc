// GPU kernels for fused loops with the layers of a small network in each iteration: tiles of points
// (gen/whole_loop_tiles.h). This file chooses the tile: its points, and its warps along the points
// and along the columns of the matrices. With few points, more warps share a tile.

#include <algorithm>

#include "cost/work.h"
#include "gen/gpu/gpu.h"
#include "gen/whole_loop_tiles.h"

namespace tokamak::gpu {
namespace {

// Warps and points of the tiles that are compared, from many points per block to few. A thread runs
// one point if there are as many threads as points, else several threads run it. Chosen: blocks of
// four warps, one for each scheduler of an SM; with few points, eight warps share the columns.
constexpr WholeLoopTileShape kTileShapes[] = {
    {.row_warps = 4, .column_warps = 1, .warp_points = 32},
    {.row_warps = 2, .column_warps = 2, .warp_points = 64},
    {.row_warps = 4, .column_warps = 1, .warp_points = 16},
    {.row_warps = 1, .column_warps = 4, .warp_points = 32},
    {.row_warps = 1, .column_warps = 4, .warp_points = 16},
    {.row_warps = 1, .column_warps = 8, .warp_points = 16},
};

BuildOutcome BuildTiles(const WholeLoopRegion& region, std::vector<WholeLoopTileDot> dots,
                        const WholeLoopTileShape& shape, const std::string& name) {
  SetColumns(dots, shape);
  if (SharedBytesOf(dots, shape) > kMaxSharedBytes)
    return {std::nullopt, "its matrices exceed shared memory"};
  KernelBuilder b(name, Dialect::kGpu);
  WholeLoopKernel kernel(b, region);
  WholeLoopTiles tiles(b, std::move(dots), shape);
  int64_t count = region.independence.Points(), points = shape.Points();
  int64_t grid = CeilDiv(count, points), row_threads = shape.column_warps * kWarpSize;
  b.For("block", LoopRole::kGrid, b.Index(grid), [&](Scalar g) {
    b.For("t", LoopRole::kThread, b.Index(shape.Threads()), [&](Scalar t) {
      Scalar in_row = t % b.Index(row_threads);
      Scalar slot = t / b.Index(row_threads) * b.Index(shape.warp_points) +
                    in_row % b.Index(shape.warp_points);
      Scalar member = in_row / b.Index(shape.warp_points);
      // All threads must reach the barriers: the last point may be run several times.
      Scalar wanted = g * b.Index(points) + slot, linear = LesserOf(wanted, b.Index(count - 1));
      if (count % points != 0) kernel.SetStorePredicate(wanted < b.Index(count));
      kernel.SetThreadGroup({.threads = shape.ThreadsPerPoint(),
                             .points = points,
                             .member = member,
                             .point_in_block = slot});
      kernel.SetTiles(tiles, t);
      kernel.Run(Delinearized(b, linear, region.independence.sizes),
                 (linear == b.Index(0)) & (member == b.Index(0)));
    });
  });
  return kernel.Finish(grid, /*writes_once=*/false);
}

}  // namespace

BuildOutcome BuildTiledWholeLoop(const WholeLoopRegion& region, const Machine& machine,
                                 const std::string& name) {
  WholeLoopTileDots found = TileDotsOf(region, machine);
  if (!found.why_not.empty()) return {std::nullopt, found.why_not};
  BuildOutcome best{std::nullopt, ""};
  double least = 0;
  for (const WholeLoopTileShape& shape : kTileShapes) {
    BuildOutcome outcome = BuildTiles(region, found.dots, shape, name);
    if (!outcome.built) {
      if (!best.built) best.why_not = outcome.why_not;
      continue;
    }
    double micros = WholeLoopMicros(*outcome.built, machine);
    if (best.built && micros >= least) continue;
    best = std::move(outcome);
    least = micros;
  }
  return best;
}

double WholeLoopMicros(const BuiltKernel& built, const Machine& machine) {
  return EstimateCost(WorkOf(built.kernel, built.grid, machine), machine).total();
}

}  // namespace tokamak::gpu
