#pragma once

#include <algorithm>
#include <optional>

#include "gen/contract_tiling.h"
#include "gen/dot_operand.h"
#include "gen/element.h"
#include "gen/generator.h"

namespace tokamak {

// The sums of one tile of a dot's results after the other: panels of both sides, computed by the
// element code and put in the order that the processor multiplies in (unless they lie so already),
// then multiplied.
class DotTile {
 public:
  struct Setting {
    const Region& region;
    const Machine& machine;
    KernelBuilder& b;
    ElementEmitter& emitter;
  };
  DotTile(const DotTile&) = delete;
  DotTile& operator=(const DotTile&) = delete;
  DotTile(const Setting& setting, const Instr& dot, const Tiling& tiling);

  // Lhs of each tile will be in the array that this makes, rows `lhs_pitch()` apart, when its sums
  // are made. In place of a panel; before MakeArrays.
  ArrayId MakeLhs();
  int64_t lhs_pitch() const { return lhs_pitch_; }
  // Writes what it is padded with; once for all tiles of a task.
  void PadLhs();
  void MakeArrays();
  // Sums go to this array, whose rows are as the result's, in place of one of their own: before
  // MakeArrays, where MayWriteTo says so.
  void WriteTo(ArrayId array) { output_ = array; }
  bool MayWriteTo() const;

  // The batch of the tiles that follow.
  void BeginBatch(Scalar batch);
  // Puts the right side in order for all tiles that follow; it is one panel. Else each tile does.
  void ShareRhs(Scalar column);
  void Emit(Scalar row, Scalar column);

  const Instr& dot() const { return dot_; }
  // What has the sums: the dot, or what takes the blocks of its columns together.
  const Instr& result() const { return *result_; }
  const DotSides& sides() const { return sides_; }
  const Tiling& tiling() const { return t_; }
  Dims ColumnDims() const;  // of the result
  // Whether tiles can have several parts of the columns.
  bool TakesParts() const;
  // The sum of result (i, j) of the tile is at i * tiling().Width() + j, of this type.
  ArrayId sums() const { return sums_; }
  ElementType sum_type() const;
  ElementType type() const;  // of what is multiplied
  // Where the batch is, in its dimensions.
  const Coordinates& batch_at() const { return batch_at_; }

 private:
  struct Side : DotOperand {
    // Read as it lies in memory: distances along its rows (columns) and along the depth.
    bool direct = false;
    int64_t free_distance = 0, depth_distance = 0;
  };

  void FindSides();
  void FindPlaces(Side& side);
  void FindResult();
  bool IsInput(const Side& side) const;
  int64_t SquareSide() const;
  bool NeedsTurn(const Side& side) const;
  bool LhsLiesAcross() const;
  Scalar ElementOf(const Side& side, Scalar panel, Scalar free, Scalar depth);
  Scalar LhsPlace(Scalar row, Scalar depth);
  Scalar RhsPlace(Scalar block, Scalar in_block, Scalar group, int64_t in_group);
  void PackLhs(Scalar panel);
  void PackRhs(Scalar panel);
  void Turn(const Side& side, Scalar panel);
  void StoreTurned(bool is_lhs, int64_t lanes, Scalar free_at, Scalar depth_at);
  bool RhsMeets() const;
  int64_t SumsPitch() const { return output_ ? sides_.n : t_.Width(); }
  bool RhsIsReady() const { return rhs_.direct || rhs_lies_in_blocks_; }
  int64_t Apart(int64_t row) const;
  int64_t BlockColumns() const;
  int64_t BlockRows() const;
  template <typename Body>
  void ForBlocks(int64_t total, int64_t block, Body&& body);
  Scalar PlaceOf(const Side& side, Scalar along, Scalar panel);
  ArrayId InputArray(const Instr& instr) const;
  void Panel(Scalar panel, bool fresh);

  const Region& region_;
  const Machine& machine_;
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Instr &dot_, *result_;
  DotSides sides_;
  Tiling t_;
  Side lhs_, rhs_;
  ArrayId sums_{}, lhs_panel_{}, rhs_panel_{}, square_{}, stage_{};
  bool lhs_is_made_ = false, rhs_is_shared_ = false;
  bool rhs_lies_in_blocks_ = false;  // as it is in memory
  int64_t lhs_pitch_ = 0;
  std::optional<ArrayId> output_;
  Scalar output_at_;
  Coordinates batch_at_;
  Scalar batch_, row_, column_;
};

// Runs body(element) for vectors of `lanes` over `count`, the last one overlapping.
template <typename Body>
void ForVectors(KernelBuilder& b, int64_t count, int64_t lanes, Body&& body) {
  lanes = std::min(lanes, PowerBelow(count));
  b.For("v", LoopRole::kSerial, b.Index(CeilDiv(count, lanes)), [&](Scalar v) {
    Scalar begin = v * b.Index(lanes);
    if (count % lanes != 0) begin = LesserOf(begin, b.Index(count - lanes));
    if (lanes == 1) return body(begin);
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) { body(begin + l); });
  });
}

}  // namespace tokamak
