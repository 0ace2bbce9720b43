#include "random/bulk_schedules.h"

#include <algorithm>
#include <optional>

#include "gen/generator.h"
#include "random/random.h"

namespace tokamak::fuzz {
namespace {

constexpr int kAttempts = 12;  // random schedules until one fits (chosen: one in three fits)

// Changes together with the program, but not with the order or the names of its instructions.
uint64_t SeedOf(const FusedRegion& region) {
  uint64_t seed = 1;
  for (const Instr* input : region.inputs)
    for (int64_t dim : input->shape().dims()) seed = seed * 31 + static_cast<uint64_t>(dim);
  return seed;
}

// `given`: a schedule that fits the region; its depth is that of a panel.
Schedule DrawBulkSchedule(Random& random, Schedule given) {
  given.tile_rows = random.Pick({64, 64, 128, 192});
  given.tile_columns = random.Pick({32, 64, 64, 96, 128, 160});
  given.inner_rows = random.Percent(75) ? 64 : given.tile_rows;
  given.inner_columns = given.tile_columns;
  int64_t warpgroups = given.tile_rows / given.inner_rows;
  // Two that take turns, with a tile each.
  if (warpgroups == 1 && random.Percent(50)) warpgroups = 2;
  given.threads = (warpgroups + 1) * 128;
  given.stages = random.Between(2, 5);
  given.group = random.Pick({1, 2, 3, 8});
  return given;
}

std::optional<Schedule> BulkScheduleOf(const KernelSource& source, const Machine& machine) {
  if (source.kind != GeneratorKind::kContract || !source.schedule) return std::nullopt;
  std::vector<Schedule> all = Schedules(source.region, source.kind, machine);
  std::erase_if(all, [](const Schedule& one) { return one.staging != Staging::kBulk; });
  if (all.empty()) return std::nullopt;
  Random random(SeedOf(source.region));
  for (int i = 0; i < kAttempts; ++i) {
    Schedule drawn = DrawBulkSchedule(random, random.Pick(all));
    if (BuildRegion(source.region, drawn, machine, "drawn").built) return drawn;
  }
  return random.Pick(all);
}

}  // namespace

std::vector<ForcedSchedule> BulkSchedules(const Compilation& compilation) {
  std::vector<ForcedSchedule> forced;
  const LoweredProgram& program = compilation.program;
  for (size_t k = 0; k < program.sources.size(); ++k)
    if (auto schedule = BulkScheduleOf(program.sources[k], compilation.target.machine))
      forced.push_back({program.kernels[k].name, *schedule});
  return forced;
}

bool HasBulkSchedule(const Compilation& compilation) {
  return std::ranges::any_of(compilation.program.sources, [](const KernelSource& source) {
    return source.schedule && source.schedule->staging == Staging::kBulk;
  });
}

}  // namespace tokamak::fuzz
