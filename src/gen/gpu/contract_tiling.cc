#include "gen/gpu/contract_tiling.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/gpu/gpu.h"

namespace tokamak::gpu {
namespace {

// Maximum and minimum side of a tile; f64 has a lower maximum, since its sums take two registers.
// Chosen.
constexpr int64_t kMostSide = 128, kMostSide64 = 64, kLeastSide = 16;
// Results. Tiles are halved until there is one per SM, but not below this. Chosen.
constexpr int64_t kLeastTile = 32 * 32;
// Bytes of a panel along K: enough multiplications between two barriers. Warps per block: maximum,
// and default. Chosen.
constexpr int64_t kDepthBytes = 64;
constexpr int64_t kMostWarps = 8, kContractWarps = 4;
// Narrow tilings: rows and columns of a tile, block size, K per panel; minimum K; lanes per sum.
// Chosen.
constexpr int64_t kNarrowRows = 32, kNarrowColumns = 8, kNarrowThreads = 256;
constexpr int64_t kNarrowDepth = 512, kLeastDepth = 128, kLanes = 4;

// Whether there are so few tiles that most SMs would be idle.
bool IsNarrow(const BlockTiling& t, const DotSides& sides, int64_t tiles, const Machine& machine) {
  return t.type == ScalarType::kF32 && sides.k >= kLeastDepth && 2 * tiles <= machine.cores;
}

}  // namespace

BlockTiling BlockTilingOf(const Instr& dot, const DotSides& sides, const Machine& machine) {
  BlockTiling t;
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
    t.rows = std::clamp(PowerAbove(sides.m), 2 * BlockTiling::kSide, kNarrowRows);
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
  constexpr int64_t kFragmentRows = Multiplication::kFragmentRows,
                    kFragmentColumns = Multiplication::kFragmentColumns;
  while (t.warps() < wanted) {
    if (t.warp_rows >= t.warp_columns && t.warp_rows > kFragmentRows) {
      t.warp_rows /= 2;
    } else if (t.warp_columns > kFragmentColumns) {
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
