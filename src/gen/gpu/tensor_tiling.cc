#include "gen/gpu/tensor_tiling.h"

#include <algorithm>
#include <array>
#include <limits>

#include "cost/rates.h"
#include "cost/units.h"
#include "gen/contract.h"
#include "gen/dot_operand.h"
#include "gen/gpu/gpu.h"
#include "gen/library/dot.h"

namespace tokamak::gpu {
namespace {

struct TileChoice {
  int64_t rows, columns, inner_rows, warpgroups, stages;
};
// Tiles of preferred schedules: rows and columns of results, warpgroups, panels in shared memory.
// Larger tiles take less of its bandwidth. Elements. Chosen: what the accumulators and shared
// memory of an SM hold (128 x 256, with 4 panels), and the steps down to fewer results that fill
// the SMs with the tiles of a smaller dot.
constexpr std::array kTileChoices = {
    TileChoice{128, 256, 64, 2, 4},  TileChoice{128, 192, 64, 2, 5}, TileChoice{128, 160, 64, 2, 5},
    TileChoice{128, 128, 128, 2, 6}, TileChoice{64, 256, 64, 2, 5},  TileChoice{128, 128, 64, 2, 6},
    TileChoice{64, 128, 64, 2, 8},   TileChoice{128, 64, 128, 2, 8}, TileChoice{128, 64, 64, 2, 8},
    TileChoice{64, 64, 64, 2, 8},    TileChoice{64, 64, 64, 1, 8},   TileChoice{64, 32, 64, 1, 8}};
// K of about this size is lost while a block stores the results of a tile. Measured on H200: 2.5 us
// for a tile of 128 x 256 (8192 x 3072 x 768 bf16, K of 230), of which the adjacent tiles hide
// some.
constexpr double kTileOverheadDepth = 200;
// Minimum rows, columns and K. Chosen: below, most of a 64 x 32 tile or of a panel is padding.
constexpr int64_t kMinTensorRows = 33, kMinTensorColumns = 17, kMinTensorDepth = 33;
// Row tiles that are walked together, so that their rows of rhs are read from L2 once. Chosen: at
// 128 rows per tile, 8 of them and their columns fit L2 for K up to 8192.
constexpr int64_t kTensorGroup = 8;
// Registers of a warpgroup's thread that hold sums. Hardware: 232 are available; the rest is for
// addresses and the results' consumers.
constexpr int64_t kMaxTensorSums = 128;
// Warpgroups that have tiles of their own: one multiplies, the other one stores.
constexpr int64_t kAlternatingWarpgroups = 2;

// Bytes of a factor (bf16 and f16, definition), and factors of a row of a panel.
constexpr int64_t kFactorBytes = 2, kLineFactors = MatrixMultiply::kPanelBytes / kFactorBytes;
// Bytes of an mbarrier (PTX ISA).
constexpr int64_t kMbarrierBytes = 8;

int64_t StageBytes(const TensorTiling& t) {
  return (t.rows + t.LoadedColumns()) * t.depth * BytesOf(t.type);
}

int64_t SharedBytes(const TensorTiling& t) {
  // Mbarriers: two per stage, one per warpgroup.
  return MatrixMultiply::kPanelAlignment + t.stages * StageBytes(t) +
         (2 * t.stages + t.warpgroups) * kMbarrierBytes;
}

// The order of contracted dimensions in which each operand is a matrix; the strides along K and the
// free dimensions are in `strides`.
struct OperandStrides {
  std::optional<int64_t> depth, free;
};

OperandStrides StridesOf(const Dims& dims, const Dims& strides, const Dims& free,
                         const Dims& contracting) {
  return {LinearizedStride(dims, strides, contracting), LinearizedStride(dims, strides, free)};
}

// Whether the bulk copy engine reads an operand with these strides.
bool IsTensor(const OperandStrides& strides, int64_t depth, int64_t free) {
  if (!strides.depth || !strides.free) return false;
  return (*strides.depth == 1 && depth > 1) || (*strides.free == 1 && free > 1);
}

// Adds a dimension; false if its stride is not a multiple of 16 bytes.
bool AddDimension(TensorOperand& operand, TensorOperand::Dimension dimension, int64_t bytes) {
  int64_t unit = TileCopy::kAlignment / bytes;
  // The stride of a single element is arbitrary.
  if (dimension.size == 1) dimension.stride = unit;
  if (!operand.dimensions.empty() && dimension.stride % unit != 0) return false;
  operand.dimensions.push_back(dimension);
  return true;
}

// The element `start` as coordinates, such that no dimension reaches beyond the stride of a larger
// one. False if the first byte of a box would not be a multiple of 16 (TileCopy::kAlignment).
bool SetStarts(TensorOperand& operand, int64_t start, int64_t bytes) {
  std::vector<TensorOperand::Dimension*> dimensions;
  for (TensorOperand::Dimension& dimension : operand.dimensions)
    if (dimension.size > 1 || &dimension == &operand.dimensions[0])
      dimensions.push_back(&dimension);
  std::ranges::stable_sort(dimensions, std::greater(),
                           [](const TensorOperand::Dimension* d) { return d->stride; });
  for (TensorOperand::Dimension* dimension : dimensions) {
    dimension->start = start / dimension->stride;
    start %= dimension->stride;
  }
  return operand.dimensions[0].start % (TileCopy::kAlignment / bytes) == 0;
}

// The batch dimensions, as one if their strides allow it.
bool AddBatch(TensorOperand& operand, const Dims& dims, const Dims& strides, const Dims& batch,
              int64_t bytes) {
  using Along = TensorOperand::Dimension::Along;
  if (SizeAlong(dims, batch) == 1) return true;
  if (std::optional<int64_t> stride = LinearizedStride(dims, strides, batch))
    return AddDimension(
        operand,
        {.along = Along::kBatch, .is_all = true, .size = SizeAlong(dims, batch), .stride = *stride},
        bytes);
  for (size_t i = batch.size(); i-- > 0;) {
    auto d = static_cast<size_t>(batch[i]);
    if (dims[d] == 1) continue;
    if (!AddDimension(operand,
                      {.along = Along::kBatch, .batch = i, .size = dims[d], .stride = strides[d]},
                      bytes))
      return false;
  }
  return operand.dimensions.size() <= TileCopy::kMaxRank;
}

std::string WhyNotSizes(const TensorTiling& t, const Schedule& s) {
  if (t.rows % t.inner_rows != 0 || t.inner_rows % kWarpgroupRows != 0)
    return "inner: not a multiple of the 64 rows of a warpgroup that divides the tile";
  if (t.Alternates() && t.WarpgroupsOfTile() > 1)
    return "threads: only warpgroups that have a whole tile alternate";
  if (s.inner_columns != t.columns) return "inner: a warpgroup has all columns of the tile";
  if (t.columns % kResultColumns != 0 || t.columns > TileCopy::kMaxBox ||
      t.rows > TileCopy::kMaxBox)
    return "tile: not a multiple of 32 columns up to 256, or more than 256 rows";
  if (t.depth != t.line()) return "tile: its depth is not 128 bytes";
  if (!t.lhs.is_k_major && t.rows % t.line() != 0) return "tile: its rows are not full panels";
  if (t.AccumulatorsPerThread() > kMaxTensorSums)
    return "inner: a thread's sums take more than " + std::to_string(kMaxTensorSums) + " registers";
  if (t.threads() != s.threads || t.warpgroups < t.WarpgroupsOfTile() ||
      t.warpgroups > std::max<int64_t>(t.WarpgroupsOfTile(), kAlternatingWarpgroups))
    return "threads: not those of the producer and the tile's warpgroups, or of two that alternate";
  if (t.threads() > kMaxThreadsPerBlock) return "threads: a block has at most 1024";
  return t.stages > 1 ? "" : "stages: at least 2";
}

// Nanoseconds of the SM with the most tiles. Warpgroups that alternate multiply while results are
// stored.
double TimeOf(const TileChoice& choice, const DotDimensions& dot_dims, const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  int64_t tiles =
      dot_dims.batch * CeilDiv(dot_dims.m, choice.rows) * CeilDiv(dot_dims.n, choice.columns);
  auto waves = static_cast<double>(CeilDiv(tiles, machine.cores));
  // Per K: multiplications; bytes that copies write, and that the multiplies of 64 rows read.
  auto multiplies = static_cast<double>(choice.rows * choice.columns);
  auto lines =
      static_cast<double>(choice.rows + RoundUp(choice.columns, kLineFactors) +
                          choice.rows / kWarpgroupRows * (kWarpgroupRows + choice.columns));
  double ns = std::max(multiplies * rates.ns[static_cast<size_t>(Pipe::kTensor)],
                       lines * kFactorBytes * rates.panel_byte_ns);
  double of_tile = ns * static_cast<double>(dot_dims.k), store = ns * kTileOverheadDepth;
  if (choice.inner_rows < choice.rows || choice.warpgroups == 1) return waves * (of_tile + store);
  return waves * std::max(of_tile, store) + store;
}

Schedule ScheduleOf(const TileChoice& choice, ScalarType type) {
  Schedule s;
  s.tile_rows = choice.rows;
  s.tile_columns = choice.columns;
  s.tile_depth = MatrixMultiply::kPanelBytes / BytesOf(type);
  s.inner_rows = choice.inner_rows;
  s.inner_columns = choice.columns;
  s.threads = (choice.warpgroups + 1) * kWarpgroupThreads;
  s.stages = choice.stages;
  s.group = kTensorGroup;
  s.staging = Staging::kBulk;
  return s;
}

// Sets what the schedule says of a tiling that has its type and operands. Returns why it does not
// fit.
std::string SetSchedule(TensorTiling& t, const DotDimensions& dot_dims, const Schedule& schedule,
                        const Machine& machine) {
  t.rows = schedule.tile_rows;
  t.columns = schedule.tile_columns;
  t.depth = schedule.tile_depth;
  t.inner_rows = schedule.inner_rows;
  t.warpgroups = schedule.threads / kWarpgroupThreads - 1;
  t.stages = schedule.stages;
  t.group = schedule.group;
  if (std::string why = WhyNotSizes(t, schedule); !why.empty()) return why;
  if (schedule.vector != 1 || schedule.split_k != 1) return "vector, split_k: 1 for bulk copies";
  if (int64_t bytes = SharedBytes(t); bytes > kMaxSharedBytes)
    return "stages: they take " + std::to_string(bytes) +
           " bytes of shared memory, and a block has " + std::to_string(kMaxSharedBytes);
  t.panels = CeilDiv(dot_dims.k, t.depth);
  t.row_tiles = CeilDiv(dot_dims.m, t.rows);
  t.column_tiles = CeilDiv(dot_dims.n, t.columns);
  t.batch = dot_dims.batch;
  t.blocks = std::min(t.tiles(), machine.cores);
  return "";
}

}  // namespace

TensorOperand TensorOperandOf(const DotOperand& side, const Dims& contracting, bool is_input,
                              ScalarType type) {
  OperandView view;
  if (is_input) view = {side.instr, RowMajorStrides(*side.dims)};
  return TensorOperandOf(side, contracting, view, type);
}

TensorOperand TensorOperandOf(const DotOperand& side, const Dims& contracting,
                              const OperandView& view, ScalarType type) {
  using Along = TensorOperand::Dimension::Along;
  TensorOperand none;
  none.is_k_major = side.k_is_minor;
  const Dims& dims = *side.dims;
  if (view.array == nullptr) return none;
  OperandStrides strides = StridesOf(dims, view.strides, *side.free, contracting);
  int64_t depth = SizeAlong(dims, contracting), rows = SizeAlong(dims, *side.free);
  if (!IsTensor(strides, depth, rows)) return none;
  TensorOperand operand;
  operand.array = view.array;
  operand.is_k_major = *strides.depth == 1 && depth > 1;
  TensorOperand::Dimension along_depth{
      .along = Along::kDepth, .size = depth, .stride = *strides.depth};
  TensorOperand::Dimension along_free{.along = Along::kFree, .size = rows, .stride = *strides.free};
  if (!operand.is_k_major) std::swap(along_depth, along_free);
  int64_t bytes = BytesOf(type);
  bool fits = AddDimension(operand, along_depth, bytes) &&
              AddDimension(operand, along_free, bytes) &&
              AddBatch(operand, dims, view.strides, *side.batch, bytes);
  return fits && SetStarts(operand, view.start, bytes) ? operand : none;
}

TensorDot TensorDotOf(const FusedRegion& region, const Instr& dot, const DotDimensions& dot_dims) {
  std::array views = {OperandViewOf(region, *dot.operand(0)),
                      OperandViewOf(region, *dot.operand(1))};
  return {dot, dot_dims, {views[0].array != nullptr, views[1].array != nullptr}, views};
}

std::string WhyNoTensorDot(const TensorDot& tensor, const Machine& machine, TensorTiling& tiling) {
  if (!machine.async_multiply) return "staging: the machine has no asynchronous multiplies";
  const auto& [dot, dot_dims, is_input, views] = tensor;
  tiling.type = FactorTypeOf(dot, machine);
  if (tiling.type != ScalarType::kBF16 && tiling.type != ScalarType::kF16)
    return "staging: asynchronous multiplies are for bf16 and f16";
  for (const Instr* operand : dot.operands())
    if (operand->shape().type() != DotElementType(tiling.type))
      return "staging: the factors have another type than that in which they are multiplied";
  if (dot_dims.m < kMinTensorRows || dot_dims.n < kMinTensorColumns || dot_dims.k < kMinTensorDepth)
    return "staging: the dot is too small for the tiles of tensor cores";
  // The contracted dimensions have one order for both operands.
  auto operand_of = [&](size_t i, const Dims& contracting) {
    DotOperand side(dot, dot_dims, i);
    return views[i].array == nullptr ? TensorOperandOf(side, contracting, is_input[i], tiling.type)
                                     : TensorOperandOf(side, contracting, views[i], tiling.type);
  };
  auto set_operands = [&](const Dims& left, const Dims& right) {
    tiling.lhs = operand_of(0, left);
    tiling.rhs = operand_of(1, right);
    return tiling.lhs.IsBulk() && tiling.rhs.IsBulk();
  };
  for (const auto& [left, right] : ContractingOrders(dot_dims.attrs))
    if (set_operands(left, right)) return "";
  // An operand that is computed has the given order, which may be neither of those.
  set_operands(dot_dims.attrs.lhs_contracting, dot_dims.attrs.rhs_contracting);
  return "";
}

std::vector<Schedule> TensorSchedules(const TensorDot& tensor, const Machine& machine) {
  TensorTiling tiling;
  if (!WhyNoTensorDot(tensor, machine, tiling).empty()) return {};
  std::vector<TileChoice> choices(kTileChoices.begin(), kTileChoices.end());
  std::ranges::stable_sort(choices, {}, [&](const TileChoice& choice) {
    return TimeOf(choice, tensor.dot_dims, machine);
  });
  std::vector<Schedule> all;
  for (const TileChoice& choice : choices) {
    Schedule next = ScheduleOf(choice, tiling.type);
    TensorTiling expanded = tiling;
    if (SetSchedule(expanded, tensor.dot_dims, next, machine).empty()) all.push_back(next);
  }
  return all;
}

std::string ExpandTensorSchedule(const TensorDot& tensor, const Schedule& schedule,
                                 const Machine& machine, TensorTiling& tiling) {
  TensorTiling t;
  if (std::string why = WhyNoTensorDot(tensor, machine, t); !why.empty()) return why;
  std::string why = SetSchedule(t, tensor.dot_dims, schedule, machine);
  if (why.empty()) tiling = std::move(t);
  return why;
}

double TensorTime(const DotDimensions& dot_dims, const Machine& machine,
                  const std::array<int64_t, 2>& lanes) {
  const Rates& rates = RatesOf(machine);
  DotDimensions sizes = dot_dims;
  sizes.k = RoundUp(sizes.k, MatrixMultiply::kPanelBytes / BytesOf(ScalarType::kBF16));
  double least = std::numeric_limits<double>::infinity();
  for (const TileChoice& choice : kTileChoices) {
    double multiplies = TimeOf(choice, sizes, machine);
    int64_t tiles = sizes.batch * CeilDiv(sizes.m, choice.rows) * CeilDiv(sizes.n, choice.columns);
    double loads = 0;  // of a producer's thread, for all panels
    for (int64_t i : {0, 1})
      if (int64_t of_one = lanes[static_cast<size_t>(i)]; of_one > 0)
        loads += static_cast<double>((i == 0 ? choice.rows : choice.columns) * sizes.k) /
                 static_cast<double>(of_one * kWarpgroupThreads);
    loads *= static_cast<double>(CeilDiv(tiles, machine.cores));
    least = std::min(least, std::max(multiplies, loads * rates.panel_load_ns));
  }
  return least / kNsPerUs;
}

int64_t ProducerLanes(const DotOperand& side, int64_t bytes) {
  int64_t lanes = TileCopy::kAlignment / bytes;
  while (SizeAlong(*side.dims, side.k_is_minor ? *side.contracting : *side.free) % lanes != 0)
    lanes /= 2;
  return lanes;
}

}  // namespace tokamak::gpu
