// The CPU rows generator: reductions over the minor dimensions and the elementwise code around
// them, row by row.
//
//   for each row (grid)
//     for each level of reductions:    softmax: max; then the sum of exp(x - max)
//       for the elements of the row:   in vectors; each lane has its own accumulators
//         accumulate
//       combine the lanes with a fixed reduction tree
//     store roots with one element per row
//     for the elements of the row: store roots with one element each
//
// A value used in two loops is computed in both, unless caching it while the row is processed is
// cheaper (row_cache.h): the row is in the cache, and each loop computes only what it needs. The
// order of every sum depends only on the row length and the machine's vector length.

#include "gen/roots.h"
#include "gen/rows_body.h"

namespace tokamak {

BuildOutcome BuildRows(const FusedRegion& region, const Machine& machine, const std::string& name) {
  KernelBuilder b(name);
  ElementEmitter emitter(b, region);
  RowsBody body(region, machine, b, emitter);
  if (std::string why = body.Analyze(); !why.empty()) return {std::nullopt, why};
  int64_t at_a_time = body.RowsPerIteration();
  int64_t grid_size = (body.row_count() + at_a_time - 1) / at_a_time;
  b.For("row", LoopRole::kGrid, b.Index(grid_size), [&](Scalar row) {
    if (at_a_time == 1) return body.Emit(row);
    Scalar first = LesserOf(row * b.Index(at_a_time), b.Index(body.row_count() - at_a_time));
    body.EmitRows(first, at_a_time);
  });
  return FinishRegionKernel(b, emitter, region, grid_size, false);
}

}  // namespace tokamak
