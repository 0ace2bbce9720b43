#include "gen/gpu/contract_tiling.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/gpu/gpu.h"

namespace tokamak::gpu {
namespace {

// Maximum and minimum side of a tile; f64 has a lower maximum, since its sums take two registers.
// Chosen.
constexpr int64_t kMaxTileSide = 128, kMaxTileSide64 = 64, kMinTileSide = 16;
// Results. Tiles are halved until there is one per SM, but not below this. Chosen.
constexpr int64_t kMinTileResults = 32 * 32;
// Bytes of a panel along K: enough multiplications between two barriers. Warps per block: maximum,
// and default. Chosen.
constexpr int64_t kDepthBytes = 64;
constexpr int64_t kMaxWarps = 8, kContractWarps = 4;
// Narrow tilings: rows and columns of a tile, block size, K per panel; minimum K; lanes per sum.
// Chosen.
constexpr int64_t kNarrowRows = 32, kNarrowColumns = 8, kNarrowThreads = 256;
constexpr int64_t kNarrowDepth = 512, kMinDepth = 128, kLanes = 4;

// Whether there are so few tiles that most SMs would be idle.
bool IsSplitK(const GpuDotTiling& t, const DotDimensions& dot_dims, int64_t tiles,
              const Machine& machine) {
  return t.type == ScalarType::kF32 && dot_dims.k >= kMinDepth && 2 * tiles <= machine.cores;
}

}  // namespace

GpuDotTiling GpuDotTilingOf(const Instr& dot, const DotDimensions& dot_dims,
                            const Machine& machine) {
  GpuDotTiling t;
  t.type = FactorTypeOf(dot, machine);
  t.tf32 = MultipliesTf32(dot, machine);
  int64_t most = t.type == ScalarType::kF64 ? kMaxTileSide64 : kMaxTileSide;
  t.rows = std::clamp(CeilPowerOfTwo(dot_dims.m), kMinTileSide, most);
  t.columns = std::clamp(CeilPowerOfTwo(dot_dims.n), kMinTileSide, most);
  auto tiles = [&] {
    t.row_tiles = CeilDiv(dot_dims.m, t.rows);
    t.column_tiles = CeilDiv(dot_dims.n, t.columns);
    return dot_dims.batch * t.row_tiles * t.column_tiles;
  };
  while (tiles() < machine.cores && t.rows * t.columns > kMinTileResults)
    (t.rows > t.columns ? t.rows : t.columns) /= 2;
  if (IsSplitK(t, dot_dims, tiles(), machine)) {
    t.tf32 = false;
    t.rows = std::clamp(CeilPowerOfTwo(dot_dims.m), 2 * GpuDotTiling::kThreadTileSize, kNarrowRows);
    t.columns = kNarrowColumns;
    t.panel_depth = std::min(CeilPowerOfTwo(dot_dims.k), kNarrowDepth);
    t.panels = CeilDiv(dot_dims.k, t.panel_depth);
    t.k_slices = std::min(kNarrowThreads / t.ThreadsPerSlice(), t.panel_depth / kLanes);
    tiles();
    return t;
  }
  int64_t wanted = t.rows * t.columns == kMaxTileSide * kMaxTileSide ? kMaxWarps : kContractWarps;
  t.warp_rows = t.rows;
  t.warp_columns = t.columns;
  constexpr int64_t kFragmentRows = MatrixMultiply::kFragmentRows,
                    kFragmentColumns = MatrixMultiply::kFragmentColumns;
  while (t.warps() < wanted) {
    if (t.warp_rows >= t.warp_columns && t.warp_rows > kFragmentRows) {
      t.warp_rows /= 2;
    } else if (t.warp_columns > kFragmentColumns) {
      t.warp_columns /= 2;
    } else {
      break;
    }
  }
  int64_t unit = MatrixMultiply::DepthUnit(t.type);
  t.panel_depth =
      std::min(std::max(kDepthBytes / BytesOf(t.type), unit), CeilDiv(dot_dims.k, unit) * unit);
  t.panels = CeilDiv(dot_dims.k, t.panel_depth);
  return t;
}

}  // namespace tokamak::gpu
