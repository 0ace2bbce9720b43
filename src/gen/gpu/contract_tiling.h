#pragma once

#include "cost/machine.h"
#include "gen/dot_sides.h"
#include "kernel/kernel.h"

// How a dot is cut into the tiles of teams. Which products a sum is made of, and in which order,
// follows from the depth and the type alone, and from whether it is narrow; how large tiles are
// changes no value.
//
// Narrow: there are fewer tiles than multiprocessors, and the depth is long. Tiles are smaller than
// tensor cores want, threads share out the depth, and add up their sums in the end.

namespace tokamak::gpu {

struct TeamTiling {
  ScalarType type{};  // of what is multiplied
  bool tf32 = false;
  int64_t rows = 0, columns = 0;  // of a tile
  int64_t warp_rows = 0, warp_columns = 0;
  int64_t depth = 0;  // of a block, of which there are `blocks`; the last one is padded
  int64_t blocks = 0;
  int64_t row_tiles = 0, column_tiles = 0;
  int64_t slices = 0;  // of the depth, when it is narrow

  bool is_narrow() const { return slices > 0; }
  // Of a narrow one, a thread has so many rows and columns of its slice.
  static constexpr int64_t kSide = 4;
  int64_t ThreadsOfSlice() const { return rows * columns / (kSide * kSide); }
  int64_t warps() const { return rows / warp_rows * (columns / warp_columns); }
};

TeamTiling TeamTilingOf(const Instr& dot, const DotSides& sides, const Machine& machine);

}  // namespace tokamak::gpu
