#pragma once

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/gpu/staged_results.h"
#include "gen/gpu/tensor_epilogue.h"
#include "gen/gpu/tensor_kernel_part.h"

// How warpgroups compute the consumers of a tile's sums and store the results.

namespace tokamak::gpu {

class TensorResults final : private TensorKernelPart, private TensorEpilogue::Chunks {
 public:
  explicit TensorResults(const TensorKernelPart& part)
      : TensorKernelPart(part), epilogue_(part), staged_(part) {}

  // Declares arrays. To be called after all other shared memory has been declared.
  void Declare();
  // Stores the results of the tile at `position`, which is the number `tile` of those that the
  // warpgroup has. `consumer` is the number of the thread among those that multiply, and `group`
  // that of its warpgroup among those that share the tile.
  struct Tile {
    DotPosition position;
    Scalar number;
  };
  // Begin comes before the tile's multiplies, Store after them.
  void Begin(const Tile& tile, Scalar consumer, Scalar group);
  void Store(ArrayId sums);
  // After all tiles.
  void Finish(Scalar consumer);

 private:
  // How the sums of a warp's chunk are distributed to its threads, from which they are stored.
  enum class Layout : uint8_t {
    kFragments,  // as multiplies leave them: 8 rows of 8 columns at once
    kRows,       // 2 rows of 32 columns
    kVectors,    // vectors of 4: 8 rows of 16 columns
  };
  Layout LayoutOf() const;
  // Whether an operand of the consumers that does not depend on the dot has this property.
  template <typename Property>
  bool AnyOperand(Property&& property) const {
    return std::ranges::any_of(consumers_, [&](const Instr* instr) {
      return instr != &dot_ && std::ranges::any_of(instr->operands(), [&](const Instr* operand) {
               return std::ranges::find(consumers_, operand) == consumers_.end() &&
                      property(*operand);
             });
    });
  }
  LoopRole ChunkLoop() const;
  DotPosition PositionOf(Scalar chunk) const override;
  void TakeChunk(ArrayId sums, Scalar chunk, int64_t count);
  void TakeSums(ArrayId sums, Scalar chunk);
  void ExchangePairs();
  void Exchange(int64_t thread_bit, int64_t fragment_bit);
  // `in_piece`: the first column of the chunk in its piece (StagedResults).
  void StoreChunk(const DotPosition& chunk, Scalar in_piece);

  TensorEpilogue epilogue_;
  StagedResults staged_;
  std::vector<const Instr*> consumers_;  // the dot, and what depends on it
  Layout layout_{};
  int64_t store_lanes_ = 1;  // adjacent results that a thread stores at once
  ArrayId chunk_{};
  Tile tile_;
  Scalar warp_, lane_, group_;
};

}  // namespace tokamak::gpu
