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

#include <algorithm>

#include "gen/roots.h"
#include "gen/rows_body.h"

namespace tokamak {

namespace {

// Rows per iteration, and vectors per iteration of the loop over a row, that a schedule may have.
// Chosen: the accumulators of more would not fit in registers.
constexpr int64_t kMaxRowsAtATime = 8, kMaxRowUnroll = 8;

// The schedule that the body prefers. A tile is some rows, and of each the elements of one
// iteration.
Schedule PreferredSchedule(const RowsBody& body, const Machine& machine) {
  int64_t lanes = machine.Lanes(32);
  return {.kind = GeneratorKind::kRows,
          .tile_rows = body.RowsPerIteration(),
          .tile_depth = body.unroll() * lanes,
          .vector = lanes,
          .unroll = body.unroll(),
          .staging = body.CachesValues() ? Staging::kRegisters : Staging::kMemory};
}

// Why the schedule does not fit; empty if it does. `body` has the staging of the schedule.
std::string WhyNotRowSchedule(const RowsBody& body, const Schedule& to, const Machine& machine) {
  auto is_power = [](int64_t x) { return FloorPowerOfTwo(x) == x; };
  int64_t lanes = machine.Lanes(32);
  if (to.vector != lanes) return "vector: this machine has " + std::to_string(lanes) + " lanes";
  if (!is_power(to.unroll) || to.unroll > kMaxRowUnroll)
    return "unroll: not a power of two up to " + std::to_string(kMaxRowUnroll);
  if (to.tile_depth != to.unroll * to.vector)
    return "tile: its depth is unroll * vector, " + std::to_string(to.unroll * to.vector);
  if (to.staging == Staging::kShared) return "staging: rows are cached in registers";
  if (to.staging == Staging::kRegisters && !body.CachesValues())
    return "staging: no value of a row is worth caching";
  if (to.tile_rows == 1) return "";
  if (!body.CanReduceRowsTogether())
    return "tile: one row, unless the region only reduces rows and caches nothing";
  int64_t most = std::min(kMaxRowsAtATime, body.row_count());
  return to.tile_rows <= most ? "" : "tile: at most " + std::to_string(most) + " rows";
}

}  // namespace

BuildOutcome BuildRows(const FusedRegion& region, const Schedule* schedule, const Machine& machine,
                       const std::string& name) {
  KernelBuilder b(name);
  ElementEmitter emitter(b, region);
  RowsBody body(region, machine, b, emitter);
  bool caches = schedule == nullptr || schedule->staging != Staging::kMemory;
  if (std::string why = body.Analyze(caches); !why.empty()) return {std::nullopt, why};
  Schedule chosen = schedule == nullptr ? PreferredSchedule(body, machine) : *schedule;
  if (schedule != nullptr)
    if (std::string why = WhyNotRowSchedule(body, chosen, machine); !why.empty())
      return {std::nullopt, why};
  body.set_unroll(chosen.unroll);
  int64_t at_a_time = chosen.tile_rows;
  int64_t grid_size = (body.row_count() + at_a_time - 1) / at_a_time;
  b.For("row", LoopRole::kGrid, b.Index(grid_size), [&](Scalar row) {
    if (at_a_time == 1) return body.Emit(row);
    Scalar first = LesserOf(row * b.Index(at_a_time), b.Index(body.row_count() - at_a_time));
    body.EmitRows(first, at_a_time);
  });
  BuildOutcome outcome = FinishRegionKernel(b, emitter, region, grid_size, false);
  if (outcome.built) outcome.built->schedule = chosen;
  return outcome;
}

std::vector<Schedule> RowsSchedules(const FusedRegion& region, const Machine& machine) {
  KernelBuilder b("probe");
  ElementEmitter emitter(b, region);
  RowsBody cached(region, machine, b, emitter), plain(region, machine, b, emitter);
  if (!cached.Analyze(true).empty() || !plain.Analyze(false).empty()) return {};
  const Schedule first = PreferredSchedule(cached, machine);
  auto with = [&](Staging staging, int64_t rows, int64_t unroll) {
    Schedule next = first;
    next.staging = staging;
    next.tile_rows = rows;
    next.unroll = unroll;
    next.tile_depth = unroll * next.vector;
    return next;
  };
  std::vector<Schedule> near = {
      with(first.staging, 2 * first.tile_rows, first.unroll),
      with(first.staging, std::max<int64_t>(first.tile_rows / 2, 1), first.unroll),
      with(first.staging, first.tile_rows, 2 * first.unroll),
      with(first.staging, first.tile_rows, std::max<int64_t>(first.unroll / 2, 1)),
      with(Staging::kMemory, first.tile_rows, first.unroll)};
  return FittingSchedules(first, near, [&](const Schedule& schedule) {
    const RowsBody& body = schedule.staging == Staging::kMemory ? plain : cached;
    return WhyNotRowSchedule(body, schedule, machine).empty();
  });
}

}  // namespace tokamak
