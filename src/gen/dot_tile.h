#pragma once

#include <algorithm>
#include <optional>

#include "gen/contract_tiling.h"
#include "gen/dot_operand.h"
#include "gen/element.h"
#include "gen/generator.h"

// Emits one tile of a CPU matrix multiplication: pack a panel of each operand, multiply,
// accumulate.

namespace tokamak {

// Computes the sums of a dot tile by tile. Panels of both operands are computed by the element
// emitter and packed in the order in which the micro-kernel reads them, unless they already are in
// that order in memory; then they are multiplied.
//
//   DotTile tile(environment, dot, tiling);
//   optional: tile.DeclareLhs(), or tile.WriteTo(output) if tile.CanWriteTo()
//   tile.DeclareArrays();                     // before the grid loop
//   grid loop over tasks {
//     tile.BeginBatch(batch);
//     optional: tile.PackRhsOnce(column), if the task has several row tiles
//     with DeclareLhs: tile.ZeroLhsPadding()
//     for each tile of the task {
//       with DeclareLhs: store the rows of lhs to its array
//       tile.EmitTile(row, column);           // then read the results from tile.sums()
//     }
//   }
//
// Its arrays belong to one task and are used by one thread: no barriers, no double buffering. They
// are in Space::kShared, except the transposition square (Space::kRegisters). Staging on GPUs is
// another mechanism (gpu/contract_tiling.h).
class DotTile {
 public:
  struct Environment {
    const FusedRegion& region;
    const Machine& machine;
    KernelBuilder& b;
    ElementEmitter& emitter;
  };
  DotTile(const DotTile&) = delete;
  DotTile& operator=(const DotTile&) = delete;
  DotTile(const Environment& environment, const Instr& dot, const Tiling& tiling);

  // Declares an array that the caller fills with the lhs of each tile, row pitch `lhs_pitch()`,
  // before it emits the tile. It replaces the packed lhs panel. Call before DeclareArrays.
  ArrayId DeclareLhs();
  int64_t lhs_pitch() const { return lhs_pitch_; }
  // Zeroes the padding of the DeclareLhs array (rows and depth beyond the operand), once per task.
  void ZeroLhsPadding();
  // Declares the other arrays: sums, panels, transposition buffers.
  void DeclareArrays();
  // Writes sums directly to this array, which has the row pitch of the result, instead of sums().
  // Call before DeclareArrays. CanWriteTo: possible if the sums are the stored results, i.e. the
  // tile has a single panel along K, no column groups and no padding, and the result has
  // sum_type().
  void WriteTo(ArrayId array) { output_ = array; }
  bool CanWriteTo() const;

  // Sets the batch index of the following tiles.
  void BeginBatch(Scalar batch);
  // Packs rhs for the tiles that start at `column`, now and not in EmitTile: the following tiles of
  // the task share it. Requires a single panel along K.
  void PackRhsOnce(Scalar column);
  // Emits the sums of the tile whose first result is at (row, column) of the batch's m x n matrix.
  void EmitTile(Scalar row, Scalar column);

  const Instr& dot() const { return dot_; }
  // The instruction that the sums belong to: the dot, or the transpose and reshape that merge the
  // column blocks of a prepacked dot.
  const Instr& result() const { return *result_; }
  const DotDimensions& dot_dims() const { return dot_dims_; }
  const Tiling& tiling() const { return t_; }
  // Sizes of the result's dimensions that form n.
  Dims ColumnDims() const;
  // Whether a tile can cover several column groups (Tiling::column_groups).
  bool SupportsColumnGroups() const;
  // The array of the sums: result (i, j) of the tile is at i * tiling().TileColumns() + j, with
  // type sum_type().
  ArrayId sums() const { return sums_; }
  ElementType sum_type() const;
  ElementType factor_type() const;  // element type of the factors
  // The coordinates of the current batch.
  const Coordinates& batch_at() const { return batch_at_; }

 private:
  struct TileOperand : DotOperand {
    // Whether the multiply statement reads the operand from memory, without packing.
    bool direct = false;
    // Strides in memory along its free and its contracted dimensions, each linearized to one.
    int64_t free_stride = 0, k_stride = 0;
  };

  void ClassifyOperands();
  void FindLayout(TileOperand& side);
  void FindMergedResult();
  bool IsInput(const TileOperand& side) const;
  // Edge length, in elements, of the squares in which panels are transposed.
  int64_t TransposeTileSize() const;
  bool NeedsTranspose(const TileOperand& side) const;
  bool LhsIsTransposed() const;
  Scalar ElementOf(const TileOperand& side, Scalar panel, Scalar free, Scalar depth);
  Scalar LhsIndex(Scalar row, Scalar depth);
  Scalar RhsIndex(Scalar block, Scalar in_block, Scalar group, int64_t in_group);
  void PackLhs(Scalar panel);
  void PackRhs(Scalar panel);
  void Transpose(const TileOperand& side, Scalar panel);
  void StoreTransposed(bool is_lhs, int64_t lanes, Scalar free_at, Scalar depth_at);
  // Whether the row stride of a directly read rhs maps its rows to the same L1 cache sets.
  bool RhsRowsConflictInCache() const;
  int64_t SumsPitch() const { return output_ ? dot_dims_.n : t_.TileColumns(); }
  // Whether rhs needs no packing.
  bool RhsNeedsNoPacking() const { return rhs_.direct || t_.rhs_is_prepacked; }
  // Row pitch for rows of `row_length` elements, padded if they would conflict in the L1 cache.
  int64_t PaddedPitch(int64_t row_length) const;
  template <typename Body>
  void ForBlocks(int64_t total, int64_t block, Body&& body);
  // The index in an operand in memory of the first element of a panel, at index `free` of the
  // operand's free dimension.
  Scalar PanelIndex(const TileOperand& side, Scalar free, Scalar panel);
  ArrayId InputArray(const Instr& instr) const;
  // Packs and multiplies one panel. `overwrite`: the sums are stored, not accumulated.
  void MultiplyPanel(Scalar panel, bool overwrite);

  const FusedRegion& region_;
  const Machine& machine_;
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Instr &dot_, *result_;
  DotDimensions dot_dims_;
  Tiling t_;
  TileOperand lhs_, rhs_;
  // The last two transpose a panel whose operand is contiguous along the other dimension: a square
  // in registers, and, if its elements are computed instead of loaded, a buffer for them, so that
  // their code is a loop and not unrolled.
  ArrayId sums_{}, lhs_panel_{}, rhs_panel_{}, transpose_square_{}, transpose_source_{};
  bool lhs_is_caller_filled_ = false, rhs_is_packed_once_ = false;
  int64_t lhs_pitch_ = 0;
  std::optional<ArrayId> output_;
  Scalar output_index_;
  Coordinates batch_at_;
  Scalar batch_, row_, column_;
};

// Calls body(element) in vectors of `lanes` over `count` elements. The last vector may overlap the
// one before, so the body runs twice for some elements and must be idempotent.
template <typename Body>
void ForVectors(KernelBuilder& b, int64_t count, int64_t lanes, Body&& body) {
  lanes = std::min(lanes, FloorPowerOfTwo(count));
  b.For("v", LoopRole::kSerial, b.Index(CeilDiv(count, lanes)), [&](Scalar v) {
    Scalar begin = v * b.Index(lanes);
    if (count % lanes != 0) begin = LesserOf(begin, b.Index(count - lanes));
    if (lanes == 1) return body(begin);
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) { body(begin + l); });
  });
}

}  // namespace tokamak
