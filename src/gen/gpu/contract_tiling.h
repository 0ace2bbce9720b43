#pragma once

#include "cost/machine.h"
#include "gen/dot_sides.h"
#include "kernel/kernel.h"

// Tile sizes of GPU dots. The terms of a sum and their order depend only on the contracted
// dimension (the depth, K), the type, and whether the tiling is narrow; tile sizes do not change
// results.
//
// Narrow (split-K inside a block): there are fewer tiles than SMs and K is long. Tiles are smaller
// than tensor cores need. The threads of a block split K into slices and add their sums at the end.

namespace tokamak::gpu {

struct BlockTiling {
  ScalarType type{};  // element type of the factors
  bool tf32 = false;
  int64_t rows = 0, columns = 0;  // of a tile
  int64_t warp_rows = 0, warp_columns = 0;
  int64_t depth = 0;  // of a panel along K; there are `blocks` panels, the last one padded
  int64_t blocks = 0;
  int64_t row_tiles = 0, column_tiles = 0;
  int64_t slices = 0;  // slices of K if narrow, else 0

  bool is_narrow() const { return slices > 0; }
  // Narrow: side of the square of sums that a thread computes for its slice. Chosen: 16 sums per
  // thread.
  static constexpr int64_t kSide = 4;
  int64_t ThreadsOfSlice() const { return rows * columns / (kSide * kSide); }
  int64_t warps() const { return rows / warp_rows * (columns / warp_columns); }
};

BlockTiling BlockTilingOf(const Instr& dot, const DotSides& sides, const Machine& machine);

}  // namespace tokamak::gpu
