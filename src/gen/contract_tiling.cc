#include "gen/contract_tiling.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/element.h"
#include "gen/gpu/contract_tiling.h"

namespace tokamak {
namespace {

// Maximum rows and columns of a tile: sums and both panels fit in the L2 cache. For a shallow dot
// (k up to kShallow) moving the sums dominates, so tiles have fewer rows. Chosen.
constexpr int64_t kMaxSide = 256, kMaxShallowRows = 64, kShallow = 128;
// Bytes of one row of a panel along the contracted dimension. Chosen: panels fit in L2.
constexpr int64_t kPanelBytes = 1024;
// Bytes of the sums of a tile of whole rows, and of its rhs panel. Chosen: together below L2.
constexpr int64_t kWholeBytes = 256 << 10, kWholePanelBytes = 512 << 10;
// Chains: maximum bytes per tile of rows, maximum bytes of an rhs that stays packed, minimum rows
// of a tile, maximum elements packed per row of results. Chosen.
constexpr int64_t kChainBytes = 128 << 10, kPackOnceBytes = 2 << 20, kLeastRows = 16,
                  kOrderedForRow = 4;
// Tiles that keep the cores of a large machine busy, and the minimum multiplications per tile.
// Chosen.
constexpr int64_t kTilesWanted = 16, kLeastOfTile = 1 << 18;
// AMX tiles (Intel): rows from which they pay off (chosen), rows and depth of a tile (hardware).
constexpr int64_t kWorthTiles = 4, kContractTileRows = 16, kTileDepth = 32;

TileCut CutInto(int64_t total, int64_t most, int64_t unit) {
  TileCut cut{.total = total};
  cut.count = CeilDiv(total, std::max(most / unit, int64_t{1}) * unit);
  cut.size = RoundUp(CeilDiv(total, cut.count), unit);
  cut.count = CeilDiv(total, cut.size);
  return cut;
}

}  // namespace

int64_t BlockVectors(const Machine& machine) {
  return machine.HasShortVectors() ? 4 : 2;
}

int64_t BlockForRhs(const Instr& dot, const Machine& machine) {
  if (machine.is_gpu() || !IsForContract(dot, machine)) return 0;
  ScalarType type = ContractType(dot, machine);
  DotSides sides(dot);
  ElementType of = dot.operand(1)->shape().type();
  int64_t block = BlockVectors(machine) * machine.Lanes(type == ScalarType::kF64 ? 64 : 32);
  bool fits = GroupOf(type) == 1 && StorageType(of) == type && !IsComplex(of) &&
              sides.attrs.rhs_batch.empty() && sides.n % block == 0;
  return fits ? block : 0;
}

int64_t BlocksOfRhs(const Instr& dot, const Machine& machine) {
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  const Dims& dims = dot.operand(1)->shape().dims();
  if (dims.size() != 3 || attrs.rhs_contracting != Dims{1}) return 0;
  return BlockForRhs(dot, machine) == dims[2] ? dims[2] : 0;
}

Tiling TilingOf(const Instr& dot, const DotSides& sides, const Machine& machine, bool whole,
                int64_t column_groups) {
  Tiling t;
  t.column_groups = column_groups;
  t.type = ContractType(dot, machine);
  bool tiles = t.type == ScalarType::kBF16 && machine.matrix_tiles && sides.m >= kWorthTiles;
  int64_t bytes = BytesOf(t.type);
  t.lanes = machine.Lanes(t.type == ScalarType::kF64 ? 64 : 32);
  int64_t row_unit = t.row_unit = tiles ? kContractTileRows : 1;
  int64_t depth_unit = t.depth_unit = tiles ? kTileDepth : GroupOf(t.type);
  t.rhs_block = BlocksOfRhs(dot, machine);
  int64_t column_unit = std::max(t.lanes, t.rhs_block);
  // Prefer a panel size that needs no padding, if it is not too small.
  int64_t most = std::min(RoundUp(sides.k, depth_unit), kPanelBytes / bytes);
  if (whole) most = std::clamp(kWholePanelBytes / (sides.n * bytes), depth_unit, most);
  t.depth = CutInto(sides.k, most, depth_unit);
  for (int64_t size = most / depth_unit * depth_unit; size >= most / 2; size -= depth_unit) {
    if (sides.k % size != 0) continue;
    t.depth = {.total = sides.k, .size = size, .count = sides.k / size};
    break;
  }
  int64_t rows = sides.k <= kShallow ? kMaxShallowRows : kMaxSide,
          columns = kMaxSide / column_groups;
  if (whole) {
    columns = RoundUp(sides.n, column_unit);
    rows = std::clamp(kWholeBytes / (columns * 4), row_unit, rows);
  }
  auto cut = [&] {
    t.rows = CutInto(sides.m, rows, row_unit);
    t.columns = CutInto(sides.n / column_groups, columns, column_unit);
    return sides.batch * t.rows.count * t.columns.count;
  };
  // Split the longer side while each tile keeps enough work.
  while (cut() < kTilesWanted && t.rows.size * t.Width() * sides.k > 2 * kLeastOfTile) {
    if (!whole && t.Width() >= t.rows.size && columns > column_unit) {
      columns = std::max(columns / 2, column_unit);
    } else if (rows > row_unit) {
      rows = std::max(rows / 2, row_unit);
    } else {
      break;
    }
  }
  return t;
}

std::optional<ChainTiling> TilingOfChain(const Instr& outer, const Instr* inner,
                                         const Machine& machine) {
  DotSides sides(outer);
  ChainTiling chain;
  Tiling& t = chain.outer;
  t = TilingOf(outer, sides, machine, false);
  int64_t bytes = BytesOf(t.type), unit = t.row_unit, put_in_order = sides.n;
  if (sides.n > kMaxSide || sides.k > kMaxWhole) return std::nullopt;
  t.columns = CutInto(sides.n, RoundUp(sides.n, t.lanes), t.lanes);
  t.depth = CutInto(sides.k, RoundUp(sides.k, t.depth_unit), t.depth_unit);
  int64_t row_bytes = t.PaddedDepth() * bytes + t.columns.size * BytesOf(*SumTypeOf(t.type));
  if (t.PaddedDepth() * t.columns.size * bytes > kPackOnceBytes) return std::nullopt;
  if (inner != nullptr) {
    DotSides of(*inner);
    Tiling& from = chain.inner;
    from = TilingOf(*inner, of, machine, true);
    from.depth = CutInto(of.k, RoundUp(of.k, from.depth_unit), from.depth_unit);
    if (from.PaddedDepth() * from.columns.size * BytesOf(from.type) > kPackOnceBytes)
      return std::nullopt;
    unit = std::max(unit, from.row_unit);
    row_bytes += from.columns.size * BytesOf(*SumTypeOf(from.type)) +
                 from.PaddedDepth() * BytesOf(from.type);
    put_in_order += of.k;
  }
  t.rows = CutInto(sides.m, std::max(kChainBytes / row_bytes, kLeastRows), unit);
  chain.inner.rows = t.rows;
  // The largest number of tiles per task that leaves tasks for all threads, or, if that does not
  // amortize packing, for fewer threads.
  auto worth = [&] { return put_in_order <= kOrderedForRow * chain.tiles * t.rows.size; };
  for (int64_t wanted : {4 * kTilesWanted, kTilesWanted}) {
    for (int64_t tiles = t.rows.count; tiles >= 1; --tiles) {
      chain.tiles = tiles;
      if (t.rows.count % tiles == 0 && chain.tasks(sides.batch) >= wanted) break;
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

ScalarType ContractType(const Instr& dot, const Machine& machine) {
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
  return WideType(dot.shape().type()) == ElementType::kF64 ? ScalarType::kF64 : ScalarType::kF32;
}

bool MultipliesTf32(const Instr& dot, const Machine& machine) {
  if (!machine.is_gpu() || ContractType(dot, machine) != ScalarType::kF32) return false;
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  auto narrow = [](const Instr* operand) {
    ElementType type = operand->shape().type();
    return type == ElementType::kBF16 || type == ElementType::kF16 || InfoOf(type).bits <= 8;
  };
  if (narrow(dot.operand(0)) && narrow(dot.operand(1))) return true;
  if (!machine.tf32) return false;
  if (attrs.algorithm)
    return attrs.algorithm->lhs_type == "tf32" && attrs.algorithm->rhs_type == "tf32";
  return std::all_of(attrs.precision.begin(), attrs.precision.end(),
                     [](Precision precision) { return precision == Precision::kDefault; });
}

int64_t TimesMade(const Instr& dot, size_t operand, const Machine& machine) {
  DotSides sides(dot);
  if (machine.is_gpu()) {
    gpu::BlockTiling block_tiling = gpu::BlockTilingOf(dot, sides, machine);
    return operand == 0 ? block_tiling.column_tiles : block_tiling.row_tiles;
  }
  Tiling tiling = TilingOf(dot, sides, machine, false);
  return operand == 0 ? tiling.columns.count : tiling.rows.count;
}

bool IsForContract(const Instr& dot, const Machine& machine) {
  // Multiplications. Smaller dots are plain loops (chosen). Matrix-vector products read the matrix
  // once, so packing cannot pay off.
  constexpr int64_t kLeastWork = 4096;
  if (dot.op() != Op::kDot || !IsPlainArray(dot.shape())) return false;
  ElementType wide = WideType(dot.shape().type());
  for (const Instr* operand : dot.operands())
    if (!IsPlainArray(operand->shape()) || !MayMultiply(operand->shape().type(), wide))
      return false;
  DotSides sides(dot);
  if (sides.IsEmpty() || (!machine.is_gpu() && (sides.m == 1 || sides.n == 1))) return false;
  return sides.m * sides.n >= CeilDiv(kLeastWork, sides.k);
}

}  // namespace tokamak
