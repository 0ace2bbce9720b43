#pragma once

#include <unordered_map>
#include <vector>

#include "gen/element.h"
#include "gen/gpu/chain_tiling.h"
#include "gen/gpu/warp_roles.h"

namespace tokamak::gpu {

// The vectors of a chain whose other members are set.
std::vector<ChainVector> VectorsOf(const FusedRegion& region, const ChainRegion& found);

// The values of rows and of columns (ChainVector) that the elements between the dots are computed
// from, such as given statistics of a softmax: computed once per tile. Those of rows are in
// registers. Those of columns are in shared memory, where threads of the producer store them ahead,
// with as many stages as the operands have.
class ChainVectors {
 public:
  ChainVectors(KernelBuilder& b, ElementEmitter& emitter, const ChainRegion& found,
               const ChainTiling& tiling);

  // `halves`: rows of a thread.
  void Declare(int64_t halves);
  bool HasColumns() const { return column_count_ > 0; }
  // The first thread of the producer that stores values of columns, and their number. Chosen: two
  // warps, one thread per column of the narrowest tile, behind the warp that starts the copies.
  static constexpr int64_t kFirstThread = 64, kThreads = 64;

  // The producer: waits for the stage of column tile `number` and stores the value of each vector
  // at column `index` of the tile, for each of the thread's columns. `at(index)`: coordinates.
  template <typename At>
  void StoreColumns(Scalar thread, Scalar number, At&& at);
  // The other threads: before and after the uses of a column tile.
  void WaitColumns(Scalar number);
  void ReleaseColumns(Scalar thread, Scalar number);

  // Keeps the values of the row at these coordinates.
  void StoreRow(Scalar half, const Coordinates& at);
  // The values of a column of a tile: one for each vector of columns.
  std::vector<Scalar> ReadColumn(Scalar number, Scalar index);
  // Tells the emitter and `reciprocals` the values of the row and the column at these coordinates.
  void Memoize(Scalar half, const std::vector<Scalar>& column, const Coordinates& at);
  // Of the divisors of quotients, at the coordinates that were memoized last.
  const std::unordered_map<const Instr*, Scalar>& reciprocals() const { return reciprocals_; }

 private:
  Coordinates AtOf(const ChainVector& vector, const Coordinates& at);
  Element ElementOf(const ChainVector& vector, const Coordinates& at);
  Scalar SharedIndex(size_t i, Scalar number, Scalar index);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const std::vector<ChainVector>& vectors_;
  int64_t columns_, stages_, consumers_, column_count_ = 0;
  std::vector<ArrayId> rows_;    // by vector, of rows
  std::vector<int64_t> places_;  // by vector, of columns: its number among them
  ArrayId shared_{}, full_{}, empty_{};
  std::unordered_map<const Instr*, Scalar> reciprocals_;
};

template <typename At>
void ChainVectors::StoreColumns(Scalar thread, Scalar number, At&& at) {
  PipelineStage stage = StageOf(b_, number, stages_);
  b_.Wait(empty_, stage.index, b_.Index(1) - stage.parity);
  for (int64_t first = 0; first < columns_; first += kThreads) {
    Scalar index = thread + b_.Index(first);
    Coordinates coordinates = at(index);
    for (size_t i = 0; i < vectors_.size(); ++i)
      if (vectors_[i].is_of_columns)
        b_.Store(shared_, SharedIndex(i, number, index), ElementOf(vectors_[i], coordinates)[0]);
    emitter_.ClearMemo();
  }
  b_.Barrier(BarrierScope::kWarp);
  b_.If(thread % b_.Index(kWarpSize) == b_.Index(0), [&] { b_.Arrive(full_, stage.index); });
}

}  // namespace tokamak::gpu
