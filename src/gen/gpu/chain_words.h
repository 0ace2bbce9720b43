#pragma once

#include <vector>

#include "gen/element.h"
#include "gen/gpu/chain_tiling.h"

namespace tokamak::gpu {

// The packed preds of a chain whose other members are set.
std::vector<ChainWords> WordsOf(const FusedRegion& region, const ChainRegion& found);

// Preds along the scores that are stored as packed words (analysis/packed_preds.h), as those of
// dropout that several kernels need. The producer copies the words of each tile of the scores to
// shared memory, with as many stages as the operands have. A line is a row or a column of the tile,
// whichever the bits of a word do not run along, and has the words of kLinePreds preds.
class ChainPackedPreds {
 public:
  ChainPackedPreds(KernelBuilder& b, ElementEmitter& emitter, const ChainRegion& found,
                   const ChainTiling& tiling);

  void Declare();
  // The producer: waits for the stage of tile `number` and starts the copies. The tile begins at
  // this row and column; `scores_at`: coordinates of batch dimensions and outer columns.
  void Fill(Scalar number, Scalar row, Scalar column, const Coordinates& scores_at);
  // The other threads: before and after the uses of a tile. `lane`: of the thread in its warp.
  void Wait(Scalar number);
  void Release(Scalar lane, Scalar number);

  // A score of the tile: `unit` + `in_unit` is its column there; only `unit` is known when the
  // kernel is compiled.
  struct Place {
    Scalar number, tile_row, tile_column, row, unit, in_unit;
  };
  // Tells the emitter the preds of the score at these coordinates.
  void Memoize(const Place& place, const Coordinates& scores_at);

 private:
  struct Copied {
    const ChainWords* words = nullptr;
    ArrayId input{}, tiles{}, full{}, empty{};
    int64_t lines = 0;
  };
  Scalar StageOf(Scalar number) { return number % b_.Index(t_.stages); }
  Scalar ParityOf(Scalar number) { return number / b_.Index(t_.stages) % b_.Index(2); }
  Scalar BitAt(const Copied& copied, const Place& place);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const ChainRegion& found_;
  const ChainTiling& t_;
  std::vector<Copied> copied_;
};

}  // namespace tokamak::gpu
