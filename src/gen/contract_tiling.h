#pragma once

#include "cost/machine.h"
#include "gen/dot_sides.h"
#include "kernel/kernel.h"

// How a dot is cut for the contract generator. Tiles follow from the shape alone.

namespace tokamak {

constexpr int64_t CeilDiv(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}
constexpr int64_t RoundUp(int64_t x, int64_t to) {
  return CeilDiv(x, to) * to;
}

// One direction, cut.
struct TileCut {
  int64_t total = 0;  // as the program has it
  int64_t size = 0;   // of a piece; more than `total` when it is padded
  int64_t count = 1;

  bool IsPadded() const { return size > total; }
  int64_t valid() const { return size < total ? size : total; }
};

struct Tiling {
  ScalarType type{};  // of what is multiplied
  TileCut rows, columns;
  // Parts of the columns, all alike: a tile has the same columns of each. `columns` are of one.
  int64_t parts = 1;
  // The depth: all panels are alike, the last one is padded.
  TileCut depth;
  int64_t lanes = 1;      // of sums
  int64_t rhs_block = 0;  // columns that lie together in rhs, as BlocksOfRhs has it; 0: not so
  int64_t row_unit = 1;   // rows are cut into multiples of it
  int64_t depth_unit = 1;

  int64_t PaddedDepth() const { return depth.size * depth.count; }
  int64_t Width() const { return parts * columns.size; }
};

// Columns of a block, where rhs (n / block, k, block) lies as vectors want it: 0 where it does not.
int64_t BlocksOfRhs(const Instr& dot, const Machine& machine);
// The block that its rhs should be moved to, once, for tiles that would each put it in order; 0
// where there is none.
int64_t BlockForRhs(const Instr& dot, const Machine& machine);

// Vectors of such a block, and of those that panels are put in: as many as stay in registers with
// the sums that they are multiplied into.
int64_t BlockVectors(const Machine& machine);

// The longest rows of results that a tile may have.
constexpr int64_t kMaxWhole = 8192;

// `whole`: a tile has whole rows.
Tiling TilingOf(const Instr& dot, const DotSides& sides, const Machine& machine, bool whole,
                int64_t parts = 1);

// A dot whose left side is made in rows, by the same task: of rows in memory, or of the results of
// another dot. Tasks make whole rows, in several tiles for which the right sides are put in order
// once.
struct ChainTiling {
  Tiling outer, inner;  // with equal rows
  int64_t tiles = 1;    // of a task

  int64_t tasks(int64_t batch) const { return batch * (outer.rows.count / tiles); }
};
// Nothing when it takes less to store the left side. `inner` may be nullptr.
std::optional<ChainTiling> TilingOfChain(const Instr& outer, const Instr* inner,
                                         const Machine& machine);

}  // namespace tokamak
