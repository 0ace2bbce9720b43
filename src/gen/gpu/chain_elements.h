#pragma once

#include <deque>
#include <vector>

#include "gen/element.h"
#include "gen/gpu/chain_tiling.h"
#include "gen/reducer.h"

namespace tokamak::gpu {

// The registers of a warpgroup's thread in the kernel of a chain (chain_contract.cc), and what
// happens there: reductions and weights between the multiplies, results after them.
class ChainElements {
 public:
  ChainElements(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                const ChainRegion& found, const ChainTiling& tiling);

  void Declare();
  ArrayId scores() const { return scores_; }
  ArrayId weights() const { return weights_; }  // as lhs of the second multiply
  ArrayId product() const { return product_; }

  // Sets the linear index over DotChain::batch.
  void SetBatch(Scalar batch);
  // The index along a batch dimension of an operand.
  Scalar BatchOf(const ChainSide& side, const TensorOperand::Dimension& dimension);

  // Begins a tile at this row. `consumer`: the thread's number in all warpgroups that multiply.
  void Begin(Scalar consumer, Scalar row);
  // Replaces the scores of column tile j by weights, and reduces them. Leaves the product alone.
  void Weigh(Scalar j);
  // Rescales the product of the column tiles before, and makes the weights an operand.
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
  void SetSources();

  // Calls body(half) for both rows of the thread, with the row set.
  template <typename Body>
  void ForHalves(Body&& body);
  // Calls body(place) for the thread's accumulators of a row of `columns`.
  template <typename Body>
  void ForPlaces(int64_t columns, Body&& body);
  Scalar IndexOf(Scalar half, const Place& place);
  Scalar ColumnOf(const Place& place);

  Coordinates Along(const Dims& along, const Coordinates& from);
  Coordinates ScoresAt(const Instr& instr) { return Along(*found_.along->Of(instr), scores_at_); }
  Coordinates ProductAt(Scalar column);
  void SetColumn(Scalar column);

  void BindScore(Scalar index);
  // Of both rows. `is_masked`: not all columns of the tile are live.
  void ReadElements(Scalar j, bool is_masked);
  void ReadElement(Scalar half, const Place& place, Scalar j, bool is_masked);
  // Whether all columns of tile j are live in all rows of the tile.
  Scalar IsLive(Scalar j);
  void MakeWeights(Scalar half, Scalar j);
  // Finds the factor, and multiplies the sums of the row by it.
  void Rescale(Scalar half);
  // Combines the accumulators of the threads that share a row, and binds the result.
  void BindReduction(Accumulators& sums, Scalar half);
  // The weights, or what is converted to them: the conversion is left to Pack.
  const Instr& PreciseWeights() const;
  Scalar RowFactor();
  void StoreRows();
  void StoreProduct(Scalar half, Scalar factor);
  void StoreAt(Scalar column, Scalar value);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const FusedRegion& region_;
  const ChainRegion& found_;
  const DotChain& chain_;
  const RunningChain& running_;
  const ChainTiling& t_;
  DotDimensions product_dims_;
  std::deque<Reducer> reducers_;
  std::vector<Accumulators> plain_, scaled_;
  ArrayId scores_{}, weights_{}, product_{};
  // By half: the shift, and the factor of sums of the column tiles before.
  ArrayId shift_{}, scale_{};
  Scalar used_shift_;
  Coordinates scores_at_;
  Scalar lane_, tile_row_, first_row_, row_, row_inside_;
};

}  // namespace tokamak::gpu
