#pragma once

#include "cost/machine.h"
#include "gen/dot_dimensions.h"
#include "kernel/kernel.h"

// Tile sizes of GPU dots. The terms of a sum and their order depend only on the contracted
// dimension (the depth, K), the type, and whether the tiling is narrow; tile sizes do not change
// results. Narrowness depends on the shape and the number of SMs, so results are reproducible on
// one machine type.
//
// A thread block computes one tile of `rows` x `columns` results. Operand panels are staged in
// shared memory, double-buffered, each panel in the layout of its operand in memory (contiguous
// along K, or along the rows or columns), with a padded pitch against bank conflicts (no swizzle):
//
//   for i in 0 .. panels, inclusive                        // software pipeline over K panels
//     each thread computes its elements of panel i of both operands into registers
//     accumulators += panel i-1 (block-wide multiply: tensor cores or FMA)
//     each thread stores its elements of panel i to half i % 2 of the buffers
//     block barrier
//   accumulators -> shared memory; block barrier; consumers are evaluated in row order and stored
//
// Iteration 0 only stages, iteration `panels` only multiplies.
//
// One barrier per iteration suffices: iteration i writes half i % 2, which iteration i-1 read
// before its barrier. A single panel needs one buffer only. Panels are `panel_depth` elements along
// K, 64 bytes; the tile size bounds shared memory (at most 128 rows and columns).
//
// Narrow (split-K inside a thread block, f32 only): there are fewer tiles than SMs and K is long.
// Tiles are smaller than tensor cores need, so the product uses ordinary FMAs. A panel has up to
// 512 elements along K, single-buffered with two barriers. The threads split it into slices along
// K; a thread computes kThreadTileSize x kThreadTileSize results for its slice. The sums of all
// slices are added at the end, in the order of the slices, through shared memory.

namespace tokamak::gpu {

struct GpuDotTiling {
  ScalarType type{};  // scalar type of the factors
  bool tf32 = false;
  int64_t rows = 0, columns = 0;            // of a tile
  int64_t warp_rows = 0, warp_columns = 0;  // of the part of a tile that a warp computes
  int64_t panel_depth = 0;                  // of a panel along K
  int64_t panels = 0;                       // panels along K; the last one is zero-padded
  int64_t row_tiles = 0, column_tiles = 0;  // of the result
  int64_t k_slices = 0;                     // slices of K if narrow, else 0

  bool is_split_k() const { return k_slices > 0; }
  // Narrow: side of the square of sums that a thread computes for its slice. Chosen: 16 sums per
  // thread, each kept as 4 partial sums along K (vector lanes), take 64 registers.
  static constexpr int64_t kThreadTileSize = 4;
  int64_t ThreadsPerSlice() const { return rows * columns / (kThreadTileSize * kThreadTileSize); }
  int64_t warps() const { return rows / warp_rows * (columns / warp_columns); }
};

GpuDotTiling GpuDotTilingOf(const Instr& dot, const DotDimensions& dot_dims,
                            const Machine& machine);

}  // namespace tokamak::gpu
