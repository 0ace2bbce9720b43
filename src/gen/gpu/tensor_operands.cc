// The producer, for each panel along K of each tile of the block:
//
//   wait empty[stage]
//   expect the bytes of copied panels, start the copies
//   converted panels: start the copy of a later raw panel; wait raw_full[raw stage]; each thread
//                     reads its elements of the raw panel, converts and stores them
//   computed panels: each thread stores its elements
//   arrive at full[stage], and at raw_empty[raw stage]
//
// A converted panel has other elements than the array in memory: two bf16 for an f32, or another
// order, since TF32 is multiplied along K only. The raw panels are copied ahead, so that the
// threads never wait for memory. Their accesses have no bank conflicts (PositionOf).

#include "gen/gpu/tensor_operands.h"

#include <algorithm>
#include <numeric>

#include "gen/gpu/split_operand.h"
#include "gen/gpu/warp_roles.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kProducerWarps = kWarpgroupThreads / kWarpSize;
// Registers per thread of a producer that converts or computes operands. Chosen: 16 chunks of 16
// bytes are in flight.
constexpr int64_t kFillingRegisters = 104;
// Elements that a thread moves at once. Chosen: the latency of shared memory is hidden in a third
// of the registers.
constexpr int64_t kMovedAtOnce = 32;
// Vectors that a thread computes at once. Chosen: with chunks of 16 bytes, a stage has no more;
// with single bytes it has up to 256, whose loads and conditions would spill registers.
constexpr int64_t kComputedAtOnce = 16;
// The thread that starts the copies of raw panels. Chosen: of another warp than the other copies.
constexpr int64_t kRawCopier = kWarpSize;
// Panels that are transposed: rows along K, and vectors along the rows (columns), of a warp. It
// then reads whole chunks of 8 rows at once, and its stores of one row go to different banks: 16
// words of a row are in 4 chunks, and the swizzle moves those of rows that are 4 apart to the 4
// other ones.
constexpr int64_t kTransposedRows = 16, kTransposedVectors = kWarpSize / kTransposedRows;

int64_t ChunkElements(ScalarType type) {
  return kSwizzledChunkBytes / BytesOf(type);
}

// The type in which elements come from memory or are computed: that of the panels, or f32.
ScalarType ElementsTypeOf(const Instr& dot, const TensorForm& form, size_t operand) {
  ScalarType type = form.types[operand];
  bool is_same = StorageType(dot.operand(operand)->shape().type()) == type;
  return is_same || form.SumType() == ScalarType::kS32 ? type : ScalarType::kF32;
}

}  // namespace

DotPosition TilePositionOf(const TensorTiling& tiling, const DotDimensions& dot_dims, Scalar tile) {
  KernelBuilder& b = tile.builder();
  // Tiles go down the rows of a group of row tiles first, then on to the next column. The last
  // group may have fewer row tiles.
  int64_t of_matrix = tiling.row_tiles * tiling.column_tiles,
          of_group = tiling.group * tiling.column_tiles;
  Scalar in_matrix = tile % b.Index(of_matrix), in_group = in_matrix % b.Index(of_group);
  Scalar first = in_matrix / b.Index(of_group) * b.Index(tiling.group);
  Scalar rows = b.Index(tiling.group);
  // The minimum tells the range of quotients and remainders.
  if (tiling.row_tiles % tiling.group != 0)
    rows = GreaterOf(LesserOf(rows, b.Index(tiling.row_tiles) - first), b.Index(1));
  DotPosition position;
  position.batch = tile / b.Index(of_matrix);
  position.row = (first + in_group % rows) * b.Index(tiling.rows);
  position.column = in_group / rows * b.Index(tiling.columns);
  position.batch_at =
      Delinearized(b, position.batch, SizesAlong(dot_dims.lhs_dims, dot_dims.attrs.lhs_batch));
  return position;
}

TensorOperands::TensorOperands(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                               const Instr& dot, const DotDimensions& dot_dims,
                               const TensorTiling& tiling)
    : b_(b),
      emitter_(emitter),
      dot_(dot),
      dot_dims_(dot_dims),
      t_(tiling),
      elements_{DotPanels(b, emitter, region, dot_dims, ElementsTypeOf(dot, tiling.form, 0),
                          tiling.form.tf32),
                DotPanels(b, emitter, region, dot_dims, ElementsTypeOf(dot, tiling.form, 1),
                          tiling.form.tf32)} {}

void TensorOperands::Declare() {
  lhs_ = DeclareSide("lhs", t_.lhs, 0, t_.rows);
  rhs_ = DeclareSide("rhs", t_.rhs, 1, t_.LoadedColumns());
  full_ =
      b_.Mbarriers("full", t_.stages, (Fills() ? kProducerWarps : 0) + (CopiesBeside() ? 1 : 0));
  empty_ = b_.Mbarriers("empty", t_.stages, t_.WarpgroupsOfTile() * kProducerWarps);
  if (t_.form.HasPartialSums())
    partial_sums_ =
        b_.Local("partial_sums", t_.form.SumType(), Space::kRegisters, t_.AccumulatorsPerThread());
  if (!t_.Converts()) return;
  raw_full_ = b_.Mbarriers("raw_full", t_.raw_stages, 1);
  raw_empty_ = b_.Mbarriers("raw_empty", t_.raw_stages, kProducerWarps);
}

TensorOperands::Side TensorOperands::DeclareSide(const char* name, const TensorOperand& tensor,
                                                 size_t operand, int64_t along) {
  Side side;
  side.tensor = &tensor;
  side.operand = DotOperand(dot_, dot_dims_, operand);
  side.is_lhs = operand == 0;
  side.type = t_.form.types[operand];
  side.parts = t_.form.parts[operand];
  side.along = along;
  side.size = along * t_.depth;
  if (tensor.source != PanelSource::kComputed) side.input = emitter_.InputOf(*tensor.array);
  side.stages = b_.Local(name + std::string("_tiles"), side.type, Space::kShared,
                         side.size * side.parts * t_.stages, MatrixMultiply::kPanelAlignment);
  if (tensor.source == PanelSource::kConverted)
    side.raw = b_.Local(name + std::string("_raw"), tensor.stored, Space::kShared,
                        side.size * t_.raw_stages, MatrixMultiply::kPanelAlignment);
  return side;
}

// The number of a panel among all panels of the block.
Scalar TensorOperands::NumberOf(Scalar i, Scalar k) {
  return i * b_.Index(t_.panels) + k;
}

// ---- producer

int64_t TensorOperands::ProducerRegisters() const {
  return Fills() ? kFillingRegisters : kCopyRegisters;
}

// Whether the bulk copy engine stores panels, beside those that the threads store, or alone.
bool TensorOperands::CopiesBeside() const {
  return lhs_.Is(PanelSource::kCopied) || rhs_.Is(PanelSource::kCopied);
}

int64_t TensorOperands::CopiedBytes(PanelSource source) const {
  int64_t bytes = 0;
  for (const Side* side : {&lhs_, &rhs_})
    if (side->Is(source)) bytes += side->size * BytesOf(side->tensor->stored);
  return bytes;
}

// One thread starts all copies. If panels are converted or computed, all threads store their
// elements of a stage.
void TensorOperands::Produce(Scalar block, Scalar thread) {
  thread_ = thread;
  if (t_.warpgroups > 1) b_.LimitRegisters(ProducerRegisters());
  if (!Fills()) return b_.If(thread_ == b_.Index(0), [&] { FillStages(block); });
  FillStages(block);
}

void TensorOperands::FillStages(Scalar block) {
  Scalar count = (b_.Index(t_.tiles() + t_.blocks - 1) - block) / b_.Index(t_.blocks);
  Scalar ahead = b_.Index(t_.raw_stages - 1);
  if (t_.Converts())
    b_.For("r", LoopRole::kUnrolled, ahead,
           [&](Scalar r) { StartRawCopies(block, r, NumberOf(count, b_.Index(0))); });
  b_.For("i", LoopRole::kSerial, count, [&](Scalar i) {
    DotPosition position = TilePositionOf(t_, dot_dims_, block + i * b_.Index(t_.blocks));
    for (DotPanels& elements : elements_) elements.SetBatch(position.batch_at);
    b_.For("k", LoopRole::kSerial, b_.Index(t_.panels), [&](Scalar k) {
      Scalar number = NumberOf(i, k);
      if (t_.Converts()) StartRawCopies(block, number + ahead, NumberOf(count, b_.Index(0)));
      FillStage(StageOf(b_, number, t_.stages), number, {position, k});
    });
  });
}

void TensorOperands::FillStage(const PipelineStage& stage, Scalar number, const Source& source) {
  b_.Wait(empty_, stage.index, b_.Index(1) - stage.parity);
  auto copy = [&] {
    b_.Arrive(full_, stage.index, CopiedBytes(PanelSource::kCopied));
    StartCopies(PanelSource::kCopied, full_, stage.index, source);
  };
  if (!Fills()) return copy();
  if (CopiesBeside()) b_.If(thread_ == b_.Index(0), copy);
  PipelineStage raw;
  if (t_.Converts()) {
    raw = StageOf(b_, number, t_.raw_stages);
    b_.Wait(raw_full_, raw.index, raw.parity);
  }
  for (const Side* side : {&lhs_, &rhs_}) {
    if (side->Is(PanelSource::kConverted)) Convert(*side, stage.index, raw.index);
    if (side->Is(PanelSource::kComputed)) Compute(*side, stage.index, source);
  }
  b_.AsyncFence();
  ArriveOfWarp(full_, stage.index, thread_);
  if (t_.Converts()) ArriveOfWarp(raw_empty_, raw.index, thread_);
}

// Starts the copies of the raw panels with this number, if the block has so many, when the ones
// before them have been converted.
void TensorOperands::StartRawCopies(Scalar block, Scalar number, Scalar count) {
  b_.If((thread_ == b_.Index(kRawCopier)) & (number < count), [&] {
    PipelineStage raw = StageOf(b_, number, t_.raw_stages);
    b_.Wait(raw_empty_, raw.index, b_.Index(1) - raw.parity);
    b_.Arrive(raw_full_, raw.index, CopiedBytes(PanelSource::kConverted));
    Scalar tile = block + number / b_.Index(t_.panels) * b_.Index(t_.blocks);
    DotPosition position = TilePositionOf(t_, dot_dims_, tile);
    StartCopies(PanelSource::kConverted, raw_full_, raw.index,
                {position, number % b_.Index(t_.panels)});
  });
}

void TensorOperands::StartCopies(PanelSource which, ArrayId mbarriers, Scalar index,
                                 const Source& source) {
  for (const Side* side : {&lhs_, &rhs_})
    if (side->Is(which)) Copy(*side, mbarriers, index, source);
}

// A box has 128 bytes of dimension 0 of the tensor.
void TensorOperands::Copy(const Side& side, ArrayId mbarriers, Scalar index, const Source& source) {
  const TensorOperand& tensor = *side.tensor;
  int64_t line = tensor.RawLine(), lines = tensor.is_k_major ? side.along : t_.depth;
  for (int64_t i = 0; i < side.size / (lines * line); ++i) {
    TileCopy copy;
    copy.from = side.input;
    copy.to = side.Is(PanelSource::kConverted) ? side.raw : side.stages;
    copy.swizzled = true;
    copy.tf32 = t_.form.tf32 && tensor.stored == ScalarType::kF32;
    copy.to_index = (index * b_.Index(side.size) + b_.Index(i * lines * line)).id();
    if (t_.window) {
      copy.dimensions = WindowBoxesOf(side, i * line, source);
    } else {
      for (const TensorOperand::Dimension& dimension : tensor.dimensions)
        copy.dimensions.push_back(BoxOf(side, dimension, i * line, source));
    }
    b_.Copy(mbarriers, index, std::move(copy));
  }
}

std::vector<TileCopy::Dimension> TensorOperands::WindowBoxesOf(const Side& side, int64_t first,
                                                               const Source& source) {
  const DotPosition& position = source.position;
  WindowPosition window;
  window.tile = position.row / b_.Index(t_.rows);
  window.first = side.is_lhs ? first : 0;
  window.column = position.column + b_.Index(first);
  window.columns = side.along;
  window.panel = source.k;
  window.batch_at = position.batch_at;
  return WindowBoxes(b_, *t_.window, side.is_lhs ? 0 : 1, window, t_.line());
}

// `first`: where the box begins along dimension 0, in elements of the panel.
TileCopy::Dimension TensorOperands::BoxOf(const Side& side,
                                          const TensorOperand::Dimension& dimension, int64_t first,
                                          const Source& source) {
  using Along = TensorOperand::Dimension::Along;
  const TensorOperand& tensor = *side.tensor;
  const DotPosition& position = source.position;
  TileCopy::Dimension box{
      .size = dimension.start + dimension.size, .stride = dimension.stride, .box = 1};
  Scalar at;
  if (dimension.along == Along::kBatch) {
    at = dimension.is_all ? position.batch : position.batch_at[dimension.batch];
  } else {
    bool is_depth = dimension.along == Along::kDepth;
    at = is_depth ? source.k * b_.Index(t_.depth) : side.is_lhs ? position.row : position.column;
    bool is_line = is_depth == tensor.is_k_major;
    if (is_line) at = at + b_.Index(first);
    box.box = is_line ? tensor.RawLine() : is_depth ? t_.depth : side.along;
  }
  box.at = (at + b_.Index(dimension.start)).id();
  return box;
}

TensorOperands::PanelPosition TensorOperands::PositionOf(const Side& side, Scalar vector,
                                                         int64_t lanes) {
  PanelPosition at;
  if (side.tensor->IsTransposed()) {
    Scalar of_warp = vector / b_.Index(kWarpSize);
    Scalar rows = of_warp % b_.Index(t_.depth / kTransposedRows),
           vectors = of_warp / b_.Index(t_.depth / kTransposedRows);
    at.depth = rows * b_.Index(kTransposedRows) + vector % b_.Index(kTransposedRows);
    Scalar in_warp = vector / b_.Index(kTransposedRows) % b_.Index(kTransposedVectors);
    at.along = (vectors * b_.Index(kTransposedVectors) + in_warp) * b_.Index(lanes);
    at.line = at.along;
    at.in_line = at.depth;
    return at;
  }
  int64_t of_line = t_.line() / lanes;
  at.line = vector / b_.Index(of_line);
  at.in_line = vector % b_.Index(of_line) * b_.Index(lanes);
  at.along = at.line;
  at.depth = at.in_line;
  if (side.tensor->is_k_major) return at;
  // Lines of panels along the free dimension are K, panel after panel.
  at.along = at.line / b_.Index(t_.depth) * b_.Index(t_.line()) + at.in_line;
  at.depth = at.line % b_.Index(t_.depth);
  return at;
}

Scalar TensorOperands::PanelIndex(const Side& side, const PanelPosition& at, Scalar lane) {
  if (side.tensor->IsTransposed()) return SwizzledIndex(b_, at.line + lane, at.in_line, side.type);
  return SwizzledIndex(b_, at.line, at.in_line, side.type) + lane;
}

void TensorOperands::StoreParts(const Side& side, Scalar stage, Scalar index, Scalar value) {
  Scalar at = stage * b_.Index(side.size * side.parts) + index;
  if (side.parts == 1) return b_.Store(side.stages, at, value.As(side.type));
  SplitFactor split = SplitTo(ScalarType::kBF16, value);
  b_.Store(side.stages, at, split.hi);
  b_.Store(side.stages, at + b_.Index(side.size), split.lo);
}

void TensorOperands::Convert(const Side& side, Scalar stage, Scalar raw_stage) {
  const TensorOperand& tensor = *side.tensor;
  int64_t lanes = std::min(ChunkElements(tensor.stored), ChunkElements(side.type)),
          raw_line = tensor.RawLine();
  auto raw_index = [&](const PanelPosition& at) {
    Scalar in_memory = tensor.is_k_major ? at.depth : at.along,
           line = tensor.is_k_major ? at.along : at.depth;
    Scalar box = in_memory / b_.Index(raw_line);
    return raw_stage * b_.Index(side.size) +
           box * b_.Index((tensor.is_k_major ? side.along : t_.depth) * raw_line) +
           SwizzledIndex(b_, line, in_memory % b_.Index(raw_line), tensor.stored);
  };
  Move(side, stage, lanes, raw_index,
       [](const PanelPosition&, Scalar, Scalar stored) { return stored; });
}

// Moves this thread's elements of a raw panel to a stage, `lanes` adjacent ones at a time, from
// raw_index(position); element(position, lane, element of the array) is the factor.
template <typename RawIndex, typename ElementAt>
void TensorOperands::Move(const Side& side, Scalar stage, int64_t lanes, RawIndex&& raw_index,
                          ElementAt&& element) {
  int64_t vectors = side.size / (lanes * kWarpgroupThreads);  // of a thread
  int64_t at_once = std::gcd(vectors, std::max<int64_t>(kMovedAtOnce / lanes, 1));
  auto position_of = [&](Scalar v, Scalar u) {
    Scalar number = v * b_.Index(at_once) + u;
    return PositionOf(side, number * b_.Index(kWarpgroupThreads) + thread_, lanes);
  };
  ArrayId loaded = b_.Local("loaded", side.tensor->stored, Space::kRegisters, at_once * lanes);
  // All loads precede the stores: the compiler cannot tell that they are of different arrays.
  b_.For("v", LoopRole::kSerial, b_.Index(vectors / at_once), [&](Scalar v) {
    b_.For("u", LoopRole::kUnrolled, b_.Index(at_once), [&](Scalar u) {
      Scalar from = raw_index(position_of(v, u));
      ForLanes(b_, lanes, [&](Scalar lane) {
        b_.Store(loaded, u * b_.Index(lanes) + lane, b_.Read(side.raw, from + lane));
      });
    });
    b_.For("u", LoopRole::kUnrolled, b_.Index(at_once), [&](Scalar u) {
      PanelPosition at = position_of(v, u);
      ForLanes(b_, lanes, [&](Scalar lane) {
        Scalar stored = element(at, lane, b_.Read(loaded, u * b_.Index(lanes) + lane));
        StoreElement(side, stage, PanelIndex(side, at, lane), stored);
      });
    });
  });
}

// Stores an element that is in the type of the array.
void TensorOperands::StoreElement(const Side& side, Scalar stage, Scalar index, Scalar stored) {
  ElementType type = side.operand.instr->shape().type();
  if (side.tensor->stored == side.type && side.parts == 1)
    return b_.Store(side.stages, stage * b_.Index(side.size) + index, stored);
  Element element = FromStorage(b_, type, {stored, {}});
  StoreParts(side, stage, index, ConvertToFactorType(b_, type, ScalarType::kF32, element));
}

void TensorOperands::Compute(const Side& side, Scalar stage, const Source& source) {
  const DotOperand& operand = side.operand;
  Scalar begin = side.is_lhs ? source.position.row : source.position.column;
  int64_t total = side.is_lhs ? dot_dims_.m : dot_dims_.n,
          of_tile = side.is_lhs ? t_.rows : t_.columns;
  int64_t lanes = ProducerLanes(operand, t_.form, side.is_lhs ? 0 : 1);
  int64_t vectors = side.size / (lanes * kWarpgroupThreads);  // of a thread
  int64_t at_once = std::gcd(vectors, kComputedAtOnce);
  auto compute = [&](Scalar number) {
    PanelPosition at = PositionOf(side, number * b_.Index(kWarpgroupThreads) + thread_, lanes);
    PanelElements elements{.along = begin + at.along,
                           .depth = source.k * b_.Index(t_.depth) + at.depth};
    elements.lanes = lanes;
    elements.checks_along = RoundUp(total, of_tile) - of_tile + side.along > total;
    elements.checks_depth = t_.panels * t_.depth != dot_dims_.k;
    elements_[side.is_lhs ? 0 : 1].ForElements(
        operand, total, elements, [&](Scalar lane, Scalar value) {
          StoreParts(side, stage, PanelIndex(side, at, lane), value);
        });
  };
  if (vectors == at_once) return b_.For("u", LoopRole::kUnrolled, b_.Index(vectors), compute);
  b_.For("v", LoopRole::kSerial, b_.Index(vectors / at_once), [&](Scalar v) {
    b_.For("u", LoopRole::kUnrolled, b_.Index(at_once),
           [&](Scalar u) { compute(v * b_.Index(at_once) + u); });
  });
}

// ---- warpgroups

// Starts the multiplies of a stage.
void TensorOperands::MultiplyStage(ArrayId sums, Scalar stage, Scalar group) {
  for (int64_t j = 0; j < t_.Multiplies(); ++j) {
    // 64 rows further: 64 lines of a K-major panel, or the next panel.
    Scalar row = group * b_.Index(t_.Multiplies()) + b_.Index(j);
    // The small products first.
    if (rhs_.parts > 1) MultiplyPart(sums, stage, row, j, {0, 1});
    if (lhs_.parts > 1) MultiplyPart(sums, stage, row, j, {1, 0});
    MultiplyPart(sums, stage, row, j, {0, 0});
  }
}

void TensorOperands::MultiplyPanels(ArrayId sums, Scalar i, Scalar group, Scalar lane) {
  if (t_.form.HasPartialSums()) return AddPartialSums(sums, i, group, lane);
  b_.For("k", LoopRole::kSerial, b_.Index(t_.panels), [&](Scalar k) {
    PipelineStage stage = StageOf(b_, NumberOf(i, k), t_.stages);
    b_.Wait(full_, stage.index, stage.parity);
    MultiplyStage(sums, stage.index, group);
    b_.WaitMultiplies(sums, t_.Multiplies() * t_.form.Products());
    b_.If(
        b_.Index(0) < k,
        [&] {
          PipelineStage before = StageOf(b_, NumberOf(i, k - b_.Index(1)), t_.stages);
          ArriveOfWarp(empty_, before.index, lane);
        },
        /*uniform=*/false);
  });
}

// The other warpgroup multiplies while this one adds the sums of a panel.
void TensorOperands::AddPartialSums(ArrayId sums, Scalar i, Scalar group, Scalar lane) {
  b_.For("k", LoopRole::kSerial, b_.Index(t_.panels), [&](Scalar k) {
    PipelineStage stage = StageOf(b_, NumberOf(i, k), t_.stages);
    b_.Wait(full_, stage.index, stage.parity);
    MultiplyStage(partial_sums_, stage.index, group);
    b_.WaitMultiplies(partial_sums_, 0);
    ArriveOfWarp(empty_, stage.index, lane);
    b_.For("s", LoopRole::kUnrolled, b_.Index(t_.AccumulatorsPerThread()),
           [&](Scalar s) { b_.Store(sums, s, b_.Read(sums, s) + b_.Read(partial_sums_, s)); });
  });
}

// All threads of the warp have waited for the multiplies that read the last stage.
void TensorOperands::FinishPanels(ArrayId sums, Scalar i, Scalar lane) {
  if (t_.form.HasPartialSums()) return;
  b_.WaitMultiplies(sums, 0);
  PipelineStage last = StageOf(b_, NumberOf(i, b_.Index(t_.panels - 1)), t_.stages);
  ArriveOfWarp(empty_, last.index, lane);
}

// Multiplies parts of both operands in a stage, for the sums of the warpgroup's `at`-th 64 rows,
// which are the `row`-th of the tile.
void TensorOperands::MultiplyPart(ArrayId sums, Scalar stage, Scalar row, int64_t at,
                                  const std::array<int64_t, 2>& parts) {
  MatrixMultiply product{.lhs = lhs_.stages, .rhs = rhs_.stages, .async = true};
  product.tf32 = t_.form.tf32;
  product.float8 = t_.form.float8;
  product.overwrite = t_.form.HasPartialSums();
  product.rows = kWarpgroupRows;
  product.columns = product.warp_columns = t_.columns;
  product.warp_rows = MatrixMultiply::kFragmentRows;
  product.depth = b_.Index(t_.depth).id();
  auto is_k_major = [](const Side& side) { return side.tensor->panels_are_k_major; };
  auto index_of = [&](const Side& side, int64_t part) {
    return stage * b_.Index(side.size * side.parts) + b_.Index(part * side.size);
  };
  auto panel_of = [&](const Side& side) {
    return (is_k_major(side) ? side.along : t_.depth) * t_.line();
  };
  int64_t step = (is_k_major(lhs_) ? kWarpgroupRows : t_.depth) * t_.line();
  product.lhs_index = (index_of(lhs_, parts[0]) + row * b_.Index(step)).id();
  product.rhs_index = index_of(rhs_, parts[1]).id();
  product.lhs_row_stride = is_k_major(lhs_) ? t_.line() : 1;
  product.lhs_column_stride = is_k_major(lhs_) ? 1 : t_.line();
  product.rhs_row_stride = is_k_major(rhs_) ? 1 : t_.line();
  product.rhs_column_stride = is_k_major(rhs_) ? t_.line() : 1;
  product.lhs_panel = panel_of(lhs_);
  product.rhs_panel = panel_of(rhs_);
  b_.Multiply(sums, b_.Index(at * product.AccumulatorsPerThread()), product);
}

// All threads of the warp have come here.
void TensorOperands::ArriveOfWarp(ArrayId mbarriers, Scalar index, Scalar thread) {
  b_.Barrier(BarrierScope::kWarp);
  b_.If(thread % b_.Index(kWarpSize) == b_.Index(0), [&] { b_.Arrive(mbarriers, index); });
}

}  // namespace tokamak::gpu
