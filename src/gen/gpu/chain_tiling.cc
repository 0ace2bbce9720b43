#include "gen/gpu/chain_tiling.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/dot_operand.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/operand_view.h"
#include "gen/gpu/warp_roles.h"
#include "gen/library/dot.h"
#include "gen/roots.h"

namespace tokamak::gpu {
namespace {

struct ChainTile {
  int64_t rows, columns, stages;
};
// Tiles of preferred schedules, in this order: the first that fits registers and shared memory.
// Rows, columns, stages. Measured on H200: 128 x 128 is the fastest of the hand-written kernels for
// head sizes of 64 and 128 (bench/peers/hopper_attention/README.md). One warpgroup for few rows.
constexpr ChainTile kChainTiles[] = {
    {128, 128, 2}, {128, 64, 2}, {64, 128, 2}, {64, 64, 2}, {64, 64, 1}};
// Registers of a thread that are left for statistics of rows, addresses and temporary values.
// Chosen: a softmax with a mask does not spill.
constexpr int64_t kChainOtherRegisters = 56;
// Elements: the depth of a multiply instruction, and the unit of its columns (PTX ISA, wgmma).
constexpr int64_t kDepthUnit = 16, kColumnUnit = 8;

// The dimensions of an operand, and those of the scores that its batch dimensions run along.
struct SideDims {
  Dims batch, free, batch_along;
};

const Instr& DotOf(const DotChain& chain, const ChainSide& side) {
  return side.is_of_product ? *chain.product : *chain.scores;
}

SideDims SideDimsOf(const DotChain& chain, const DimsAlong& along, const ChainSide& side) {
  const Instr& dot = DotOf(chain, side);
  DotDimensions dot_dims(dot);
  SideDims dims;
  dims.batch = side.operand == 0 ? dot_dims.attrs.lhs_batch : dot_dims.attrs.rhs_batch;
  dims.free = side.operand == 0 ? dot_dims.lhs_free : dot_dims.rhs_free;
  for (size_t i = 0; i < dims.batch.size(); ++i) {
    if (!side.is_of_product) {
      bool is_unit = dot.shape().dim(i) == 1;
      dims.batch_along.push_back(is_unit ? DimsAlong::kUnit : static_cast<int64_t>(i));
      continue;
    }
    const Dims& of_weights =
        chain.weights_operand == 0 ? dot_dims.attrs.lhs_batch : dot_dims.attrs.rhs_batch;
    dims.batch_along.push_back((*along.Of(chain.weights()))[static_cast<size_t>(of_weights[i])]);
  }
  if (!side.has_rows) return dims;
  // Dimensions of rows that count as batch dimensions.
  size_t first = dims.batch.size() + (side.operand == 0 ? 0 : dot_dims.lhs_free.size());
  Dims rows;
  for (size_t i = 0; i < dims.free.size(); ++i) {
    auto dim = static_cast<int64_t>(first + i);
    bool is_batch = std::ranges::count(chain.batch, dim) > 0;
    if (!is_batch) rows.push_back(dims.free[i]);
    if (!is_batch) continue;
    dims.batch.push_back(dims.free[i]);
    dims.batch_along.push_back(dim);
  }
  dims.free = std::move(rows);
  return dims;
}

// Sets the tensor of an operand in this order of contracted dimensions; false if the copy engine
// cannot read it.
bool SetTensor(ChainSide& side, const FusedRegion& region, const ChainRegion& found,
               const std::pair<Dims, Dims>& order, ScalarType type) {
  const Instr& dot = DotOf(found.chain, side);
  OperandView view = OperandViewOf(region, *dot.operand(side.operand));
  if (view.array == nullptr) return false;
  SideDims dims = SideDimsOf(found.chain, *found.along, side);
  DotDimensions dot_dims(dot);
  DotOperand operand(dot, dot_dims, side.operand);
  operand.batch = &dims.batch;
  operand.free = &dims.free;
  side.tensor =
      TensorOperandOf(operand, side.operand == 0 ? order.first : order.second, view, type);
  side.batch = std::move(dims.batch_along);
  return side.tensor.IsBulk();
}

// The operands of both dots.
std::string SetOperands(const FusedRegion& region, const ChainRegion& found, ChainTiling& t) {
  const DotChain& chain = found.chain;
  t.rows_side.has_rows = t.values_side.is_of_product = true;
  t.rows_side.operand = chain.row_operand;
  t.columns_side.operand = 1 - chain.row_operand;
  t.values_side.operand = 1 - chain.weights_operand;
  auto has_order = [&](const Instr& dot, std::vector<ChainSide*> sides) {
    std::vector<std::pair<Dims, Dims>> orders = ContractingOrders(dot.attrs<DotAttrs>());
    return std::ranges::any_of(orders, [&](const std::pair<Dims, Dims>& order) {
      return std::ranges::all_of(
          sides, [&](ChainSide* side) { return SetTensor(*side, region, found, order, t.type); });
    });
  };
  bool fits = has_order(*chain.scores, {&t.rows_side, &t.columns_side}) &&
              has_order(*chain.product, {&t.values_side});
  return fits ? "" : "an operand of the chain is not in memory, or the copy engine cannot read it";
}

std::string WhyNoTypes(const DotChain& chain, const Machine& machine, ScalarType& type) {
  if (!machine.async_multiply) return "the machine has no asynchronous multiplies";
  for (const Instr* dot : {chain.scores, chain.product}) {
    if (!CanUseContract(*dot, machine)) return "a dot of the chain is too small";
    ScalarType own = FactorTypeOf(*dot, machine);
    if (own != ScalarType::kBF16 && own != ScalarType::kF16)
      return "asynchronous multiplies are for bf16 and f16";
    if (dot == chain.product && own != type) return "the dots multiply different types";
    type = own;
    for (const Instr* operand : dot->operands())
      if (operand->shape().type() != DotElementType(type))
        return "the factors have another type than that in which they are multiplied";
  }
  return "";
}

int64_t SharedBytesOf(const ChainTiling& t) {
  int64_t elements = t.rows_side.size() + t.stages * (t.columns_side.size() + t.values_side.size());
  // Alignment, and mbarriers of 8 bytes.
  return MatrixMultiply::kPanelAlignment + elements * BytesOf(t.type) + (2 + 4 * t.stages) * 8;
}

// Sums of both dots, and the weights: two in a register.
int64_t RegistersOf(const ChainTiling& t) {
  return (t.columns + t.columns / 2 + t.width) * kWarpgroupRows / kWarpgroupThreads;
}

std::string WhyNotTile(const ChainTiling& t, const Schedule& s) {
  if (t.rows % kWarpgroupRows != 0 || t.rows > TileCopy::kMaxBox)
    return "tile: not a multiple of 64 rows up to 256";
  if (t.columns % kWarpgroupRows != 0 || t.columns > TileCopy::kMaxBox)
    return "tile: not a multiple of 64 columns up to 256";
  if (s.tile_depth != t.depth) return "tile: its depth is that of the first dot";
  if (s.inner_rows != kWarpgroupRows || s.inner_columns != t.width)
    return "inner: a warpgroup has 64 rows of all columns";
  if (t.threads() != s.threads || t.threads() > kMaxThreadsPerBlock)
    return "threads: the warpgroups of the tile and the producer have " +
           std::to_string(t.threads());
  if (int64_t most = ConsumerRegisters(t.consumers(), kCopyRegisters) - kChainOtherRegisters;
      RegistersOf(t) > most)
    return "tile: a thread's sums take more than " + std::to_string(most) + " registers";
  return t.stages >= 1 ? "" : "stages: at least 1";
}

Schedule ScheduleOfTile(const ChainTile& tile, const DotDimensions& scores, int64_t width) {
  Schedule s;
  s.tile_rows = tile.rows;
  s.tile_columns = tile.columns;
  s.tile_depth = RoundUp(scores.k, kDepthUnit);
  s.inner_rows = kWarpgroupRows;
  s.inner_columns = width;
  s.threads = tile.rows / kWarpgroupRows * kWarpgroupThreads + kWarpgroupThreads;
  s.stages = tile.stages;
  s.staging = Staging::kBulk;
  return s;
}

// Columns of the product.
int64_t WidthOf(const DotChain& chain, const DotDimensions& product) {
  return chain.weights_operand == 0 ? product.n : product.m;
}

// Whether values with dimensions `along` an array have one element for each of its elements.
// `from`: the array; `without`: a dimension that they do not have.
bool HasAllDims(const Dims& along, const Instr& from, std::optional<int64_t> without) {
  for (int64_t d = 0; d < from.shape().rank(); ++d) {
    bool has = from.shape().dim(static_cast<size_t>(d)) != 1 && without != d;
    if (std::ranges::count(along, d) != (has ? 1 : 0)) return false;
  }
  return std::ranges::count(along, DimsAlong::kSame) == 0;
}

// Roots are values of rows, or have the elements of the product.
bool IsChainRoot(const ChainRegion& found, const Instr& root) {
  if (!root.shape().IsArray()) return false;
  const DotChain& chain = found.chain;
  if (const Dims* along = found.along->Of(root))
    return chain.IsOfRows(*along) && HasAllDims(*along, *chain.scores, chain.column);
  const Dims* along = found.along_product->Of(root);
  if (along == nullptr && root.op() == Op::kReshape)
    along = found.along_product->Of(*root.operand(0));
  return along != nullptr && HasAllDims(*along, *chain.product, std::nullopt);
}

}  // namespace

int64_t ChainSide::panels() const {
  return CeilDiv(tensor.is_k_major ? depth : free, line);
}

bool HasSeveralDots(const FusedRegion& region) {
  return std::ranges::count(region.instrs, Op::kDot, &Instr::op) > 1;
}

std::string FindChain(const FusedRegion& region, ChainRegion& found) {
  const Instr* product = nullptr;
  for (const Instr* instr : region.instrs)
    if (instr->op() == Op::kDot) product = instr;
  if (product == nullptr || std::ranges::count(region.instrs, Op::kDot, &Instr::op) != 2)
    return "it is no chain of two dots";
  std::optional<DotChain> chain = DotChainOf(*product);
  if (!chain || std::ranges::find(region.instrs, chain->scores) == region.instrs.end())
    return "its dots are no chain";
  found.chain = *chain;
  found.along.emplace(*chain->scores);
  found.along_product.emplace(*product);
  std::vector<const Instr*> before;
  for (const Instr* instr : region.instrs) {
    if (instr == product) continue;
    DimsAlong& along = *found.along_product;
    bool added = along.Add(*instr);
    // A root may combine dimensions: its elements have the same order.
    bool is_flat = instr->op() == Op::kReshape && std::ranges::count(region.roots, instr) > 0;
    if (added && along.Of(*instr) == nullptr) {
      added = found.along->Add(*instr);
      before.push_back(instr);
      if (instr->op() == Op::kReduce && found.along->Of(*instr) != nullptr)
        added = added && chain->IsOfRows(*found.along->Of(*instr));
    } else if (instr->op() == Op::kReduce) {
      return "it reduces results of the second dot";
    }
    if (!added && !is_flat) return "it combines elements between the dots or after them";
  }
  for (const Instr* root : region.roots)
    if (!IsChainRoot(found, *root))
      return "a root is no value of rows and has other elements than the chain's results";
  if (std::string why = AnalyzeRunningChain(found.chain, before, *found.along, found.running);
      !why.empty())
    return why;
  found.live = LiveColumnsOf(found.chain, found.running, *found.along);
  return "";
}

std::string ExpandChainSchedule(const FusedRegion& region, const ChainRegion& found,
                                const Schedule& schedule, const Machine& machine,
                                ChainTiling& tiling) {
  ChainTiling t;
  const DotChain& chain = found.chain;
  if (std::string why = WhyNoTypes(chain, machine, t.type); !why.empty()) return why;
  if (std::string why = SetOperands(region, found, t); !why.empty()) return why;
  if (schedule.vector != 1 || schedule.split_k != 1) return "vector, split_k: 1 for bulk copies";
  DotDimensions scores(*chain.scores), product(*chain.product);
  t.rows = schedule.tile_rows;
  t.columns = schedule.tile_columns;
  t.stages = schedule.stages;
  t.depth = RoundUp(scores.k, kDepthUnit);
  t.width = RoundUp(WidthOf(chain, product), kColumnUnit);
  if (t.depth > TileCopy::kMaxBox || t.width > TileCopy::kMaxBox)
    return "the dots are too deep or too wide for one tile";
  for (ChainSide* side : {&t.rows_side, &t.columns_side, &t.values_side}) {
    side->depth = side->is_of_product ? t.columns : t.depth;
    side->line = MatrixMultiply::kPanelBytes / BytesOf(t.type);
  }
  t.rows_side.free = t.rows;
  t.columns_side.free = t.columns;
  t.values_side.free = t.width;
  if (std::string why = WhyNotTile(t, schedule); !why.empty()) return why;
  if (int64_t bytes = SharedBytesOf(t); bytes > kMaxSharedBytes)
    return "stages: they take " + std::to_string(bytes) +
           " bytes of shared memory, and a block has " + std::to_string(kMaxSharedBytes);
  t.row_tiles = CeilDiv(chain.row_count(), t.rows);
  t.column_tiles = CeilDiv(chain.column_count(), t.columns);
  t.batch = SizeAlong(chain.scores->shape().dims(), chain.batch);
  t.blocks = std::min(t.tiles(), machine.cores);
  tiling = std::move(t);
  return "";
}

std::vector<Schedule> ChainSchedules(const FusedRegion& region, const Machine& machine) {
  ChainRegion found;
  if (!FindChain(region, found).empty()) return {};
  DotDimensions scores(*found.chain.scores), product(*found.chain.product);
  int64_t width = RoundUp(WidthOf(found.chain, product), kColumnUnit);
  std::vector<Schedule> all;
  ChainTiling tiling;
  for (const ChainTile& tile : kChainTiles) {
    Schedule next = ScheduleOfTile(tile, scores, width);
    if (ExpandChainSchedule(region, found, next, machine, tiling).empty()) all.push_back(next);
  }
  // Without rows that would be padding.
  std::ranges::stable_sort(all, {}, [&](const Schedule& schedule) {
    return RoundUp(found.chain.row_count(), schedule.tile_rows) > kWarpgroupRows &&
                   found.chain.row_count() <= kWarpgroupRows
               ? 1
               : 0;
  });
  return all;
}

}  // namespace tokamak::gpu
