#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "gen/dot_dimensions.h"
#include "gen/dot_operand.h"
#include "gen/gpu/affine_view.h"
#include "gen/gpu/operand_tensor.h"
#include "gen/gpu/operand_view.h"
#include "gen/gpu/tensor_form.h"
#include "gen/gpu/window_tiling.h"
#include "gen/region.h"
#include "gen/schedule.h"
#include "kernel/kernel.h"
#include "support/ceil_div.h"

// Tile sizes of dots that GPUs compute with asynchronous multiplies (Staging::kBulk): the operands
// are copied to shared memory by the bulk copy engine, and warpgroups multiply from there. The sum
// of a result adds its terms in the order of K, whatever the tiling: tile sizes do not change
// results.
//
//   thread block = 128 producer threads, of which one starts the copies, and `warpgroups` of 128
//                  threads, each with `inner_rows` x `columns` results of the tile in registers.
//                  With fewer inner_rows than rows, the warpgroups share each tile. Otherwise they
//                  take turns (`alternates`): while one multiplies its tile, the other one stores
//                  the results of the tile before.
//                  An operand that is not copied to its panels as it is in memory is stored there
//                  by all producer threads (PanelSource)
//   stages       = panels of both operands in shared memory, each with two mbarriers: `full` when
//                  the copies have come, `empty` when all warps have multiplied
//   grid         = at most one thread block per SM; a block computes every blocks-th tile
//
// A panel has the 128-byte rows that copies and multiplies swizzle (MatrixMultiply::kPanelBytes),
// along K or along the rows (columns) of the result, whichever is adjacent in memory. Panels of
// TF32 and of 8-bit types are always along K.

namespace tokamak::gpu {

inline constexpr int64_t kWarpgroupRows = MatrixMultiply::kWarpgroupRows,
                         kWarpgroupThreads = MatrixMultiply::kWarpgroupThreads;

struct TensorTiling {
  TensorForm form;
  TensorOperand lhs, rhs;
  int64_t rows = 0, columns = 0, depth = 0;  // of a tile and its panels
  int64_t inner_rows = 0, warpgroups = 0;    // rows of a warpgroup, and their number
  int64_t stages = 0, group = 1;
  int64_t raw_stages = 0;  // raw panels of converted operands in shared memory
  int64_t panels = 0, row_tiles = 0, column_tiles = 0;
  int64_t batch = 1;
  int64_t blocks = 0;  // of the grid
  // Arrays, and boxes of results of each warp, for which shared memory is left (tensor_epilogue.h).
  int64_t result_operands = 0, result_boxes = 1;
  double result_flops = 0;  // operations per result of its consumers, in units of ops.def
  // If operands are affine views: then the copies are WindowBoxes, and rows of tiles and panels
  // along K are numbered as there.
  std::optional<WindowTiling> window = std::nullopt;

  int64_t WarpgroupsOfTile() const { return rows / inner_rows; }
  bool Alternates() const { return warpgroups > WarpgroupsOfTile(); }
  int64_t consumers() const { return warpgroups * MatrixMultiply::kWarpgroupThreads; }
  int64_t threads() const { return consumers() + MatrixMultiply::kWarpgroupThreads; }
  int64_t tiles() const { return batch * row_tiles * column_tiles; }
  int64_t line() const { return form.line(); }
  // Columns of rhs in shared memory: whole panels. A multiply uses `columns` of them.
  int64_t LoadedColumns() const {
    return rhs.panels_are_k_major ? columns : RoundUp(columns, line());
  }
  bool Converts() const {
    return lhs.source == PanelSource::kConverted || rhs.source == PanelSource::kConverted;
  }
  int64_t Multiplies() const { return inner_rows / MatrixMultiply::kWarpgroupRows; }
  int64_t AccumulatorsPerThread() const {
    return inner_rows * columns / MatrixMultiply::kWarpgroupThreads;
  }
};

// Columns of the results that a warp stores at once. Chosen: 16 sums of each thread, few enough
// registers beside the others, and the consumers' code is not unrolled further.
inline constexpr int64_t kResultColumns = 32;

// A dot, and which of its operands are in memory: inputs of its region, or views of them.
struct TensorDot {
  const Instr& dot;
  const DotDimensions& dot_dims;
  std::array<bool, 2> is_input{};
  std::array<OperandView, 2> views{};  // without array: the input is the operand itself
  std::array<AffineView, 2> affine{};
  int64_t result_operands = 0, result_boxes = 1;  // (TensorTiling)
  double result_flops = 0;
};
TensorDot TensorDotOf(const FusedRegion& region, const Instr& dot, const DotDimensions& dot_dims);

// Whether the machine has the instructions and the dot the types and sizes for it; returns why not,
// empty if `tiling` has its operands and the form that is fastest for them.
std::string WhyNoTensorDot(const TensorDot& tensor, const Machine& machine, TensorTiling& tiling);
// The schedules of a dot with Staging::kBulk, the preferred one first; empty if WhyNoTensorDot.
std::vector<Schedule> TensorSchedules(const TensorDot& tensor, const Machine& machine);
// Returns why the schedule does not fit the dot or the machine, empty if `tiling` is set.
std::string ExpandTensorSchedule(const TensorDot& tensor, const Schedule& schedule,
                                 const Machine& machine, TensorTiling& tiling);

// The tiling in this form for operands that are stored as its panels are, these ones.
TensorTiling KMajorTiling(const TensorTiling& tiling, const TensorForm& form,
                          const std::array<bool, 2>& operands);

// Sets the form, and how panels of both operands are stored for it.
void SetForm(TensorTiling& tiling, const TensorForm& form);

// The sizes of a dot.
struct DotSizes {
  int64_t batch = 1, m = 1, n = 1, k = 1;
};
// Predicted microseconds of the kernel of a dot with these sizes, with the best tiles. `tiling` has
// the form and the operands; with a window, its boxes decide m and k. `lanes`, for lhs and rhs: 0
// if the bulk copy engine reads the operand, else the elements of an access of the producer's
// threads, which then read it.
double TensorTime(const TensorTiling& tiling, const DotSizes& dot_sizes, const Machine& machine,
                  const std::array<int64_t, 2>& lanes = {});
double TensorTime(const TensorTiling& tiling, const DotDimensions& dot_dims, const Machine& machine,
                  const std::array<int64_t, 2>& lanes = {});
// That number for an operand that the bulk copy engine cannot address.
int64_t ProducerLanes(const DotOperand& side, const TensorForm& form, size_t operand);

}  // namespace tokamak::gpu
