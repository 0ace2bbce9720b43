#include "gen/gpu/contract_tiling.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/dot_operand.h"
#include "gen/gpu/gpu.h"

namespace tokamak::gpu {
namespace {

// Maximum side of a preferred tile. Chosen: 128 x 128 sums are 64 registers of each of 8 warps'
// threads; f64 sums take two registers. Minimum side. Chosen: the rows of a fragment (m16n8).
constexpr int64_t kMaxTileSide = 128, kMaxTileSide64 = 64, kMinTileSide = 16;
// Results. Tiles are halved until there is one per SM, but not below this. Chosen: smaller tiles
// load more panel elements per multiplication than idle SMs cost.
constexpr int64_t kMinTileResults = 32 * 32;
// Bytes of a panel along K. Chosen: two memory sectors, and enough multiplications between two
// barriers; double buffers of deeper panels leave shared memory for fewer blocks per SM.
constexpr int64_t kDepthBytes = 64;
// Warps per block: maximum, and default. Chosen: the largest tile needs 8 for its sums; with 4,
// several blocks fit on an SM.
constexpr int64_t kMaxWarps = 8, kContractWarps = 4;
// Narrow tilings: rows and columns of a tile, and block size. Chosen: few results per block leave
// blocks for all SMs, and its threads divide K between them.
constexpr int64_t kNarrowRows = 32, kNarrowColumns = 8, kNarrowThreads = kBlockThreads;
// K per panel. Chosen: panels of 40 rows and columns (80 KiB of f32) fit an SM twice. Minimum K.
// Chosen: with less, the slices of K are too short to repay adding them up.
constexpr int64_t kNarrowDepth = 512, kMinDepth = 128;
// Factor by which SMs must outnumber tiles for narrow tilings. Chosen: otherwise at least half of
// the SMs have work, and splitting K would add traffic.
constexpr int64_t kIdleFactor = 2;
// Minimum of tile_rows over kThreadTileSize: threads along the rows of a narrow tile. Chosen: with
// one, all threads of a slice would share each row of lhs.
constexpr int64_t kMinNarrowThreads = 2;
// Panels in shared memory at once: the next one is loaded while one is multiplied (structure of the
// generated loop).
constexpr int64_t kDoubleBuffer = 2;
// Narrow tilings: side of the square of sums that a thread computes for its slice. Chosen: 16 sums
// per thread, each kept as 4 partial sums along K, take 64 registers.
constexpr int64_t kThreadTileSize = 4;
// 32-bit registers of a thread that hold sums. Hardware: a thread has 255 (CUDA programming guide,
// compute capability 9.0); chosen: half of them are left for operands and indices.
constexpr int64_t kMaxSumRegisters = 128;
// Row tiles of a group. Chosen: while they run, a panel of rhs is read once for all of them.
constexpr int64_t kGroupTiles = 4;

constexpr int64_t kFragmentRows = MatrixMultiply::kFragmentRows,
                  kFragmentColumns = MatrixMultiply::kFragmentColumns;

// Elements of the widest access of a thread.
int64_t AccessOf(ScalarType type, const Machine& machine) {
  return std::max<int64_t>(machine.Lanes(8 * BytesOf(type)), 1);
}

bool IsPowerOfTwo(int64_t x) {
  return CeilPowerOfTwo(x) == x;
}

int64_t TilesOf(const Schedule& s, const DotDimensions& dot_dims) {
  return dot_dims.batch * CeilDiv(dot_dims.m, s.tile_rows) * CeilDiv(dot_dims.n, s.tile_columns);
}

// The schedule that splits K for tiles of these rows.
Schedule NarrowSchedule(const DotDimensions& dot_dims) {
  Schedule s;
  s.tile_rows =
      std::clamp(CeilPowerOfTwo(dot_dims.m), kMinNarrowThreads * kThreadTileSize, kNarrowRows);
  s.tile_columns = kNarrowColumns;
  s.tile_depth = std::min(CeilPowerOfTwo(dot_dims.k), kNarrowDepth);
  s.inner_rows = s.inner_columns = kThreadTileSize;
  s.vector = kThreadTileSize;
  int64_t of_slice = s.tile_rows * s.tile_columns / (kThreadTileSize * kThreadTileSize);
  s.split_k = std::min(kNarrowThreads / of_slice, s.tile_depth / s.vector);
  s.threads = s.split_k * of_slice;
  return s;
}

// Sets warps, threads and stages for the tile of a schedule.
void SetWarps(Schedule& s, int64_t warps, const DotDimensions& dot_dims) {
  s.inner_rows = s.tile_rows;
  s.inner_columns = s.tile_columns;
  auto count = [&] { return s.tile_rows / s.inner_rows * (s.tile_columns / s.inner_columns); };
  while (count() < warps) {
    if (s.inner_rows >= s.inner_columns && s.inner_rows > kFragmentRows) {
      s.inner_rows /= 2;
    } else if (s.inner_columns > kFragmentColumns) {
      s.inner_columns /= 2;
    } else {
      break;
    }
  }
  s.threads = count() * kWarpSize;
  s.stages = dot_dims.k > s.tile_depth ? kDoubleBuffer : 1;
}

// Adds a schedule if it fits and is not in the list.
void AddSchedule(std::vector<Schedule>& all, const Schedule& next, const Instr& dot,
                 const DotDimensions& dot_dims, const Machine& machine) {
  GpuDotTiling tiling;
  if (std::find(all.begin(), all.end(), next) == all.end() &&
      ExpandDotSchedule(dot, dot_dims, next, machine, tiling).empty())
    all.push_back(next);
}

std::string WhyNotWide(const GpuDotTiling& t) {
  if (t.rows % t.inner_rows != 0 || t.columns % t.inner_columns != 0)
    return "inner: the tile is not a multiple of the part of a warp";
  if (t.inner_rows % kFragmentRows != 0 || t.inner_columns % kFragmentColumns != 0)
    return "inner: not a multiple of the 16 x 8 results of a fragment";
  if (t.panel_depth % MatrixMultiply::DepthUnit(t.type) != 0)
    return "tile: its depth is not a multiple of " +
           std::to_string(MatrixMultiply::DepthUnit(t.type));
  if (t.threads != t.ThreadsPerSlice() * kWarpSize)
    return "threads: the warps of the tile have " + std::to_string(t.ThreadsPerSlice() * kWarpSize);
  if (t.stages > (t.panels > 1 ? kDoubleBuffer : 1))
    return "stages: at most 2, and 1 for a single panel along K";
  int64_t sums = t.inner_rows * t.inner_columns / kWarpSize;
  int64_t sum_bytes = BytesOf(*AccumulatorScalarType(t.type));
  if (sums * sum_bytes > kMaxSumRegisters * kRegisterBytes)
    return "inner: a thread's sums take more than " + std::to_string(kMaxSumRegisters) +
           " registers";
  return "";
}

std::string WhyNotNarrow(const GpuDotTiling& t) {
  if (t.type != ScalarType::kF32) return "split_k: only f32 factors";
  if (!IsPowerOfTwo(t.rows) || !IsPowerOfTwo(t.columns) || !IsPowerOfTwo(t.panel_depth))
    return "tile: with split_k, its sizes are powers of two";
  if (t.rows % t.inner_rows != 0 || t.columns % t.inner_columns != 0)
    return "inner: the tile is not a multiple of the part of a thread";
  if (t.inner_rows * t.inner_columns * t.vector > kMaxSumRegisters)
    return "inner: a thread's sums take more than " + std::to_string(kMaxSumRegisters) +
           " registers";
  if (t.panel_depth % (t.k_slices * t.vector) != 0)
    return "split_k: the slices of a panel are not a multiple of a vector";
  if (t.threads != t.ThreadsPerSlice() * t.k_slices)
    return "threads: the slices have " + std::to_string(t.ThreadsPerSlice() * t.k_slices);
  return t.stages == 1 ? "" : "stages: with split_k, panels have one";
}

// Bytes of shared memory of a block.
int64_t SharedBytesOf(const GpuDotTiling& t, const Instr& dot, const DotDimensions& dot_dims) {
  int64_t bytes = t.rows * ResultsPitchOf(t) * BytesOf(*AccumulatorScalarType(t.type));
  if (t.is_split_k())
    bytes += t.k_slices * t.rows * t.columns * BytesOf(*AccumulatorScalarType(t.type));
  for (size_t operand : {size_t{0}, size_t{1}}) {
    bool k_is_minor = DotOperand(dot, dot_dims, operand).k_is_minor;
    PanelLayout panel = PanelLayoutOf(t, dot_dims, operand == 0, k_is_minor);
    bytes += t.stages * BytesOf(t.type) * panel.size;
  }
  return bytes;
}

}  // namespace

PanelLayout PanelLayoutOf(const GpuDotTiling& t, const DotDimensions& dot_dims, bool is_lhs,
                          bool k_is_minor) {
  PanelLayout panel;
  panel.along = is_lhs ? t.rows : t.columns;
  panel.total = is_lhs ? dot_dims.m : dot_dims.n;
  panel.inner = k_is_minor ? t.panel_depth : panel.along;
  panel.outer = k_is_minor ? panel.along : t.panel_depth;
  // Padded such that the lines that a warp reads are in different banks.
  panel.pitch = panel.inner + (k_is_minor ? t.access : std::max(t.access, kLinePadding));
  panel.size = panel.outer * panel.pitch;
  // A vector is either completely in bounds or completely out of bounds.
  panel.lanes = std::min(t.vector, FloorPowerOfTwo(panel.inner));
  int64_t all = k_is_minor ? dot_dims.k : panel.total;
  while (all % panel.lanes != 0) panel.lanes /= 2;
  if (!t.is_split_k()) return panel;
  panel.pitch = t.panel_depth + t.access;
  panel.size = panel.along * panel.pitch;
  return panel;
}

int64_t ResultsPitchOf(const GpuDotTiling& t) {
  return t.columns + kLinePadding;
}

Schedule PreferredDotSchedule(const Instr& dot, const DotDimensions& dot_dims,
                              const Machine& machine) {
  Schedule s;
  ScalarType type = FactorTypeOf(dot, machine);
  int64_t most = type == ScalarType::kF64 ? kMaxTileSide64 : kMaxTileSide;
  s.tile_rows = std::clamp(CeilPowerOfTwo(dot_dims.m), kMinTileSide, most);
  s.tile_columns = std::clamp(CeilPowerOfTwo(dot_dims.n), kMinTileSide, most);
  while (TilesOf(s, dot_dims) < machine.cores && s.tile_rows * s.tile_columns > kMinTileResults)
    (s.tile_rows > s.tile_columns ? s.tile_rows : s.tile_columns) /= 2;
  // If there are so few tiles that most SMs would be idle, K is split.
  if (type == ScalarType::kF32 && dot_dims.k >= kMinDepth &&
      kIdleFactor * TilesOf(s, dot_dims) <= machine.cores)
    return NarrowSchedule(dot_dims);
  int64_t unit = MatrixMultiply::DepthUnit(type);
  s.tile_depth =
      std::min(std::max(kDepthBytes / BytesOf(type), unit), CeilDiv(dot_dims.k, unit) * unit);
  s.vector = AccessOf(type, machine);
  bool largest = s.tile_rows * s.tile_columns == kMaxTileSide * kMaxTileSide;
  SetWarps(s, largest ? kMaxWarps : kContractWarps, dot_dims);
  return s;
}

std::string ExpandDotSchedule(const Instr& dot, const DotDimensions& dot_dims,
                              const Schedule& schedule, const Machine& machine,
                              GpuDotTiling& tiling) {
  GpuDotTiling t{.type = FactorTypeOf(dot, machine),
                 .rows = schedule.tile_rows,
                 .columns = schedule.tile_columns,
                 .inner_rows = schedule.inner_rows,
                 .inner_columns = schedule.inner_columns,
                 .panel_depth = schedule.tile_depth,
                 .panels = CeilDiv(dot_dims.k, schedule.tile_depth),
                 .row_tiles = CeilDiv(dot_dims.m, schedule.tile_rows),
                 .column_tiles = CeilDiv(dot_dims.n, schedule.tile_columns),
                 .group = schedule.group,
                 .k_slices = schedule.split_k,
                 .threads = schedule.threads,
                 .stages = schedule.stages,
                 .vector = schedule.vector};
  t.tf32 = !t.is_split_k() && MultipliesTf32(dot, machine);
  t.access = AccessOf(t.type, machine);
  if (schedule.staging != Staging::kShared) return "staging: operands are in shared memory";
  if (t.row_tiles % t.group != 0)
    return "group: it does not divide the " + std::to_string(t.row_tiles) + " tiles along the rows";
  if (!IsPowerOfTwo(t.vector) || t.vector > t.access)
    return "vector: not a power of two up to " + std::to_string(t.access);
  if (t.threads > kMaxThreadsPerBlock)
    return "threads: at most " + std::to_string(kMaxThreadsPerBlock);
  if (std::string why = t.is_split_k() ? WhyNotNarrow(t) : WhyNotWide(t); !why.empty()) return why;
  if (int64_t bytes = SharedBytesOf(t, dot, dot_dims); bytes > kMaxSharedBytes)
    return "tile: it takes " + std::to_string(bytes) + " bytes of shared memory, and a block has " +
           std::to_string(kMaxSharedBytes);
  tiling = t;
  return "";
}

std::vector<Schedule> DotSchedules(const Instr& dot, const DotDimensions& dot_dims,
                                   const Machine& machine) {
  const Schedule first = PreferredDotSchedule(dot, dot_dims, machine);
  std::vector<Schedule> all = {first};
  auto add = [&](const Schedule& next) { AddSchedule(all, next, dot, dot_dims, machine); };
  Schedule wide = first;
  if (first.split_k > 1) {
    Schedule slices = first;
    slices.split_k /= 2;
    slices.threads /= 2;
    add(slices);
    wide = Schedule{};
    wide.tile_rows = wide.tile_columns = kMinTileSide;
    wide.tile_depth = kDepthBytes / BytesOf(ScalarType::kF32);
    wide.vector = AccessOf(ScalarType::kF32, machine);
    SetWarps(wide, kContractWarps, dot_dims);
    add(wide);
  } else {
    add(NarrowSchedule(dot_dims));
  }
  auto sized = [&](int64_t rows, int64_t columns, int64_t depth) {
    // A larger tile would be mostly padding.
    if (rows > std::max(CeilPowerOfTwo(dot_dims.m), kMinTileSide) ||
        columns > std::max(CeilPowerOfTwo(dot_dims.n), kMinTileSide))
      return;
    Schedule next = wide;
    next.tile_rows = rows;
    next.tile_columns = columns;
    next.tile_depth = depth;
    SetWarps(next, kContractWarps, dot_dims);
    add(next);
    SetWarps(next, kMaxWarps, dot_dims);
    add(next);
  };
  int64_t rows = wide.tile_rows, columns = wide.tile_columns, depth = wide.tile_depth;
  sized(rows, columns, depth);
  sized(rows / 2, columns, depth);
  sized(rows, columns / 2, depth);
  sized(2 * rows, columns, depth);
  sized(rows, 2 * columns, depth);
  sized(2 * rows, 2 * columns, depth);
  sized(rows, columns, 2 * depth);
  Schedule next = wide;
  next.stages = 1;
  add(next);
  next = wide;
  next.vector = 1;
  add(next);
  next = wide;
  next.group = kGroupTiles;
  if (dot_dims.n > wide.tile_columns) add(next);
  return all;
}

}  // namespace tokamak::gpu
