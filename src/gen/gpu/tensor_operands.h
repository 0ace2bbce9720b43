#pragma once

#include <array>

#include "gen/gpu/dot_panel.h"
#include "gen/gpu/dot_results.h"
#include "gen/gpu/tensor_tiling.h"
#include "gen/gpu/warp_roles.h"
#include "kernel/builder.h"

// The operands of a dot with asynchronous multiplies in shared memory: the producer fills stages
// with a panel of each, the warpgroups multiply from there (tensor_tiling.h has the terms).

namespace tokamak::gpu {

// The position of tile number `tile` of a dot.
DotPosition TilePositionOf(const TensorTiling& tiling, const DotDimensions& dot_dims, Scalar tile);

class TensorOperands {
 public:
  TensorOperands(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                 const Instr& dot, const DotDimensions& dot_dims, const TensorTiling& tiling);

  // Declares arrays and mbarriers.
  void Declare();
  // Fills the stages for all tiles of the block. `thread` is the number of a producer's thread.
  void Produce(Scalar block, Scalar thread);
  int64_t ProducerRegisters() const;

  // Multiplies all panels of the block's i-th tile. `group` is the number of the warpgroup among
  // those that share the tile. Calls started() when the last multiply has been started.
  template <typename Started>
  void Multiply(ArrayId sums, Scalar i, Scalar group, Scalar lane, Started&& started) {
    MultiplyPanels(sums, i, group, lane);
    started();
    FinishPanels(sums, i, lane);
  }

 private:
  struct Side {
    const TensorOperand* tensor = nullptr;
    DotOperand operand;
    bool is_lhs = false;
    ScalarType type{};  // of the panels
    int64_t parts = 1;
    ArrayId input{}, stages{}, raw{};
    int64_t along = 0;  // rows (columns) of a tile
    int64_t size = 0;   // elements of a panel

    bool Is(PanelSource source) const { return tensor->source == source; }
  };
  // A copy of the elements of a side at `position`, panel `k` along K.
  struct Source {
    const DotPosition& position;
    Scalar k;
  };

  Side DeclareSide(const char* name, const TensorOperand& tensor, size_t operand, int64_t along);
  Scalar NumberOf(Scalar i, Scalar k);
  bool Fills() const { return !lhs_.Is(PanelSource::kCopied) || !rhs_.Is(PanelSource::kCopied); }
  bool CopiesBeside() const;
  int64_t CopiedBytes(PanelSource source) const;

  void FillStages(Scalar block);
  void FillStage(const PipelineStage& stage, Scalar number, const Source& source);
  void StartRawCopies(Scalar block, Scalar number, Scalar count);
  void StartCopies(PanelSource which, ArrayId mbarriers, Scalar index, const Source& source);
  void Copy(const Side& side, ArrayId mbarriers, Scalar index, const Source& source);
  std::vector<TileCopy::Dimension> WindowBoxesOf(const Side& side, int64_t first,
                                                 const Source& source);
  TileCopy::Dimension BoxOf(const Side& side, const TensorOperand::Dimension& dimension,
                            int64_t first, const Source& source);

  void Convert(const Side& side, Scalar stage, Scalar raw_stage);
  void Compute(const Side& side, Scalar stage, const Source& source);
  // The first of a thread's adjacent elements in a panel: the indices of its line and in the line,
  // along the free dimension of the tile, and along K.
  struct PanelPosition {
    Scalar line, in_line, along, depth;
  };
  PanelPosition PositionOf(const Side& side, Scalar vector, int64_t lanes);
  Scalar PanelIndex(const Side& side, const PanelPosition& at, Scalar lane);
  void StoreParts(const Side& side, Scalar stage, Scalar index, Scalar value);
  void StoreElement(const Side& side, Scalar stage, Scalar index, Scalar stored);
  template <typename RawIndex, typename ElementAt>
  void Move(const Side& side, Scalar stage, int64_t lanes, RawIndex&& raw_index,
            ElementAt&& element);

  void MultiplyStage(ArrayId sums, Scalar stage, Scalar group);
  void MultiplyPanels(ArrayId sums, Scalar i, Scalar group, Scalar lane);
  void AddPartialSums(ArrayId sums, Scalar i, Scalar group, Scalar lane);
  void FinishPanels(ArrayId sums, Scalar i, Scalar lane);
  void MultiplyPart(ArrayId sums, Scalar stage, Scalar row, int64_t at,
                    const std::array<int64_t, 2>& parts);
  void ArriveOfWarp(ArrayId mbarriers, Scalar index, Scalar thread);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Instr& dot_;
  const DotDimensions& dot_dims_;
  const TensorTiling& t_;
  Side lhs_, rhs_;
  std::array<DotPanels, 2> elements_;
  ArrayId full_{}, empty_{}, raw_full_{}, raw_empty_{}, partial_sums_{};
  Scalar thread_;
};

}  // namespace tokamak::gpu
