#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/dot_chains.h"
#include "analysis/live_columns.h"
#include "cost/machine.h"
#include "gen/dot_dimensions.h"
#include "gen/gpu/tensor_tiling.h"
#include "gen/region.h"
#include "gen/schedule.h"

// Tile sizes of chains of dots (analysis/dot_chains.h) that GPUs compute in one kernel, with
// asynchronous multiplies.
//
//   thread block = 128 producer threads, of which one starts the copies, and warpgroups of 128
//                  threads, each with 64 of the `rows` of a tile
//   rows         = of a tile; its operands of the first dots stay in shared memory
//   columns      = of the scores that are computed at once, and rows of the second dots' operands
//   stages       = tiles of columns in shared memory, of all operands that have columns
//   grid         = at most one thread block per SM; a block computes every blocks-th tile of rows
//
// In a Schedule, `tile` is rows x columns x padded depth of the first of the first dots.
// `inner` is 64 x padded columns of the first of the second dots (without one, of the tile).

namespace tokamak::gpu {

// Of a fragment of accumulators (PTX ISA; AccumulatorPosition): threads of a row, columns, rows of
// a thread, rows between them.
inline constexpr int64_t kQuad = 4, kFragment = MatrixMultiply::kFragmentColumns,
                         kHalfFragments = 2,
                         kHalfRows = MatrixMultiply::kFragmentRows / kHalfFragments;

// A value of rows or of columns that elements between the dots are computed from.
struct ChainVector {
  const Instr* value = nullptr;
  Dims along;  // its dimensions along the scores
  bool is_of_columns = false;
  // Quotients with this divisor; not empty: its reciprocal is needed instead of the value.
  std::vector<const Instr*> divides;
};

// Preds along the scores that are stored as packed words (analysis/packed_preds.h).
struct ChainWords {
  const Instr *pred = nullptr, *words = nullptr;
  Dims along;                  // the pred's dimensions along the scores
  Dims dims;                   // for each dimension of the words, the pred's
  bool is_of_columns = false;  // the bits of a word are columns, else rows

  // Of the words of a tile in shared memory.
  int64_t TileBytes(int64_t rows, int64_t columns) const;
};

// A region that consists of a chain and of elementwise ops around it.
struct ChainRegion {
  DotChain chain;
  RunningChain running;
  LiveColumns live;
  std::optional<DimsAlong> along;         // of values that do not depend on second dots
  std::vector<DimsAlong> along_products;  // of the consumers of each second dot
  // Of a chain without a running exponential.
  std::vector<ChainVector> vectors;
  std::vector<ChainWords> words;

  // The second dot that a value depends on; null if there is none. Roots may be reshapes that
  // combine dimensions.
  const DimsAlong* ProductsOf(const Instr& value) const;
};

// Returns why a region is no chain, empty if `found` is set. Depends on the region alone.
std::string FindChain(const FusedRegion& region, ChainRegion& found);
// Whether the region has two dots or more: BuildContract then builds a chain or nothing.
bool HasSeveralDots(const FusedRegion& region);

// An operand of a dot as the multiplies read it: panels of lines of 128 bytes (MatrixMultiply).
struct ChainSide {
  TensorOperand tensor;
  const Instr* dot = nullptr;
  size_t operand = 0;
  bool is_of_product = false, has_rows = false;  // an operand of a second dot, else of a first one
  // For each batch dimension of the tensor, the dimension of the scores (or DimsAlong::kUnit). More
  // dimensions of rows and outer columns count as batch dimensions.
  Dims batch;
  // For each of them, how many adjacent indices have the same elements (RepeatedValueOf).
  Dims repeats;
  int64_t free = 0, depth = 0;  // elements of a tile, padded
  int64_t line = 0;             // elements of 128 bytes

  int64_t lines() const { return tensor.is_k_major ? free : depth; }
  int64_t panels() const;
  int64_t panel() const { return lines() * line; }  // elements
  int64_t size() const { return panels() * panel(); }
  // Whether both are the same elements in the same order. Dots may contract other dimensions.
  bool HasElementsOf(const ChainSide& other) const;
};

struct ChainTiling {
  struct First {
    ChainSide rows, columns;
    int64_t depth = 0;  // padded
  };
  struct Second {
    ChainSide values;
    int64_t width = 0;  // columns of the product, padded
    int64_t parts = 1;  // of the weights: 1, or 2 whose sum they are (split_operand.h)
  };
  ScalarType type{};
  std::vector<First> firsts;      // as DotChain::firsts
  std::vector<Second> seconds;    // as DotChain::seconds
  int64_t rows = 0, columns = 0;  // of a tile of the scores
  int64_t stages = 0;
  int64_t column_vectors = 0;  // ChainVector
  int64_t packed_preds = 0;    // ChainWords
  int64_t packed_bytes = 0;    // of a tile's words, of all of them
  int64_t row_tiles = 0, column_tiles = 0, batch = 1;
  int64_t outer_columns = 1;  // indices of DotChain::outer_columns: each has `column_tiles`
  int64_t blocks = 0;
  // Whether scores are computed while the products of the tile before accumulate; else the weights
  // take the registers of the scores.
  bool overlaps = true;

  int64_t warpgroups() const { return rows / kWarpgroupRows; }
  int64_t consumers() const { return warpgroups() * kWarpgroupThreads; }
  int64_t threads() const { return consumers() + kWarpgroupThreads; }
  int64_t tiles() const { return batch * row_tiles; }
  // The operands in shared memory, without those that have the elements of others: those with rows,
  // then those with columns.
  std::vector<const ChainSide*> Operands() const;
};

// The schedules of a chain, the preferred one first; empty if the machine or the operands do not
// fit.
std::vector<Schedule> ChainSchedules(const FusedRegion& region, const Machine& machine);
// Returns why the schedule does not fit, empty if `tiling` is set.
std::string ExpandChainSchedule(const FusedRegion& region, const ChainRegion& found,
                                const Schedule& schedule, const Machine& machine,
                                ChainTiling& tiling);

}  // namespace tokamak::gpu
