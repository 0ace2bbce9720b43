// The rows generator: reductions over the last dimensions, with what is computed from them, a row
// at a time.
//
//   for each row (the grid)
//     for each level of reductions:    softmax: max; then the sum of exp(x - max)
//       for the elements of the row:   vectors; each lane has its own sums
//         fold
//       fold the lanes in a fixed tree
//     write what has one element a row
//     for the elements of the row: write what has one element for each
//
// A value that two loops need is computed in both, unless it is worth keeping until the row is done
// (row_stash.h): the row is in the cache, and only what a loop needs is computed in it. The order
// of every sum follows from the length of the row and the machine's vectors alone.

#include "gen/roots.h"
#include "gen/rows_body.h"

namespace tokamak {

BuildOutcome BuildRows(const Region& region, const Machine& machine, const std::string& name) {
  KernelBuilder b(name);
  ElementEmitter emitter(b, region);
  RowsBody body(region, machine, b, emitter);
  if (std::string why = body.Find(); !why.empty()) return {std::nullopt, why};
  int64_t at_a_time = body.RowsAtATime();
  int64_t teams = (body.rows() + at_a_time - 1) / at_a_time;
  b.For("row", LoopRole::kGrid, b.Index(teams), [&](Scalar row) {
    if (at_a_time == 1) return body.Emit(row);
    Scalar first = LesserOf(row * b.Index(at_a_time), b.Index(body.rows() - at_a_time));
    body.EmitSeveral(first, at_a_time);
  });
  return FinishLoop(b, emitter, region, teams, false);
}

}  // namespace tokamak
