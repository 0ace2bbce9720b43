#pragma once

#include <optional>

#include "cost/machine.h"
#include "gen/dot_dimensions.h"
#include "gen/schedule.h"
#include "kernel/kernel.h"
#include "support/ceil_div.h"

// Tile sizes of the CPU contract generator. A dot is batch x (m x k) * (k x n): "rows" are m,
// "columns" n, "depth" k (the contracted dimension). Tiles depend only on the dot and the
// machine's instruction set (vector length, AMX), so results do not depend on the number of
// threads.
//
// A task computes one tile of the result, or, in a chain, several tiles of whole rows. It loops
// over panels of the depth; dot_tile.h packs and multiplies one panel.

namespace tokamak {

// One dimension, cut into `count` tiles of `size`, a multiple of the dimension's unit (vector
// lanes, or rows of an AMX tile register): count * size >= total. If `size` does not divide
// `total`:
//   rows, columns   several tiles: the last one starts at total - size and overlaps the one before
//                   it, so elements in the overlap are computed twice, with equal results.
//                   One tile: size > total, it is padded; padded rows and columns repeat the last
//                   one (those of a DeclareLhs array are zero, dot_tile.h) and are not stored.
//   depth           the last panel is zero-padded to `size`.
struct TiledDimension {
  int64_t total = 0;  // size in the program
  int64_t size = 0;   // of a tile
  int64_t count = 1;

  // Rows and columns only: the single tile is larger than the dimension.
  bool IsPadded() const { return size > total; }
  // Rows or columns of a tile that are in the result: min(size, total).
  int64_t ValidSize() const { return size < total ? size : total; }
};

struct Tiling {
  ScalarType type{};  // scalar type of the factors
  TiledDimension rows, columns;
  // Number of equal column ranges (the gates of an LSTM, say): a tile covers columns [j, j + size)
  // of every range. `columns` describes one range.
  int64_t column_groups = 1;
  TiledDimension depth;  // the contracted dimension, cut into panels
  int64_t lanes = 1;     // vector lanes of the sums
  int64_t rhs_block =
      0;  // width of the column blocks if rhs is prepacked (PrepackedRhsBlockWidth), else 0
  int64_t row_unit = 1;  // tile rows are a multiple of this
  // Panel depth is a multiple of this: the depth of an AMX tile register, or the group size of the
  // VNNI layout.
  int64_t depth_unit = 1;

  // Rows and columns that one multiply statement covers; a tile may need several statements. The
  // rhs panel is stored in column blocks of this width. Set by SetMultiplyBlock.
  int64_t multiply_rows = 0, multiply_columns = 0;
  bool rhs_is_prepacked = false;  // rhs is read in place, in column blocks. Set by SetMultiplyBlock
  Staging staging = Staging::kMemory;  // of both operands

  int64_t PaddedDepth() const { return depth.size * depth.count; }
  // Columns of a tile, over all column groups.
  int64_t TileColumns() const { return column_groups * columns.size; }
};

// Prepacking stores rhs in column blocks: (k, n) becomes (n / block, k, block), so that the columns
// of a block are adjacent. PrepackedRhsBlockWidth: the block width of a dot whose rhs already is
// prepacked; 0 if it is not.
int64_t PrepackedRhsBlockWidth(const Instr& dot, const Machine& machine);
// The block width with which prepack-weights should prepack the rhs of a dot, since otherwise every
// task would pack it again; 0 if this is not possible.
int64_t ChooseRhsBlockWidth(const Instr& dot, const Machine& machine);

// Vectors per column block, for prepacked weights and packed panels alike: the largest number that
// fits in registers together with the sums.
int64_t VectorsPerColumnBlock(const Machine& machine);

// Maximum row length, in elements, of a tile that covers whole rows. Chosen: the f32 sums of 8 such
// rows take 256 KiB, which leaves room for the rhs panel in a typical L2 cache.
constexpr int64_t kMaxWholeRowElements = 8192;

// The tiling that is preferred for a dot; other schedules change its sizes (contract_schedules.h).
// `whole_rows`: a tile covers whole rows of the result, as a row reduction of the results needs.
Tiling TilingOf(const Instr& dot, const DotDimensions& dot_dims, const Machine& machine,
                bool whole_rows, int64_t column_groups = 1);

// Chooses the rows and columns of a multiply statement of a tiling. `rhs_is_input`: rhs is an array
// in memory, not computed in the kernel.
void SetMultiplyBlock(Tiling& t, const DotDimensions& dot_dims, const Machine& machine,
                      bool rhs_is_input);

// A chain: a dot (`outer`, the consumer) whose lhs is produced row by row in the same task, by row
// reductions, possibly from the results of another dot (`inner`), as in softmax(q k) v. A task
// computes whole rows in `row_tiles_per_task` tiles, which divides outer.rows.count, and packs rhs
// once for all of them.
struct ChainTiling {
  Tiling outer, inner;  // same row tiles; of `inner` only `rows` is set if there is no inner dot
  int64_t row_tiles_per_task = 1;  // row tiles per task

  int64_t tasks(int64_t batch) const { return batch * (outer.rows.count / row_tiles_per_task); }
};
// Returns nullopt if storing the lhs to memory is cheaper. `inner` is null if the lhs is produced
// without a dot.
std::optional<ChainTiling> TilingOfChain(const Instr& outer, const Instr* inner,
                                         const Machine& machine);

}  // namespace tokamak
