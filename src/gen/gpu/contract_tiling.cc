#include "gen/gpu/contract_tiling.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/gpu/gpu.h"

namespace tokamak::gpu {
namespace {

// Results of a tile in each direction, at most and at least; of f64, whose sums take two registers.
constexpr int64_t kMostSide = 128, kMostSide64 = 64, kLeastSide = 16;
// Tiles are halved until there is one for each multiprocessor, but not to fewer results.
constexpr int64_t kLeastTile = 32 * 32;
// Bytes of a block's depth: two barriers are worth the multiplications between them.
constexpr int64_t kDepthBytes = 64;
constexpr int64_t kMostWarps = 8, kContractWarps = 4;
// Of narrow ones: rows and columns of a tile, threads, a block's depth; what is not deep is not
// worth it.
constexpr int64_t kNarrowRows = 32, kNarrowColumns = 8, kNarrowThreads = 256;
constexpr int64_t kNarrowDepth = 512, kLeastDepth = 128, kLanes = 4;

// Whether so few tiles leave most multiprocessors without work.
bool IsNarrow(const TeamTiling& t, const DotSides& sides, int64_t tiles, const Machine& machine) {
  return t.type == ScalarType::kF32 && sides.k >= kLeastDepth && 2 * tiles <= machine.cores;
}

}  // namespace

TeamTiling TeamTilingOf(const Instr& dot, const DotSides& sides, const Machine& machine) {
  TeamTiling t;
  t.type = ContractType(dot, machine);
  t.tf32 = MultipliesTf32(dot, machine);
  int64_t most = t.type == ScalarType::kF64 ? kMostSide64 : kMostSide;
  t.rows = std::clamp(PowerAbove(sides.m), kLeastSide, most);
  t.columns = std::clamp(PowerAbove(sides.n), kLeastSide, most);
  auto tiles = [&] {
    t.row_tiles = CeilDiv(sides.m, t.rows);
    t.column_tiles = CeilDiv(sides.n, t.columns);
    return sides.batch * t.row_tiles * t.column_tiles;
  };
  while (tiles() < machine.cores && t.rows * t.columns > kLeastTile)
    (t.rows > t.columns ? t.rows : t.columns) /= 2;
  if (IsNarrow(t, sides, tiles(), machine)) {
    t.tf32 = false;
    t.rows = std::clamp(PowerAbove(sides.m), 2 * TeamTiling::kSide, kNarrowRows);
    t.columns = kNarrowColumns;
    t.depth = std::min(PowerAbove(sides.k), kNarrowDepth);
    t.blocks = CeilDiv(sides.k, t.depth);
    t.slices = std::min(kNarrowThreads / t.ThreadsOfSlice(), t.depth / kLanes);
    tiles();
    return t;
  }
  int64_t wanted = t.rows * t.columns == kMostSide * kMostSide ? kMostWarps : kContractWarps;
  t.warp_rows = t.rows;
  t.warp_columns = t.columns;
  constexpr int64_t kPieceRows = Multiplication::kPieceRows,
                    kPieceColumns = Multiplication::kPieceColumns;
  while (t.warps() < wanted) {
    if (t.warp_rows >= t.warp_columns && t.warp_rows > kPieceRows) {
      t.warp_rows /= 2;
    } else if (t.warp_columns > kPieceColumns) {
      t.warp_columns /= 2;
    } else {
      break;
    }
  }
  int64_t unit = Multiplication::DepthUnit(t.type);
  t.depth = std::min(std::max(kDepthBytes / BytesOf(t.type), unit), CeilDiv(sides.k, unit) * unit);
  t.blocks = CeilDiv(sides.k, t.depth);
  return t;
}

}  // namespace tokamak::gpu
