#pragma once

#include <string>
#include <vector>

#include "cost/machine.h"
#include "gen/dot_dimensions.h"
#include "gen/schedule.h"
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
// K, by preference 64 bytes.
//
// Narrow (split-K inside a thread block, f32 only): there are fewer tiles than SMs and K is long.
// Tiles are smaller than tensor cores need, so the product uses ordinary FMAs. A panel has up to
// 512 elements along K, single-buffered with two barriers. The threads split it into slices along
// K; a thread computes inner_rows x inner_columns results for its slice. The sums of all slices are
// added at the end, in the order of the slices, through shared memory.
//
// With one stage and several panels, a panel is loaded, multiplied and then overwritten, between
// two barriers: half the shared memory, but loads and multiplications do not overlap.

namespace tokamak::gpu {

// How one thread block multiplies, from a schedule (gen/schedule.h).
struct GpuDotTiling {
  ScalarType type{};  // scalar type of the factors
  bool tf32 = false;
  int64_t rows = 0, columns = 0;  // of a tile
  // Of the part of a tile that a warp computes; narrow: that a thread computes for its slice.
  int64_t inner_rows = 0, inner_columns = 0;
  int64_t panel_depth = 0;                  // of a panel along K
  int64_t panels = 0;                       // panels along K; the last one is zero-padded
  int64_t row_tiles = 0, column_tiles = 0;  // of the result
  int64_t group = 1;                        // row tiles whose blocks are adjacent in the grid
  int64_t k_slices = 1;                     // slices of K; more than one if narrow
  int64_t threads = 0;                      // of a block
  int64_t stages = 1;                       // panels of an operand in shared memory
  // Elements of an operand per access of a thread; narrow: also partial sums along K per result.
  int64_t vector = 1;
  int64_t access = 1;  // elements of the widest access of the machine

  bool is_split_k() const { return k_slices > 1; }
  int64_t ThreadsPerSlice() const { return rows / inner_rows * (columns / inner_columns); }
};

// A panel of an operand in shared memory. It is loaded as `outer` lines of `inner` elements, which
// are adjacent in memory. It is stored as these lines, narrow: as lines along K, `pitch` apart.
struct PanelLayout {
  int64_t along = 0, total = 0;  // rows (columns) of a tile, and of the result
  int64_t inner = 0, outer = 0;
  int64_t pitch = 0, size = 0;  // in elements, with padding
  int64_t lanes = 1;            // elements per access of a thread
};
PanelLayout PanelLayoutOf(const GpuDotTiling& t, const DotDimensions& dot_dims, bool is_lhs,
                          bool k_is_minor);
// Elements from row to row of the results in shared memory.
int64_t ResultsPitchOf(const GpuDotTiling& t);

// The schedule that is preferred for a dot.
Schedule PreferredDotSchedule(const Instr& dot, const DotDimensions& dot_dims,
                              const Machine& machine);
// The schedules of a dot, the preferred one first.
std::vector<Schedule> DotSchedules(const Instr& dot, const DotDimensions& dot_dims,
                                   const Machine& machine);
// Returns why the schedule does not fit the dot or the machine, empty if `tiling` is set.
std::string ExpandDotSchedule(const Instr& dot, const DotDimensions& dot_dims,
                              const Schedule& schedule, const Machine& machine,
                              GpuDotTiling& tiling);

}  // namespace tokamak::gpu
