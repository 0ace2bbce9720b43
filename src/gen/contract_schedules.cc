#include "gen/contract_schedules.h"

#include <algorithm>

namespace tokamak {
namespace {

// Bytes of the sums and panels of a task. Chosen: the preferred tilings need at most a quarter.
constexpr int64_t kMaxTaskBytes = 16 << 20;
// Vectors per iteration of an epilogue. Chosen: more would not fit in the 16 to 32 vector registers
// of CPUs.
constexpr int64_t kMaxUnroll = 8;

bool ReadsFromMemory(const FusedRegion& region, const Instr& dot) {
  return std::find(region.inputs.begin(), region.inputs.end(), dot.operand(1)) !=
         region.inputs.end();
}

// Columns of a tile are a multiple of this.
int64_t ColumnUnitOf(const Tiling& t) {
  return std::max(t.lanes, t.rhs_block);
}

TiledDimension CutAt(int64_t total, int64_t size) {
  return {.total = total, .size = size, .count = CeilDiv(total, size)};
}

// A contraction with its preferred tiling, and the changes of it that other schedules make.
class ContractScheduler {
 public:
  ContractScheduler(const FusedRegion& region, const ContractRegions& parts, const Machine& machine)
      : region_(region),
        parts_(parts),
        machine_(machine),
        dot_dims_(*parts.dot),
        whole_rows_(HasReduce(parts.rest)) {}

  // The preferred tiling. Returns why there is none.
  std::string Prefer(ContractTiling& tiling) const {
    ChainTiling& dots = tiling.dots;
    if (parts_.IsChain()) {
      std::optional<ChainTiling> chain = TilingOfChain(*parts_.dot, parts_.inner, machine_);
      if (!chain) return "storing its lhs is cheaper than recomputing it per task";
      dots = *chain;
    } else {
      if (dot_dims_.n % parts_.columns != 0) return "its columns have no such groups";
      dots.outer = TilingOf(*parts_.dot, dot_dims_, machine_, whole_rows_, parts_.columns);
    }
    SetBlocks(dots);
    const Tiling& t = dots.outer;
    tiling.schedule = {
        .tile_rows = t.rows.size,
        .tile_columns = t.columns.size,
        .tile_depth = t.depth.size,
        .inner_rows = t.multiply_rows,
        .inner_columns = t.multiply_columns,
        .vector = t.lanes,
        .unroll = machine_.HasShortVectors() ? InterleaveFactor(machine_) : 1,
        .tiles_per_task = dots.row_tiles_per_task,
        .staging = t.staging,
    };
    return "";
  }

  // Changes the preferred tiling to that of the schedule. Returns why it does not fit.
  std::string Change(ContractTiling& tiling, const Schedule& to) const {
    Tiling& t = tiling.dots.outer;
    if (std::string why = WhyNotSizes(tiling.dots, to); !why.empty()) return why;
    if (std::string why = WhyNotThreads(t, to); !why.empty()) return why;
    t.rows = CutAt(t.rows.total, to.tile_rows);
    t.columns = CutAt(t.columns.total, to.tile_columns);
    t.depth = CutAt(t.depth.total, to.tile_depth);
    tiling.dots.inner.rows = t.rows;
    tiling.dots.row_tiles_per_task = to.tiles_per_task;
    SetBlocks(tiling.dots);
    if (std::string why = WhyNotInner(t, to); !why.empty()) return why;
    t.multiply_rows = to.inner_rows;
    t.multiply_columns = to.inner_columns;
    t.staging = to.staging;
    if (to.tiles_per_task > 1 && !parts_.IsChain()) return "tiles_per_task: it is not a chain";
    if (t.rows.count % to.tiles_per_task != 0)
      return "tiles_per_task: it does not divide the " + std::to_string(t.rows.count) +
             " tiles along the rows";
    if (TaskBytes(tiling.dots) > kMaxTaskBytes)
      return "tile: a task needs more than " + std::to_string(kMaxTaskBytes) + " bytes";
    tiling.schedule = to;
    return "";
  }

  // Adds a schedule with these tile sizes and the blocks that are preferred for them.
  void AddSizes(std::vector<Schedule>& all, int64_t rows, int64_t columns, int64_t depth) const {
    Schedule next = all[0];
    ContractTiling tiling;
    if (!Prefer(tiling).empty()) return;
    Tiling& t = tiling.dots.outer;
    auto fitted = [](int64_t size, int64_t total, int64_t unit) {
      return std::min(RoundUp(std::max<int64_t>(size, 1), unit), RoundUp(total, unit));
    };
    next.tile_rows = fitted(rows, t.rows.total, RowUnitOf(tiling.dots));
    next.tile_columns = fitted(columns, t.columns.total, ColumnUnitOf(t));
    next.tile_depth = fitted(depth, t.depth.total, t.depth_unit);
    next.tiles_per_task = 1;
    t.rows = CutAt(t.rows.total, next.tile_rows);
    t.columns = CutAt(t.columns.total, next.tile_columns);
    t.depth = CutAt(t.depth.total, next.tile_depth);
    SetBlocks(tiling.dots);
    next.inner_rows = t.multiply_rows;
    next.inner_columns = t.multiply_columns;
    Add(all, next);
  }

  // Adds a schedule if it fits and is not in the list.
  void Add(std::vector<Schedule>& all, const Schedule& next) const {
    ContractTiling tiling;
    if (std::find(all.begin(), all.end(), next) != all.end()) return;
    if (Prefer(tiling).empty() && Change(tiling, next).empty()) all.push_back(next);
  }

 private:
  void SetBlocks(ChainTiling& dots) const {
    SetMultiplyBlock(dots.outer, dot_dims_, machine_, ReadsFromMemory(region_, *parts_.dot));
    if (parts_.inner == nullptr) return;
    SetMultiplyBlock(dots.inner, DotDimensions(*parts_.inner), machine_,
                     ReadsFromMemory(region_, *parts_.inner));
  }

  // Tiles of both dots of a chain have the same rows.
  static int64_t RowUnitOf(const ChainTiling& dots) {
    return std::max(dots.outer.row_unit, dots.inner.row_unit);
  }

  static std::string WhyNotSize(std::string_view along, int64_t size, int64_t total, int64_t unit) {
    std::string text = "tile: " + std::to_string(size) + " along the " + std::string(along);
    if (size % unit != 0) return text + " is not a multiple of " + std::to_string(unit);
    int64_t most = RoundUp(total, unit);
    return size <= most ? "" : text + " is more than " + std::to_string(most);
  }

  std::string WhyNotSizes(const ChainTiling& dots, const Schedule& to) const {
    const Tiling& t = dots.outer;
    std::string why = WhyNotSize("rows", to.tile_rows, t.rows.total, RowUnitOf(dots));
    if (why.empty()) why = WhyNotSize("columns", to.tile_columns, t.columns.total, ColumnUnitOf(t));
    if (why.empty()) why = WhyNotSize("depth", to.tile_depth, t.depth.total, t.depth_unit);
    if (!why.empty()) return why;
    if ((whole_rows_ || parts_.IsChain()) && to.tile_columns != t.columns.size)
      return "tile: it must cover whole rows of " + std::to_string(t.columns.size) + " columns";
    if (parts_.IsChain() && to.tile_depth != t.depth.size)
      return "tile: it must cover the whole depth of " + std::to_string(t.depth.size);
    return "";
  }

  std::string WhyNotThreads(const Tiling& t, const Schedule& to) const {
    if (to.staging == Staging::kRegisters)
      return "staging: operands are in memory or shared memory";
    if (to.vector != t.lanes)
      return "vector: the sums have " + std::to_string(t.lanes) + " lanes on this machine";
    bool power = to.unroll == FloorPowerOfTwo(to.unroll);
    return power && to.unroll <= kMaxUnroll
               ? ""
               : "unroll: not a power of two up to " + std::to_string(kMaxUnroll);
  }

  static std::string WhyNotInner(const Tiling& t, const Schedule& to) {
    bool rows = to.inner_rows == t.rows.size ||
                (to.inner_rows < t.rows.size && to.inner_rows % t.row_unit == 0);
    if (!rows) return "inner: its rows do not fit the tile";
    // Prepacked rhs has blocks of this width. Groups of the VNNI layout cross block boundaries.
    if (t.rhs_is_prepacked || VnniGroupSize(t.type) > 1)
      return to.inner_columns == t.multiply_columns
                 ? ""
                 : "inner: this rhs needs " + std::to_string(t.multiply_columns) + " columns";
    return to.inner_columns <= t.columns.size && to.inner_columns % t.lanes == 0
               ? ""
               : "inner: its columns do not fit the tile";
  }

  int64_t TaskBytes(const ChainTiling& dots) const {
    auto bytes_of = [](const Tiling& t) {
      return t.rows.size * t.TileColumns() * BytesOf(*AccumulatorScalarType(t.type)) +
             (t.rows.size + t.columns.size) * t.depth.size * BytesOf(t.type);
    };
    return bytes_of(dots.outer) + (parts_.inner == nullptr ? 0 : bytes_of(dots.inner));
  }

  const FusedRegion& region_;
  const ContractRegions& parts_;
  const Machine& machine_;
  DotDimensions dot_dims_;
  bool whole_rows_;  // a tile covers whole rows of results
};

}  // namespace

std::string ExpandSchedule(const FusedRegion& region, const ContractRegions& parts,
                           const Schedule* schedule, const Machine& machine,
                           ContractTiling& tiling) {
  ContractScheduler scheduler(region, parts, machine);
  if (std::string why = scheduler.Prefer(tiling); !why.empty()) return why;
  return schedule == nullptr || *schedule == tiling.schedule ? ""
                                                             : scheduler.Change(tiling, *schedule);
}

std::vector<Schedule> ContractSchedules(const FusedRegion& region, const Machine& machine) {
  ContractRegions parts;
  if (!FindContractRegions(region, machine, parts).empty()) return {};
  ContractScheduler scheduler(region, parts, machine);
  ContractTiling tiling;
  if (!scheduler.Prefer(tiling).empty()) return {};
  std::vector<Schedule> all = {tiling.schedule};
  const Schedule first = all[0];
  int64_t rows = first.tile_rows, columns = first.tile_columns, depth = first.tile_depth;
  scheduler.AddSizes(all, rows / 2, columns, depth);
  scheduler.AddSizes(all, rows, columns / 2, depth);
  scheduler.AddSizes(all, rows / 2, columns / 2, depth);
  scheduler.AddSizes(all, 2 * rows, columns, depth);
  scheduler.AddSizes(all, rows, 2 * columns, depth);
  scheduler.AddSizes(all, rows, columns, depth / 2);
  scheduler.AddSizes(all, rows, columns, 2 * depth);
  auto with = [&](auto&& change) {
    Schedule next = first;
    change(next);
    scheduler.Add(all, next);
  };
  with([](Schedule& s) { s.staging = Staging::kShared; });
  with([](Schedule& s) { s.inner_rows = s.tile_rows; });
  with([](Schedule& s) { s.inner_columns = s.tile_columns; });
  with([](Schedule& s) { s.inner_columns = s.vector; });
  with([](Schedule& s) { s.unroll *= 2; });
  with([](Schedule& s) { s.tiles_per_task = 1; });
  return all;
}

}  // namespace tokamak
