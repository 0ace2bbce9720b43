#include "gen/gpu/chain_tiling.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/dot_operand.h"
#include "gen/gpu/chain_vectors.h"
#include "gen/gpu/chain_words.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/operand_view.h"
#include "gen/gpu/split_operand.h"
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
// The same where products and scores do not overlap: fewer addresses are in use at once. Chosen:
// gradients of attention with heads of 128 do not spill (ptxas, sm_90a).
constexpr int64_t kInTurnOtherRegisters = 40;
// Elements: the depth of a multiply instruction, and the unit of its columns (PTX ISA, wgmma).
constexpr int64_t kDepthUnit = 16, kColumnUnit = 8;

// The dimensions of an operand, and those of the scores that its batch dimensions run along.
struct SideDims {
  Dims batch, free, contracting, batch_along;
};

// The dimension of the scores that a dimension of an operand, or the one of the weights that is
// contracted with it, runs along.
int64_t AlongOf(const ChainRegion& found, const ChainSide& side, const DotDimensions& dims,
                int64_t dim) {
  const Instr& dot = *side.dot;
  const Dims* free = side.operand == 0 ? &dims.lhs_free : &dims.rhs_free;
  const Dims* batch = side.operand == 0 ? &dims.attrs.lhs_batch : &dims.attrs.rhs_batch;
  auto index = [&](const Dims& of) {
    return static_cast<size_t>(std::ranges::find(of, dim) - of.begin());
  };
  if (!side.is_of_product) {
    const Dims& along = *found.along->Of(dot);
    size_t i = index(*batch);
    if (i < batch->size()) return along[i];
    i = index(*free);
    if (i == free->size()) return DimsAlong::kSame;
    return along[batch->size() + (side.operand == 0 ? 0 : dims.lhs_free.size()) + i];
  }
  const DotAttrs& attrs = dims.attrs;
  bool is_rhs = side.operand == 1;
  const Dims& along = *found.along->Of(*dot.operand(1 - side.operand));
  size_t i = index(*batch);
  if (i < batch->size())
    return along[static_cast<size_t>((is_rhs ? attrs.lhs_batch : attrs.rhs_batch)[i])];
  const Dims& own = is_rhs ? attrs.rhs_contracting : attrs.lhs_contracting;
  i = index(own);
  if (i == own.size()) return DimsAlong::kSame;
  return along[static_cast<size_t>((is_rhs ? attrs.lhs_contracting : attrs.rhs_contracting)[i])];
}

// Moves the dimensions of rows and columns that count as batch dimensions.
SideDims SideDimsOf(const ChainRegion& found, const ChainSide& side, const Dims& contracting) {
  DotDimensions dot_dims(*side.dot);
  SideDims dims;
  dims.batch = side.operand == 0 ? dot_dims.attrs.lhs_batch : dot_dims.attrs.rhs_batch;
  for (int64_t d : dims.batch) dims.batch_along.push_back(AlongOf(found, side, dot_dims, d));
  auto add = [&](const Dims& from, Dims& rest) {
    for (int64_t d : from) {
      int64_t along = AlongOf(found, side, dot_dims, d);
      bool is_batch = std::ranges::count(found.chain.batch, along) > 0 ||
                      std::ranges::count(found.chain.outer_columns, along) > 0;
      if (is_batch) dims.batch_along.push_back(along);
      (is_batch ? dims.batch : rest).push_back(d);
    }
  };
  add(side.operand == 0 ? dot_dims.lhs_free : dot_dims.rhs_free, dims.free);
  add(contracting, dims.contracting);
  return dims;
}

// The operand as a view of an array of this type, perhaps converted to a wider type.
OperandView ExactViewOf(const FusedRegion& region, const Instr& operand, ScalarType type) {
  ElementType element = DotElementType(type);
  OperandView view = OperandViewOf(region, operand);
  if (view.array != nullptr) return view.array->shape().type() == element ? view : OperandView{};
  view = OperandViewOf(operand);
  const Instr* convert = view.array;
  if (convert == nullptr || convert->op() != Op::kConvert ||
      std::ranges::count(region.instrs, convert) == 0)
    return {};
  OperandView of_array = OperandViewOf(region, *convert->operand(0));
  const Dims& dims = convert->shape().dims();
  if (of_array.array == nullptr || of_array.array->shape().type() != element) return {};
  Dims strides = RowMajorStrides(dims);
  auto is_contiguous = [&](const Dims& other) {
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d] != 1 && strides[d] != other[d]) return false;
    return true;
  };
  if (is_contiguous(of_array.strides)) {
    view.array = of_array.array;
    view.start += of_array.start;
    return view;
  }
  bool is_whole = view.start == 0 && operand.shape().dims() == dims && is_contiguous(view.strides);
  return is_whole ? of_array : OperandView{};
}

// An operand as a view with the sizes of its dimensions. Along each dimension, an element stands
// for `repeats` elements of the operand.
struct RepeatedView {
  OperandView view;
  Dims sizes, repeats;
};

RepeatedView RepeatedViewOf(const FusedRegion& region, const Instr& operand, ScalarType type) {
  const Dims& sizes = operand.shape().dims();
  RepeatedView exact{ExactViewOf(region, operand, type), sizes, Dims(sizes.size(), 1)};
  if (exact.view.array != nullptr) return exact;
  auto is_inside = [&](const Instr* instr) { return std::ranges::count(region.instrs, instr) > 0; };
  const Instr* value = &operand;
  if (value->op() == Op::kConvert && value->shape().type() == ElementType::kF32 && is_inside(value))
    value = value->operand(0);
  std::optional<RepeatedValue> repeated = RepeatedValueOf(*value);
  if (!repeated || !std::ranges::all_of(repeated->ops, is_inside)) return exact;
  OperandView from = ExactViewOf(region, *repeated->from, type);
  if (from.array == nullptr) return exact;
  RepeatedView result{{from.array, {}, from.start}, {}, repeated->times};
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t dim = repeated->from_dims[d];
    result.view.strides.push_back(dim < 0 ? 1 : from.strides[static_cast<size_t>(dim)]);
    result.sizes.push_back(sizes[d] / repeated->times[d]);
  }
  return result;
}

// Sets the tensor of an operand in this order of contracted dimensions; false if the copy engine
// cannot read it.
bool SetTensor(ChainSide& side, const FusedRegion& region, const ChainRegion& found,
               const std::pair<Dims, Dims>& order, ScalarType type) {
  RepeatedView view = RepeatedViewOf(region, *side.dot->operand(side.operand), type);
  if (view.view.array == nullptr) return false;
  SideDims dims = SideDimsOf(found, side, side.operand == 0 ? order.first : order.second);
  auto is_repeated = [&](int64_t d) { return view.repeats[static_cast<size_t>(d)] != 1; };
  if (std::ranges::any_of(dims.free, is_repeated) ||
      std::ranges::any_of(dims.contracting, is_repeated))
    return false;
  DotDimensions dot_dims(*side.dot);
  DotOperand operand(*side.dot, dot_dims, side.operand);
  operand.dims = &view.sizes;
  operand.batch = &dims.batch;
  operand.free = &dims.free;
  side.tensor = TensorOperandOf(operand, dims.contracting, view.view, type);
  side.batch = std::move(dims.batch_along);
  side.repeats = SizesAlong(view.repeats, dims.batch);
  return side.tensor.IsBulk();
}

// The operands of all dots.
std::string SetOperands(const FusedRegion& region, const ChainRegion& found, ChainTiling& t) {
  const DotChain& chain = found.chain;
  auto has_order = [&](const Instr& dot, std::vector<ChainSide*> sides) {
    std::vector<std::pair<Dims, Dims>> orders = ContractingOrders(dot.attrs<DotAttrs>());
    for (ChainSide* side : sides) side->dot = &dot;
    return std::ranges::any_of(orders, [&](const std::pair<Dims, Dims>& order) {
      return std::ranges::all_of(
          sides, [&](ChainSide* side) { return SetTensor(*side, region, found, order, t.type); });
    });
  };
  bool fits = true;
  for (size_t i = 0; fits && i < chain.firsts.size(); ++i) {
    ChainTiling::First& first = t.firsts[i];
    first.rows.has_rows = true;
    first.rows.operand = chain.firsts[i].row_operand;
    first.columns.operand = 1 - chain.firsts[i].row_operand;
    fits = has_order(*chain.firsts[i].dot, {&first.rows, &first.columns});
  }
  for (size_t i = 0; fits && i < chain.seconds.size(); ++i) {
    ChainSide& values = t.seconds[i].values;
    values.is_of_product = true;
    values.operand = 1 - chain.seconds[i].weights_operand;
    fits = has_order(*chain.seconds[i].dot, {&values});
  }
  return fits ? "" : "an operand of the chain is not in memory, or the copy engine cannot read it";
}

// Whether the program allows both factors of a dot to be rounded to this type.
bool MayRoundTo(ScalarType type, const Instr& dot) {
  const auto& algorithm = dot.attrs<DotAttrs>().algorithm;
  std::string_view name = type == ScalarType::kBF16 ? "bf16" : "f16";
  return algorithm && algorithm->lhs_type == name && algorithm->rhs_type == name;
}

bool IsConvertedFrom(ScalarType type, const Instr& value) {
  return value.op() == Op::kConvert && value.shape().type() == ElementType::kF32 &&
         value.operand(0)->shape().type() == DotElementType(type);
}

// In how many parts a second dot multiplies its weights: 0 if it cannot.
int64_t PartsOfWeights(const DotChain::Second& second, const Machine& machine, ScalarType type) {
  if (second.weights().shape().type() == DotElementType(type) || MayRoundTo(type, *second.dot) ||
      IsConvertedFrom(type, second.weights()))
    return 1;
  bool splits =
      second.weights().shape().type() == ElementType::kF32 && MultipliesTf32(*second.dot, machine);
  return splits ? kSplitParts : 0;  // more precise than TF32
}

std::string WhyNoTypes(const DotChain& chain, const Machine& machine, ChainTiling& t) {
  if (!machine.async_multiply) return "the machine has no asynchronous multiplies";
  auto sums_f32 = [](const Instr& dot) {
    return AccumulatorElementType(dot.shape().type()) == ElementType::kF32;
  };
  t.type = ScalarType::kBF16;
  for (const DotChain::First& first : chain.firsts)
    for (const Instr* operand : first.dot->operands())
      if (operand->shape().type() == ElementType::kF16) t.type = ScalarType::kF16;
  for (const DotChain::First& first : chain.firsts) {
    if (!CanUseContract(*first.dot, machine)) return "a dot of the chain is too small";
    bool fits = sums_f32(*first.dot) &&
                std::ranges::all_of(first.dot->operands(), [&](const Instr* operand) {
                  ElementType type = operand->shape().type();
                  return type == DotElementType(t.type) || type == ElementType::kF32;
                });
    if (!fits) return "asynchronous multiplies are for bf16 and f16";
  }
  t.seconds.clear();
  for (const DotChain::Second& second : chain.seconds) {
    if (!CanUseContract(*second.dot, machine)) return "a dot of the chain is too small";
    int64_t parts = sums_f32(*second.dot) ? PartsOfWeights(second, machine, t.type) : 0;
    if (parts == 0) return "the dots multiply different types";
    t.seconds.emplace_back();
    t.seconds.back().parts = parts;
  }
  t.firsts.resize(chain.firsts.size());
  return "";
}

int64_t SharedBytesOf(const ChainTiling& t) {
  int64_t elements = 0, mbarriers = 0;
  for (const ChainSide* side : t.Operands()) {
    int64_t stages = side->has_rows ? 1 : t.stages;
    elements += side->size() * stages;
    mbarriers += 2 * stages;
  }
  if (t.column_vectors > 0) mbarriers += 2 * t.stages;
  mbarriers += 2 * t.stages * t.packed_preds;
  int64_t vector_bytes = t.stages * t.column_vectors * t.columns * BytesOf(ScalarType::kF32);
  // Alignment, and mbarriers of 8 bytes.
  return MatrixMultiply::kPanelAlignment + elements * BytesOf(t.type) + vector_bytes +
         t.stages * t.packed_bytes + mbarriers * 8;
}

// Sums of all dots, and the weights: two in a register.
int64_t RegistersOf(const ChainTiling& t, bool overlaps) {
  int64_t scores = t.columns * static_cast<int64_t>(std::max(t.firsts.size(), t.seconds.size()));
  int64_t weights = 0, products = 0;
  for (const ChainTiling::Second& second : t.seconds) {
    weights += second.parts * t.columns / 2;
    products += second.width;
  }
  int64_t columns = products + (overlaps ? scores + weights : std::max(scores, weights));
  return columns * kWarpgroupRows / kWarpgroupThreads;
}

// Registers of a thread for the sums.
int64_t MostRegistersOf(const ChainTiling& t, bool overlaps) {
  return ConsumerRegisters(t.consumers(), kCopyRegisters) -
         (overlaps ? kChainOtherRegisters : kInTurnOtherRegisters);
}

bool FitsRegisters(const ChainTiling& t, bool overlaps) {
  return RegistersOf(t, overlaps) <= MostRegistersOf(t, overlaps);
}

// Columns of `inner` in a schedule.
int64_t InnerColumnsOf(const ChainTiling& t) {
  return t.seconds.empty() ? t.columns : t.seconds[0].width;
}

std::string WhyNotTile(const ChainTiling& t, const Schedule& s) {
  if (t.rows % kWarpgroupRows != 0 || t.rows > TileCopy::kMaxBox)
    return "tile: not a multiple of 64 rows up to 256";
  if (t.columns % kWarpgroupRows != 0 || t.columns > TileCopy::kMaxBox)
    return "tile: not a multiple of 64 columns up to 256";
  if (s.tile_depth != t.firsts[0].depth) return "tile: its depth is that of the first dot";
  if (s.inner_rows != kWarpgroupRows || s.inner_columns != InnerColumnsOf(t))
    return "inner: a warpgroup has 64 rows of all columns";
  if (t.threads() != s.threads || t.threads() > kMaxThreadsPerBlock)
    return "threads: the warpgroups of the tile and the producer have " +
           std::to_string(t.threads());
  if (!FitsRegisters(t, true) && !FitsRegisters(t, false))
    return "tile: a thread's sums take more than " + std::to_string(MostRegistersOf(t, false)) +
           " registers";
  // Tiles that dots share are released after both, when the next one is in use already.
  size_t all = 2 * t.firsts.size() + t.seconds.size();
  int64_t least = t.Operands().size() < all ? 2 : 1;
  return t.stages >= least ? "" : "stages: at least " + std::to_string(least);
}

// Columns of the product.
int64_t WidthOf(const DotChain::Second& second) {
  DotDimensions product(*second.dot);
  return RoundUp(second.weights_operand == 0 ? product.n : product.m, kColumnUnit);
}

Schedule ScheduleOfTile(const ChainTile& tile, const DotChain& chain) {
  Schedule s;
  s.tile_rows = tile.rows;
  s.tile_columns = tile.columns;
  s.tile_depth = RoundUp(DotDimensions(chain.scores()).k, kDepthUnit);
  s.inner_rows = kWarpgroupRows;
  s.inner_columns = chain.seconds.empty() ? tile.columns : WidthOf(chain.seconds[0]);
  s.threads = tile.rows / kWarpgroupRows * kWarpgroupThreads + kWarpgroupThreads;
  s.stages = tile.stages;
  s.staging = Staging::kBulk;
  return s;
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

// Roots are values of rows, or have the elements of a product.
bool IsChainRoot(const ChainRegion& found, const Instr& root) {
  if (!root.shape().IsArray()) return false;
  const DotChain& chain = found.chain;
  if (const Dims* along = found.along->Of(root))
    return chain.IsOfRows(*along) && HasAllDims(*along, chain.scores(), chain.column);
  const DimsAlong* products = found.ProductsOf(root);
  if (products == nullptr) return false;
  const Dims* along = products->Of(root);
  if (along == nullptr) along = products->Of(*root.operand(0));
  auto second = static_cast<size_t>(products - found.along_products.data());
  return HasAllDims(*along, *chain.seconds[second].dot, std::nullopt);
}

// Adds the consumers of the products. Each depends on one of them.
std::string AddConsumers(const FusedRegion& region, ChainRegion& found) {
  for (const DotChain::Second& second : found.chain.seconds)
    found.along_products.emplace_back(*second.dot);
  for (const Instr* instr : region.instrs) {
    size_t products = 0;
    for (DimsAlong& along : found.along_products) {
      bool depends =
          along.Of(*instr) == nullptr && std::ranges::any_of(instr->operands(), [&](auto* operand) {
            return along.Of(*operand) != nullptr;
          });
      if (!depends) continue;
      if (++products > 1) return "it combines results of several dots";
      if (instr->op() == Op::kReduce) return "it reduces results of a second dot";
      // A root may combine dimensions: its elements have the same order.
      bool is_flat = instr->op() == Op::kReshape && std::ranges::count(region.roots, instr) > 0;
      if (!along.Add(*instr) && !is_flat) return "it combines elements after the dots";
    }
  }
  return "";
}

}  // namespace

int64_t ChainSide::panels() const {
  return CeilDiv(tensor.is_k_major ? depth : free, line);
}

// The tensors differ in which dimensions are contracted only.
bool ChainSide::HasElementsOf(const ChainSide& other) const {
  using Dimension = TensorOperand::Dimension;
  auto is_same = [](const Dimension& x, const Dimension& y) {
    using Along = Dimension::Along;
    return (x.along == Along::kBatch) == (y.along == Along::kBatch) && x.batch == y.batch &&
           x.is_all == y.is_all && x.size == y.size && x.stride == y.stride && x.start == y.start;
  };
  bool is_swapped = is_of_product != other.is_of_product;
  auto has_along = [&](const Dimension& x, const Dimension& y) {
    using Along = Dimension::Along;
    return x.along == Along::kBatch || (x.along == y.along) != is_swapped;
  };
  const auto &mine = tensor.dimensions, &others = other.tensor.dimensions;
  if (has_rows != other.has_rows || tensor.array != other.tensor.array || batch != other.batch ||
      repeats != other.repeats || mine.size() != others.size() ||
      (tensor.is_k_major == other.tensor.is_k_major) == is_swapped || lines() != other.lines() ||
      panels() != other.panels())
    return false;
  for (size_t d = 0; d < mine.size(); ++d)
    if (!is_same(mine[d], others[d]) || !has_along(mine[d], others[d])) return false;
  return true;
}

std::vector<const ChainSide*> ChainTiling::Operands() const {
  std::vector<const ChainSide*> all;
  auto add = [&](const ChainSide& side) {
    if (std::ranges::none_of(all, [&](auto* other) { return side.HasElementsOf(*other); }))
      all.push_back(&side);
  };
  for (const First& first : firsts) add(first.rows);
  for (const First& first : firsts) add(first.columns);
  for (const Second& second : seconds) add(second.values);
  return all;
}

const DimsAlong* ChainRegion::ProductsOf(const Instr& value) const {
  for (const DimsAlong& products : along_products)
    if (products.Of(value) != nullptr ||
        (value.op() == Op::kReshape && products.Of(*value.operand(0)) != nullptr))
      return &products;
  return nullptr;
}

bool HasSeveralDots(const FusedRegion& region) {
  return std::ranges::count(region.instrs, Op::kDot, &Instr::op) > 1;
}

std::string FindChain(const FusedRegion& region, ChainRegion& found) {
  if (std::string why = FindDotChain(region.instrs, found.chain, found.along); !why.empty())
    return why;
  if (std::string why = AddConsumers(region, found); !why.empty()) return why;
  for (const Instr* root : region.roots)
    if (!IsChainRoot(found, *root))
      return "a root is no value of rows and has other elements than the chain's results";
  if (std::string why =
          AnalyzeRunningChain(found.chain, region.instrs, *found.along, found.running);
      !why.empty())
    return why;
  found.live = LiveColumnsOf(found.chain, found.running, *found.along);
  if (found.running.exponential == nullptr) found.vectors = VectorsOf(region, found);
  found.words = WordsOf(region, found);
  return "";
}

std::string ExpandChainSchedule(const FusedRegion& region, const ChainRegion& found,
                                const Schedule& schedule, const Machine& machine,
                                ChainTiling& tiling) {
  ChainTiling t;
  const DotChain& chain = found.chain;
  if (std::string why = WhyNoTypes(chain, machine, t); !why.empty()) return why;
  if (std::string why = SetOperands(region, found, t); !why.empty()) return why;
  if (schedule.vector != 1 || schedule.split_k != 1) return "vector, split_k: 1 for bulk copies";
  t.rows = schedule.tile_rows;
  t.columns = schedule.tile_columns;
  t.stages = schedule.stages;
  t.column_vectors = std::ranges::count(found.vectors, true, &ChainVector::is_of_columns);
  t.packed_preds = std::ssize(found.words);
  for (const ChainWords& words : found.words) t.packed_bytes += words.TileBytes(t.rows, t.columns);
  int64_t line = MatrixMultiply::kPanelBytes / BytesOf(t.type), most = 0;
  for (size_t i = 0; i < chain.firsts.size(); ++i) {
    ChainTiling::First& first = t.firsts[i];
    first.depth = RoundUp(DotDimensions(*chain.firsts[i].dot).k, kDepthUnit);
    first.rows.free = t.rows;
    first.columns.free = t.columns;
    for (ChainSide* side : {&first.rows, &first.columns}) {
      side->depth = first.depth;
      side->line = line;
    }
    most = std::max(most, first.depth);
  }
  for (size_t i = 0; i < chain.seconds.size(); ++i) {
    ChainTiling::Second& second = t.seconds[i];
    second.width = second.values.free = WidthOf(chain.seconds[i]);
    second.values.depth = t.columns;
    second.values.line = line;
    most = std::max(most, second.width);
  }
  if (most > TileCopy::kMaxBox) return "the dots are too deep or too wide for one tile";
  if (std::string why = WhyNotTile(t, schedule); !why.empty()) return why;
  if (int64_t bytes = SharedBytesOf(t); bytes > kMaxSharedBytes)
    return "stages: they take " + std::to_string(bytes) +
           " bytes of shared memory, and a block has " + std::to_string(kMaxSharedBytes);
  t.row_tiles = CeilDiv(chain.row_count(), t.rows);
  t.column_tiles = CeilDiv(chain.column_count(), t.columns);
  t.batch = SizeAlong(chain.scores().shape().dims(), chain.batch);
  t.outer_columns = SizeAlong(chain.scores().shape().dims(), chain.outer_columns);
  t.blocks = std::min(t.tiles(), machine.cores);
  t.overlaps = FitsRegisters(t, true);
  tiling = std::move(t);
  return "";
}

std::vector<Schedule> ChainSchedules(const FusedRegion& region, const Machine& machine) {
  ChainRegion found;
  if (!FindChain(region, found).empty()) return {};
  std::vector<Schedule> all;
  ChainTiling tiling;
  for (bool overlaps : {true, false})
    for (const ChainTile& tile : kChainTiles) {
      Schedule next = ScheduleOfTile(tile, found.chain);
      if (ExpandChainSchedule(region, found, next, machine, tiling).empty() &&
          tiling.overlaps == overlaps)
        all.push_back(next);
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
