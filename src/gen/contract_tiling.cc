#include "gen/contract_tiling.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/element.h"
#include "gen/gpu/contract_tiling.h"
#include "gen/gpu/tensor_tiling.h"
#include "ir/dot_precision.h"

namespace tokamak {
namespace {

// Maximum rows and columns of a tile. Chosen: sums (256 KiB) and both panels fit in an L2 cache of
// 1 MiB. kMaxShallowRows: of a dot with k up to kShallowDepth. Chosen: moving the sums dominates
// there, and those of 64 rows stay closer to the L1 cache.
constexpr int64_t kMaxSide = 256, kMaxShallowRows = 64;
// Bytes of one row of a panel along the contracted dimension. Chosen: panels fit in L2.
constexpr int64_t kPanelBytes = 1024;
// Times that a panel may be smaller in order to need no padding. Chosen: below half the depth, the
// sums are loaded and stored more often than padding costs.
constexpr int64_t kSmallerPanel = 2;
// Tiles that splitting one yields: each keeps kMinOfTile (structure of the loop that splits).
constexpr int64_t kHalves = 2;
// Bytes of the sums of a tile of whole rows, and of its rhs panel. Chosen: together below L2.
// kWholeSumBytes: bytes of a sum, as if all were f32.
constexpr int64_t kWholeBytes = 256 << 10, kWholePanelBytes = 512 << 10, kWholeSumBytes = 4;
// Chains. Bytes per tile of rows. Chosen: intermediate rows stay in the L2 cache beside a panel.
// Bytes of an rhs that stays packed. Chosen: it fits in L2, so tiles do not pack it again. Minimum
// rows of a tile. Chosen: fewer reuse a packed panel too little. Elements packed per row of
// results. Chosen: beyond it, packing costs as much as the products.
constexpr int64_t kChainBytes = 128 << 10, kPackOnceBytes = 2 << 20, kMinRows = 16,
                  kMaxPackedPerRow = 4;
// Tiles that keep the cores of a large machine busy, whatever machine the kernel is built for.
// Multiplications per tile. Chosen: some microseconds of one core, above the cost of handing out a
// task. kChainTilesWanted: tasks of a chain. Chosen: they are uneven, so each thread gets several.
constexpr int64_t kTilesWanted = 16, kMinOfTile = 1 << 18, kChainTilesWanted = 4 * kTilesWanted;
// Several column blocks: bytes of lhs that stay in the L1 cache while the blocks of rhs stream
// through. Chosen: 32 KiB, the L1 cache of older cores, most of that of newer ones. Minimum rows.
// Chosen: with fewer, each block of rhs is loaded for too few products.
constexpr int64_t kBlockBytes = 32 << 10, kMinBlockRows = 8;
// Vectors per column block of rhs, for short and for long vectors (Machine::HasShortVectors).
// Chosen: the largest number that fits in registers together with the sums.
constexpr int64_t kShortVectorsOfBlock = 4, kLongVectorsOfBlock = 2;
// Dimensions of a prepacked rhs: column blocks, k, columns of a block (structure of what
// prepack-weights makes).
constexpr size_t kPrepackedRank = 3;
// AMX tiles (Intel): rows from which they pay off (chosen: the others of a tile are padding), rows
// and depth of a tile (hardware).
constexpr int64_t kWorthTiles = 4, kContractTileRows = 16, kTileDepth = 32;

TiledDimension CutInto(int64_t total, int64_t most, int64_t unit) {
  TiledDimension cut{.total = total};
  cut.count = CeilDiv(total, std::max(most / unit, int64_t{1}) * unit);
  cut.size = RoundUp(CeilDiv(total, cut.count), unit);
  cut.count = CeilDiv(total, cut.size);
  return cut;
}

}  // namespace

int64_t VectorsPerColumnBlock(const Machine& machine) {
  return machine.HasShortVectors() ? kShortVectorsOfBlock : kLongVectorsOfBlock;
}

int64_t ChooseRhsBlockWidth(const Instr& dot, const Machine& machine) {
  if (machine.is_gpu() || !CanUseContract(dot, machine)) return 0;
  ScalarType type = FactorTypeOf(dot, machine);
  DotDimensions dot_dims(dot);
  ElementType of = dot.operand(1)->shape().type();
  int64_t block =
      VectorsPerColumnBlock(machine) * machine.Lanes(type == ScalarType::kF64 ? 64 : 32);
  bool fits = VnniGroupSize(type) == 1 && StorageType(of) == type && !IsComplex(of) &&
              dot_dims.attrs.rhs_batch.empty() && dot_dims.n % block == 0;
  return fits ? block : 0;
}

int64_t PrepackedRhsBlockWidth(const Instr& dot, const Machine& machine) {
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  const Dims& dims = dot.operand(1)->shape().dims();
  if (dims.size() != kPrepackedRank || attrs.rhs_contracting != Dims{1}) return 0;
  return ChooseRhsBlockWidth(dot, machine) == dims[2] ? dims[2] : 0;
}

Tiling TilingOf(const Instr& dot, const DotDimensions& dot_dims, const Machine& machine,
                bool whole_rows, int64_t column_groups) {
  Tiling t;
  t.column_groups = column_groups;
  t.type = FactorTypeOf(dot, machine);
  bool tiles = t.type == ScalarType::kBF16 && machine.matrix_tiles && dot_dims.m >= kWorthTiles;
  int64_t bytes = BytesOf(t.type);
  t.lanes = machine.Lanes(t.type == ScalarType::kF64 ? 64 : 32);
  int64_t row_unit = t.row_unit = tiles ? kContractTileRows : 1;
  int64_t depth_unit = t.depth_unit = tiles ? kTileDepth : VnniGroupSize(t.type);
  t.rhs_block = PrepackedRhsBlockWidth(dot, machine);
  int64_t column_unit = std::max(t.lanes, t.rhs_block);
  // Prefer a panel size that needs no padding, if it is not too small.
  int64_t most = std::min(RoundUp(dot_dims.k, depth_unit), kPanelBytes / bytes);
  if (whole_rows) most = std::clamp(kWholePanelBytes / (dot_dims.n * bytes), depth_unit, most);
  t.depth = CutInto(dot_dims.k, most, depth_unit);
  for (int64_t size = most / depth_unit * depth_unit; size >= most / kSmallerPanel;
       size -= depth_unit) {
    if (dot_dims.k % size != 0) continue;
    t.depth = {.total = dot_dims.k, .size = size, .count = dot_dims.k / size};
    break;
  }
  int64_t rows = dot_dims.k <= kShallowDepth ? kMaxShallowRows : kMaxSide,
          columns = kMaxSide / column_groups;
  if (whole_rows) {
    columns = RoundUp(dot_dims.n, column_unit);
    rows = std::clamp(kWholeBytes / (columns * kWholeSumBytes), row_unit, rows);
  }
  auto cut = [&] {
    t.rows = CutInto(dot_dims.m, rows, row_unit);
    t.columns = CutInto(dot_dims.n / column_groups, columns, column_unit);
    return dot_dims.batch * t.rows.count * t.columns.count;
  };
  // Split the longer side while each tile keeps enough work.
  while (cut() < kTilesWanted &&
         t.rows.size * t.TileColumns() * dot_dims.k > kHalves * kMinOfTile) {
    if (!whole_rows && t.TileColumns() >= t.rows.size && columns > column_unit) {
      columns = std::max(columns / 2, column_unit);
    } else if (rows > row_unit) {
      rows = std::max(rows / 2, row_unit);
    } else {
      break;
    }
  }
  return t;
}

void SetMultiplyBlock(Tiling& t, const DotDimensions& dot_dims, const Machine& machine,
                      bool rhs_is_input) {
  t.rhs_is_prepacked = t.rhs_block > 0 && rhs_is_input && t.PaddedDepth() == dot_dims.k;
  // With short vectors few columns fit in registers at a time, and strided reads are slow (Neoverse
  // V1: 72 GFLOP/s per core by column blocks, 59 by rows of a panel). Long vectors prefetch their
  // rows (backend/cpu/emit_multiply.cc).
  t.multiply_columns = t.columns.size;
  if (t.rhs_is_prepacked) {
    t.multiply_columns = t.rhs_block;
  } else if (machine.HasShortVectors() && VnniGroupSize(t.type) == 1) {
    int64_t blocks = CeilDiv(t.columns.size, VectorsPerColumnBlock(machine) * t.lanes);
    t.multiply_columns = RoundUp(CeilDiv(t.columns.size, blocks), t.lanes);
  }
  t.multiply_rows = t.rows.size;
  if (t.multiply_columns == t.TileColumns()) return;
  int64_t most = std::max(kBlockBytes / (t.depth.size * BytesOf(t.type)), kMinBlockRows);
  t.multiply_rows = CeilDiv(t.rows.size, CeilDiv(t.rows.size, most));
}

std::optional<ChainTiling> TilingOfChain(const Instr& outer, const Instr* inner,
                                         const Machine& machine) {
  DotDimensions dot_dims(outer);
  ChainTiling chain;
  Tiling& t = chain.outer;
  t = TilingOf(outer, dot_dims, machine, false);
  int64_t bytes = BytesOf(t.type), unit = t.row_unit, packed_elements = dot_dims.n;
  if (dot_dims.n > kMaxSide || dot_dims.k > kMaxWholeRowElements) return std::nullopt;
  t.columns = CutInto(dot_dims.n, RoundUp(dot_dims.n, t.lanes), t.lanes);
  t.depth = CutInto(dot_dims.k, RoundUp(dot_dims.k, t.depth_unit), t.depth_unit);
  int64_t row_bytes =
      t.PaddedDepth() * bytes + t.columns.size * BytesOf(*AccumulatorScalarType(t.type));
  if (t.PaddedDepth() * t.columns.size * bytes > kPackOnceBytes) return std::nullopt;
  if (inner != nullptr) {
    DotDimensions of(*inner);
    Tiling& from = chain.inner;
    from = TilingOf(*inner, of, machine, true);
    from.depth = CutInto(of.k, RoundUp(of.k, from.depth_unit), from.depth_unit);
    if (from.PaddedDepth() * from.columns.size * BytesOf(from.type) > kPackOnceBytes)
      return std::nullopt;
    unit = std::max(unit, from.row_unit);
    row_bytes += from.columns.size * BytesOf(*AccumulatorScalarType(from.type)) +
                 from.PaddedDepth() * BytesOf(from.type);
    packed_elements += of.k;
  }
  t.rows = CutInto(dot_dims.m, std::max(kChainBytes / row_bytes, kMinRows), unit);
  chain.inner.rows = t.rows;
  // The largest number of tiles per task that leaves tasks for all threads, or, if that does not
  // amortize packing, for fewer threads.
  auto worth = [&] {
    return packed_elements <= kMaxPackedPerRow * chain.row_tiles_per_task * t.rows.size;
  };
  for (int64_t wanted : {kChainTilesWanted, kTilesWanted}) {
    for (int64_t tiles = t.rows.count; tiles >= 1; --tiles) {
      chain.row_tiles_per_task = tiles;
      if (t.rows.count % tiles == 0 && chain.tasks(dot_dims.batch) >= wanted) break;
    }
    if (worth()) return chain;
  }
  return std::nullopt;
}

namespace {

bool FitsS16(ElementType type) {
  return InfoOf(type).bits < 16 || type == ElementType::kS16;
}

// Whether products of these operands can be accumulated in the type `wide`. 32-bit integers wrap in
// any order.
bool MayMultiply(ElementType type, ElementType wide) {
  if (wide == ElementType::kF64) return IsReal(type);
  if (wide == ElementType::kF32) return IsReal(type) && type != ElementType::kF64;
  return IsInteger(wide) && IsInteger(type) && InfoOf(wide).bits <= 32 && InfoOf(type).bits <= 32;
}

}  // namespace

ScalarType FactorTypeOf(const Instr& dot, const Machine& machine) {
  auto all = [&](auto&& holds) {
    return holds(dot.operand(0)->shape().type()) && holds(dot.operand(1)->shape().type());
  };
  if (machine.is_gpu() && IsInteger(dot.shape().type())) return ScalarType::kS32;
  if (machine.is_gpu())
    for (ElementType half : {ElementType::kBF16, ElementType::kF16})
      if (all([&](ElementType type) { return type == half; })) return StorageType(half);
  if (IsInteger(dot.shape().type()))
    return all([](ElementType type) { return FitsS16(type); }) ? ScalarType::kS16
                                                               : ScalarType::kS32;
  if (machine.dots_bf16 && all([](ElementType type) { return type == ElementType::kBF16; }))
    return ScalarType::kBF16;
  return AccumulatorElementType(dot.shape().type()) == ElementType::kF64 ? ScalarType::kF64
                                                                         : ScalarType::kF32;
}

bool MultipliesTf32(const Instr& dot, const Machine& machine) {
  if (!machine.is_gpu() || FactorTypeOf(dot, machine) != ScalarType::kF32) return false;
  auto narrow = [](const Instr* operand) {
    ElementType type = operand->shape().type();
    return type == ElementType::kBF16 || type == ElementType::kF16 || InfoOf(type).bits <= 8;
  };
  if (narrow(dot.operand(0)) && narrow(dot.operand(1))) return true;
  return machine.tf32 && AllowsTf32(dot.attrs<DotAttrs>());
}

int64_t RecomputeCount(const Instr& dot, size_t operand, const Machine& machine) {
  DotDimensions dot_dims(dot);
  if (machine.is_gpu()) {
    // As if the operand were not computed: tiles are the same.
    std::vector<Schedule> tensor = gpu::TensorSchedules({dot, dot_dims, {true, true}}, machine);
    Schedule schedule =
        tensor.empty() ? gpu::PreferredDotSchedule(dot, dot_dims, machine) : tensor[0];
    return operand == 0 ? CeilDiv(dot_dims.n, schedule.tile_columns)
                        : CeilDiv(dot_dims.m, schedule.tile_rows);
  }
  Tiling tiling = TilingOf(dot, dot_dims, machine, false);
  return operand == 0 ? tiling.columns.count : tiling.rows.count;
}

bool CanUseContract(const Instr& dot, const Machine& machine) {
  // Multiplications. Smaller dots are plain loops. Chosen: packing and padding two 16 x 16 operands
  // would take about as long as their product. Matrix-vector products read the matrix once, so
  // packing cannot pay off.
  constexpr int64_t kMinWork = 4096;
  if (dot.op() != Op::kDot || !IsPlainArray(dot.shape())) return false;
  ElementType wide = AccumulatorElementType(dot.shape().type());
  for (const Instr* operand : dot.operands())
    if (!IsPlainArray(operand->shape()) || !MayMultiply(operand->shape().type(), wide))
      return false;
  DotDimensions dot_dims(dot);
  if (dot_dims.IsEmpty() || (!machine.is_gpu() && (dot_dims.m == 1 || dot_dims.n == 1)))
    return false;
  return dot_dims.m * dot_dims.n >= CeilDiv(kMinWork, dot_dims.k);
}

}  // namespace tokamak
