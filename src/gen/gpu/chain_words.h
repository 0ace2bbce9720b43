#pragma once

#include <optional>
#include <vector>

#include "gen/element.h"
#include "gen/gpu/chain_tiling.h"

namespace tokamak::gpu {

// The live scores of a chain by lines, which are rows (columns, if not `is_of_columns`): those at
// line + first to line + last.
struct LiveLine {
  std::optional<int64_t> first, last;
};
LiveLine LiveLineOf(const LiveColumns& live, bool is_of_columns);

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
  // The other threads, before the uses of tile `number`, which begins at this row and column: waits
  // for it, and reads the words whose bits are columns. `row`: the thread's first row in the tile,
  // `column`: its first column in each fragment of accumulators.
  void Begin(Scalar number, Scalar tile_row, Scalar tile_column, Scalar row, Scalar column);
  // After the uses of the tile. `lane`: of the thread in its warp.
  void Release(Scalar lane, Scalar number);
  // Tells the emitter the preds of a score at these coordinates. `half`: which of the thread's
  // rows. The column: `pair` columns behind the first one in a fragment. `column_words`: of the
  // column, for all rows.
  void Memoize(Scalar half, Scalar fragment, Scalar pair, const std::vector<Scalar>& column_words,
               const Coordinates& scores_at);
  std::vector<Scalar> ReadColumn(Scalar fragment, Scalar pair);

 private:
  struct Copied {
    const ChainWords* words = nullptr;
    ArrayId input{}, tiles{}, full{}, empty{};
    ArrayId registers{};  // of the thread's rows, if bits are columns
    int64_t lines = 0;
  };
  int64_t WordsOfTile() const;
  Scalar IndexOf(const Copied& copied, Scalar line, Scalar first);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const ChainRegion& found_;
  const ChainTiling& t_;
  std::vector<Copied> copied_;
  // Of the tile that began last.
  Scalar number_, tile_row_, tile_column_, row_, column_;
};

}  // namespace tokamak::gpu
