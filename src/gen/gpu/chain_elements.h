#pragma once

#include <deque>
#include <vector>

#include "gen/element.h"
#include "gen/gpu/chain_masks.h"
#include "gen/gpu/chain_scales.h"
#include "gen/gpu/chain_tiling.h"
#include "gen/gpu/chain_vectors.h"
#include "gen/gpu/chain_words.h"
#include "gen/reducer.h"

namespace tokamak::gpu {

// Whether columns that are not live are masked, where LiveColumns::masked says so.
Scalar HidesDeadColumns(KernelBuilder& b, ElementEmitter& emitter, const LiveColumns& live);

// The registers of a warpgroup's thread in the kernel of a chain (chain_contract.cc), and what
// happens there: reductions and weights between the multiplies, results after them.
class ChainElements {
 public:
  ChainElements(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                const ChainRegion& found, const ChainTiling& tiling);

  void Declare();
  // The results of each first dot.
  ArrayId scores(size_t first) const { return scores_[first]; }
  // Of a second dot: parts of its weights, as lhs of multiplies, and its results.
  const std::vector<ArrayId>& weights(size_t second) const { return weights_[second]; }
  ArrayId product(size_t second) const { return products_[second]; }

  // Sets the linear index over DotChain::batch, and that over DotChain::outer_columns.
  void SetBatch(Scalar batch);
  void SetOuterColumns(Scalar index);
  // The index along a batch dimension of an operand.
  Scalar BatchOf(const ChainSide& side, const TensorOperand::Dimension& dimension);

  // Whether threads of the producer store values of columns, and their part of it for tile j.
  bool HasColumnValues() const { return vectors_.HasColumns(); }
  void StoreColumnValues(Scalar thread, Scalar j, Scalar number);

  // The producer: starts the copies of packed preds for tile `number`, which begins there.
  void FillPackedPreds(Scalar number, Scalar row, Scalar column) {
    packed_.Fill(number, row, column, scores_at_);
  }

  // Begins a tile at this row. `consumer`: the thread's number in all warpgroups that multiply.
  void Begin(Scalar consumer, Scalar row);
  // Computes what does not depend on the scores of column tile j, while they are multiplied.
  void Prepare(Scalar j);
  // Replaces the scores of column tile j by weights, and reduces them. Leaves the products alone.
  // `number` is that of the tile among all that the block computes.
  void Weigh(Scalar j, Scalar number);
  // Rescales the products of the column tiles before, and makes the weights operands.
  void Pack();
  // Finishes the reductions and stores the results.
  void Finish();

 private:
  // A place among the thread's accumulators: half 0 or 1 (rows 8 apart), a fragment of 8 columns,
  // and one of two adjacent columns.
  struct Place {
    Scalar fragment, pair;
  };

  bool IsExponential() const { return running_.exponential != nullptr; }
  // Whether tiles have columns beyond the scores.
  bool HasPadding() const { return chain_.column_count() % t_.columns != 0; }

  // Calls body(half) for both rows of the thread, with the row set.
  template <typename Body>
  void ForHalves(Body&& body);
  void SetHalf(Scalar half);
  // Calls body(place) for the thread's accumulators of a row of `columns`.
  template <typename Body>
  void ForPlaces(int64_t columns, Body&& body);
  Scalar IndexOf(Scalar half, const Place& place);
  Scalar ColumnOf(const Place& place);

  Coordinates Along(const Dims& along, const Coordinates& from);
  Coordinates ScoresAt(const Instr& instr) { return Along(*found_.along->Of(instr), scores_at_); }
  Coordinates ProductAt(size_t second, Scalar column);
  void SetIndices(const Dims& dims, Scalar linear);
  void SetColumn(Scalar column);
  // Tells the emitter the preds of a score that are computed or loaded before the weights.
  // `column_words`: ChainPackedPreds::ReadColumn.
  void MemoizePreds(Scalar half, const Place& place);
  void MemoizePreds(Scalar half, const Place& place, const std::vector<Scalar>& column_words);

  void BindScore(size_t first, Scalar index);
  void BindScores(Scalar index);
  // Of both rows. `is_masked`: not all columns of the tile are live.
  void ReadElements(Scalar j, bool is_masked);
  void ReadElement(Scalar half, const Place& place, Scalar j, bool is_masked);
  // Whether all columns of tile j are live in all rows of the tile.
  Scalar IsLive(Scalar j);
  // Whether any of `count` columns from `column` on is live in any row of the thread's warp.
  Scalar IsAnyLive(Scalar column, int64_t count);
  // With an exponential: the weights, from x. Without: the weights and reductions of a place.
  void MakeExponentialWeights(Scalar j);
  void MakeWeights(Scalar half, Scalar j);
  void MakePlainWeights(Scalar j, Scalar number);
  void MakePlainWeight(Scalar half, const Place& place, Scalar column);
  // Finds the factor, and multiplies the sums of the row by it.
  void Rescale(Scalar half);
  // Combines the accumulators of the threads that share a row, and binds the result.
  void BindReduction(Accumulators& sums, Scalar half);
  // The weights, or what is converted to them: the conversion is left to Pack.
  const Instr& PreciseWeights(size_t second) const;
  void PackWeights(size_t second, Scalar half);
  void MultiplyProduct(size_t second, Scalar half, Scalar factor);
  Scalar RowFactor();
  void StoreRows();
  void StoreProduct(size_t second, Scalar half, Scalar factor);
  void StoreAt(size_t second, Scalar column, Scalar value);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const FusedRegion& region_;
  const ChainRegion& found_;
  const DotChain& chain_;
  const RunningChain& running_;
  const ChainTiling& t_;
  ChainMasks masks_;
  ChainVectors vectors_;
  ChainPackedPreds packed_;
  ChainScales scales_;
  std::deque<Reducer> reducers_;
  std::vector<Accumulators> plain_, scaled_;
  // Weights replace scores. scores_ has more arrays than first dots if there are more second dots.
  std::vector<ArrayId> scores_, products_;
  std::vector<std::vector<ArrayId>> weights_;
  // By half: the shift, and the factor of sums of the column tiles before.
  ArrayId shift_{}, scale_{};
  Scalar used_shift_;
  Coordinates scores_at_;
  Scalar lane_, tile_row_, warp_row_, first_row_, row_, row_inside_;
  Scalar first_in_tile_;  // first_row_ without tile_row_
};

}  // namespace tokamak::gpu
