#pragma once

#include "cost/machine.h"
#include "gen/dot_sides.h"
#include "kernel/kernel.h"

// Tile sizes of the CPU contract generator. A dot is batch x (m x k) * (k x n): "rows" are m,
// "columns" n, "depth" k (the contracted dimension). Tiles depend only on the shape and the
// machine's vector length, so results do not depend on the number of threads.

namespace tokamak {

constexpr int64_t CeilDiv(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}
constexpr int64_t RoundUp(int64_t x, int64_t to) {
  return CeilDiv(x, to) * to;
}

// One dimension, cut into tiles.
struct TileCut {
  int64_t total = 0;  // size in the program
  int64_t size = 0;   // of a tile; greater than `total` if padded
  int64_t count = 1;

  bool IsPadded() const { return size > total; }
  int64_t valid() const { return size < total ? size : total; }
};

struct Tiling {
  ScalarType type{};  // element type of the factors
  TileCut rows, columns;
  // Number of equal column ranges (the gates of an LSTM, say): a tile covers the same columns of
  // each. `columns` describes one range.
  int64_t column_groups = 1;
  // The contracted dimension, cut into panels of equal size; the last one is zero-padded.
  TileCut depth;
  int64_t lanes = 1;      // vector lanes of the sums
  int64_t rhs_block = 0;  // width of the column blocks if rhs is prepacked (BlocksOfRhs), else 0
  int64_t row_unit = 1;   // tile rows are a multiple of this
  int64_t depth_unit = 1;

  int64_t PaddedDepth() const { return depth.size * depth.count; }
  int64_t Width() const { return column_groups * columns.size; }
};

// The column block width of a prepacked rhs of shape (n / block, k, block) that vector code can
// read directly; 0 if rhs is not prepacked.
int64_t BlocksOfRhs(const Instr& dot, const Machine& machine);
// The block width to prepack rhs with once, if otherwise every tile would repack it; 0 if it is not
// worth it.
int64_t BlockForRhs(const Instr& dot, const Machine& machine);

// Vectors per column block, for prepacked weights and packed panels alike: the largest number that
// fits in registers together with the sums.
int64_t BlockVectors(const Machine& machine);

// Maximum row length, in elements, of a tile that covers whole rows. Chosen: the sums of 8 such
// rows fit in kWholeBytes (contract_tiling.cc).
constexpr int64_t kMaxWhole = 8192;

// `whole`: a tile covers whole rows of the result.
Tiling TilingOf(const Instr& dot, const DotSides& sides, const Machine& machine, bool whole,
                int64_t column_groups = 1);

// A dot whose lhs is produced row by row in the same task, by a row kernel or by another dot. A
// task produces whole rows, in several tiles that share one packed rhs.
struct ChainTiling {
  Tiling outer, inner;  // same row tiles
  int64_t tiles = 1;    // per task

  int64_t tasks(int64_t batch) const { return batch * (outer.rows.count / tiles); }
};
// Returns nullopt if storing the lhs to memory is cheaper. `inner` may be null.
std::optional<ChainTiling> TilingOfChain(const Instr& outer, const Instr* inner,
                                         const Machine& machine);

}  // namespace tokamak
