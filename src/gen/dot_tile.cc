#include "gen/dot_tile.h"

#include <algorithm>

namespace tokamak {
namespace {

// Rows. Packing rhs does not pay off below. Chosen.
constexpr int64_t kFewRows = 36;
// Stride in bytes: rows at multiples of it map to the same L1 sets. Hardware: 64 sets of 64 bytes,
// as in x86 L1 caches.
constexpr int64_t kBadDistance = 4096;

}  // namespace

DotTile::DotTile(const Setting& setting, const Instr& dot, const Tiling& tiling)
    : region_(setting.region),
      machine_(setting.machine),
      b_(setting.b),
      emitter_(setting.emitter),
      dot_(dot),
      result_(&dot),
      sides_(dot),
      t_(tiling) {
  FindSides();
}

ElementType DotTile::sum_type() const {
  return ElementOfMultiplied(*SumTypeOf(t_.type));
}

ElementType DotTile::type() const {
  return ElementOfMultiplied(t_.type);
}

// Elements from row to row, padded if rows would conflict in the L1 cache.
int64_t DotTile::Pitch(int64_t row) const {
  // Bytes: a cache line, and a stride whose multiples use few L1 sets.
  constexpr int64_t kLine = 64, kConflictStride = 512;
  int64_t bytes = BytesOf(t_.type);
  return row * bytes % kConflictStride == 0 ? row + kLine / bytes : row;
}

// Columns of the rhs panel that are stored together, for its whole depth. With short vectors few
// columns fit in registers at a time, and strided reads are slow (Neoverse V1: 72 GFLOP/s per core
// by column blocks, 59 by rows of a panel). Long vectors prefetch their rows
// (backend/cpu/emit_multiply.cc).
int64_t DotTile::BlockColumns() const {
  if (rhs_lies_in_blocks_) return t_.rhs_block;
  if (!machine_.HasShortVectors() || GroupOf(t_.type) > 1) return t_.columns.size;
  int64_t blocks = CeilDiv(t_.columns.size, BlockVectors(machine_) * t_.lanes);
  return RoundUp(CeilDiv(t_.columns.size, blocks), t_.lanes);
}

// Rows whose lhs stays in the L1 cache while column blocks of rhs stream through.
int64_t DotTile::BlockRows() const {
  // Bytes of lhs that stay in the L1 cache, and minimum rows. Chosen.
  constexpr int64_t kBytes = 32 << 10, kLeast = 8;
  if (BlockColumns() == t_.Width()) return t_.rows.size;
  int64_t most = std::max(kBytes / (t_.depth.size * BytesOf(t_.type)), kLeast);
  return CeilDiv(t_.rows.size, CeilDiv(t_.rows.size, most));
}

// Calls body(block, size) for all blocks of `total`; the last may be smaller.
template <typename Body>
void DotTile::ForBlocks(int64_t total, int64_t block, Body&& body) {
  int64_t whole = total / block;
  if (whole == 1) {
    body(b_.Index(0), block);
  } else {
    b_.For("block", LoopRole::kSerial, b_.Index(whole), [&](Scalar i) { body(i, block); });
  }
  if (int64_t rest = total % block; rest > 0) body(b_.Index(whole), rest);
}

ArrayId DotTile::MakeLhs() {
  lhs_is_made_ = true;
  lhs_.direct = false;
  lhs_pitch_ = Pitch(t_.PaddedDepth());
  lhs_panel_ = b_.Local("lhs_rows", t_.type, Space::kShared, t_.rows.size * lhs_pitch_);
  return lhs_panel_;
}

void DotTile::PadLhs() {
  auto zero = [&](int64_t row, int64_t rows, int64_t begin, int64_t count) {
    if (rows == 0 || count == 0) return;
    b_.For("i", LoopRole::kSerial, b_.Index(rows), [&](Scalar i) {
      Scalar at = (i + b_.Index(row)) * b_.Index(lhs_pitch_) + b_.Index(begin);
      ForVectors(b_, count, t_.lanes,
                 [&](Scalar l) { b_.Store(lhs_panel_, at + l, b_.Constant(t_.type, 0)); });
    });
  };
  int64_t valid = t_.rows.valid();
  zero(0, valid, sides_.k, t_.PaddedDepth() - sides_.k);
  zero(valid, t_.rows.size - valid, 0, t_.PaddedDepth());
}

// With a single panel the sums are the results.
bool DotTile::MayWriteTo() const {
  ElementType type = result_->shape().type();
  return t_.depth.count == 1 && t_.column_groups == 1 && !t_.rows.IsPadded() &&
         !t_.columns.IsPadded() && !IsComplex(type) && type == sum_type();
}

void DotTile::BeginBatch(Scalar batch) {
  batch_ = batch;
  batch_at_ = Delinearized(b_, batch, SizesOf(sides_.lhs, sides_.attrs.lhs_batch));
}

void DotTile::FindSides() {
  static_cast<DotOperand&>(lhs_) = DotOperand(dot_, sides_, 0);
  static_cast<DotOperand&>(rhs_) = DotOperand(dot_, sides_, 1);
  for (Side* side : {&lhs_, &rhs_}) FindLayout(*side);
  FindResult();
  int64_t bytes = BytesOf(t_.type);
  bool disjoint = lhs_.free_distance * bytes % kBadDistance != 0;
  lhs_.direct = lhs_.direct && !t_.rows.IsPadded() && lhs_.depth_distance == 1 && disjoint;
  rhs_lies_in_blocks_ = t_.rhs_block > 0 && IsInput(rhs_) && t_.PaddedDepth() == sides_.k;
  rhs_.direct = rhs_.direct && !t_.columns.IsPadded() && rhs_.free_distance == 1 &&
                GroupOf(t_.type) == 1 && t_.rows.count == 1 && t_.rows.size <= kFewRows &&
                rhs_.depth_distance >= sides_.n && !RhsConflicts();
}

// Whether rows of rhs conflict in the L1 cache. With short vectors few rows of results are in
// registers at a time, so each row of rhs is reread often.
bool DotTile::RhsConflicts() const {
  constexpr int64_t kWorthCopy = 16;
  return machine_.HasShortVectors() && t_.rows.size >= kWorthCopy &&
         rhs_.depth_distance * BytesOf(t_.type) % kBadDistance == 0;
}

// A dot with prepacked rhs is followed by a reshape to the shape of the original dot.
void DotTile::FindResult() {
  if (t_.rhs_block == 0 || dot_.users().size() != 1) return;
  auto has = [](const std::vector<const Instr*>& instrs, const Instr* instr) {
    return std::find(instrs.begin(), instrs.end(), instr) != instrs.end();
  };
  const Instr* user = *dot_.users().begin();
  if (user->op() != Op::kReshape || !has(region_.instrs, user) || has(region_.roots, &dot_)) return;
  const Dims &from = dot_.shape().dims(), &to = user->shape().dims();
  size_t rows = from.size() - 2;
  if (to.size() > rows &&
      std::equal(from.begin(), from.begin() + static_cast<int64_t>(rows), to.begin()))
    result_ = user;
}

bool DotTile::TakesColumnGroups() const {
  return rhs_lies_in_blocks_ && t_.columns.total % t_.rhs_block == 0 && result_ != &dot_ &&
         ColumnDims().size() == 1;
}

// The column dimensions of the result.
Dims DotTile::ColumnDims() const {
  const Dims& dims = result_->shape().dims();
  return {
      dims.begin() + static_cast<int64_t>(sides_.attrs.lhs_batch.size() + sides_.lhs_free.size()),
      dims.end()};
}

void DotTile::FindLayout(Side& side) {
  std::optional<int64_t> free = DistanceAlong(*side.dims, *side.free);
  std::optional<int64_t> depth = DistanceAlong(*side.dims, *side.contracting);
  side.direct = IsInput(side) && free && depth && t_.PaddedDepth() == sides_.k &&
                StorageType(side.instr->shape().type()) == t_.type &&
                !IsComplex(side.instr->shape().type());
  side.free_distance = free.value_or(0);
  side.depth_distance = depth.value_or(0);
  if (sides_.k == 1) side.depth_distance = std::max<int64_t>(side.free_distance, 1);
}

bool DotTile::IsInput(const Side& side) const {
  return std::find(region_.inputs.begin(), region_.inputs.end(), side.instr) !=
         region_.inputs.end();
}

void DotTile::MakeArrays() {
  sums_ = output_
              ? *output_
              : b_.Local("sums", *SumTypeOf(t_.type), Space::kShared, t_.rows.size * t_.Width());
  if (!lhs_.direct && !lhs_is_made_)
    lhs_panel_ = b_.Local("lhs_panel", t_.type, Space::kShared, t_.rows.size * t_.depth.size);
  if (!RhsIsReady())
    rhs_panel_ = b_.Local("rhs_panel", t_.type, Space::kShared,
                          t_.depth.size * RoundUp(t_.columns.size, BlockColumns()));
  int64_t side = SquareSide();
  bool transposes = NeedsTranspose(lhs_) || NeedsTranspose(rhs_);
  if (transposes) square_ = b_.Local("square", t_.type, Space::kRegisters, side * side);
  if ((NeedsTranspose(lhs_) && !IsInput(lhs_)) || (NeedsTranspose(rhs_) && !IsInput(rhs_)))
    stage_ = b_.Local("stage", t_.type, Space::kShared, side * side);
}

// Lanes. A larger square costs more code and compile time than it saves.
int64_t DotTile::SquareSide() const {
  return std::min<int64_t>(machine_.Lanes(BytesOf(t_.type) * 8), 16);
}

// Whether the operand is contiguous along the other dimension than its panel.
bool DotTile::NeedsTranspose(const Side& side) const {
  if (side.direct || (lhs_is_made_ && &side == &lhs_)) return false;
  if (&side == &rhs_ && rhs_lies_in_blocks_) return false;
  int64_t lanes = SquareSide();
  int64_t free = (&side == &lhs_ ? t_.rows : t_.columns).size;
  if (free < lanes || t_.depth.size < lanes) return false;
  if (&side == &rhs_) return side.depth_is_inner;
  return GroupOf(t_.type) > 1 && !side.depth_is_inner;
}

// The lhs panel is contiguous along the contracted dimension, unless the operand is contiguous
// along its rows.
bool DotTile::LhsIsTransposed() const {
  return GroupOf(t_.type) == 1 && !lhs_.depth_is_inner;
}

// ---- operands

// An element in the type of the factors. `free` and `depth` are relative to the tile and the panel.
Scalar DotTile::ElementOf(const Side& side, Scalar panel, Scalar free, Scalar depth) {
  const TileCut& cut = &side == &lhs_ ? t_.rows : t_.columns;
  if (cut.IsPadded()) free = LesserOf(free, b_.Index(cut.total - 1));
  Scalar along = (&side == &lhs_ ? row_ : column_) + free;
  Scalar p = panel * b_.Index(t_.depth.size) + depth;
  bool padded = t_.PaddedDepth() != sides_.k;
  Scalar inside = padded ? LesserOf(p, b_.Index(sides_.k - 1)) : p;
  Element value = emitter_.At(*side.instr, side.At(b_, batch_at_, along, inside));
  if (!emitter_.failure().empty()) return b_.Constant(t_.type, 0);
  Scalar scalar = AsMultiplied(b_, side.instr->shape().type(), t_.type, value);
  return padded ? Choose(p < b_.Index(sides_.k), scalar, b_.Constant(t_.type, 0)) : scalar;
}

Scalar DotTile::LhsIndex(Scalar row, Scalar depth) {
  return LhsIsTransposed() ? depth * b_.Index(t_.rows.size) + row
                           : row * b_.Index(t_.depth.size) + depth;
}
Scalar DotTile::RhsIndex(Scalar block, Scalar in_block, Scalar group, int64_t in_group) {
  int64_t of = GroupOf(t_.type);
  return block * b_.Index(t_.depth.size * BlockColumns()) + group * b_.Index(BlockColumns() * of) +
         in_block * b_.Index(of) + b_.Index(in_group);
}

void DotTile::PackLhs(Scalar panel) {
  if (NeedsTranspose(lhs_)) return Transpose(lhs_, panel);
  bool is_transposed = LhsIsTransposed();
  int64_t outer = is_transposed ? t_.depth.size : t_.rows.size;
  int64_t inner = is_transposed ? t_.rows.size : t_.depth.size;
  int64_t lanes = machine_.Lanes(BytesOf(t_.type) * 8);
  b_.For("i", LoopRole::kSerial, b_.Index(outer), [&](Scalar i) {
    ForVectors(b_, inner, lanes, [&](Scalar l) {
      Scalar row = is_transposed ? l : i, depth = is_transposed ? i : l;
      b_.Store(lhs_panel_, LhsIndex(row, depth), ElementOf(lhs_, panel, row, depth));
    });
  });
}

void DotTile::PackRhs(Scalar panel) {
  if (NeedsTranspose(rhs_)) return Transpose(rhs_, panel);
  int64_t group = GroupOf(t_.type);
  ForBlocks(t_.columns.size, BlockColumns(), [&](Scalar block, int64_t columns) {
    Scalar first = block * b_.Index(BlockColumns());
    b_.For("i", LoopRole::kSerial, b_.Index(t_.depth.size / group), [&](Scalar i) {
      ForVectors(b_, columns, 2 * t_.lanes, [&](Scalar column) {
        std::vector<Scalar> values;
        for (int64_t p = 0; p < group; ++p)
          values.push_back(
              ElementOf(rhs_, panel, first + column, i * b_.Index(group) + b_.Index(p)));
        for (int64_t p = 0; p < group; ++p)
          b_.Store(rhs_panel_, RhsIndex(block, column, i, p), values[static_cast<size_t>(p)]);
      });
    });
  });
}

// Transposes square blocks: loads along one dimension and stores along the other.
void DotTile::Transpose(const Side& side, Scalar panel) {
  int64_t lanes = SquareSide();
  bool is_lhs = &side == &lhs_;
  int64_t free = (is_lhs ? t_.rows : t_.columns).size;
  auto begin = [&](Scalar i, int64_t size) {
    Scalar at = i * b_.Index(lanes);
    return size % lanes == 0 ? at : LesserOf(at, b_.Index(size - lanes));
  };
  b_.For("f", LoopRole::kSerial, b_.Index(CeilDiv(free, lanes)), [&](Scalar f) {
    b_.For("d", LoopRole::kSerial, b_.Index(CeilDiv(t_.depth.size, lanes)), [&](Scalar d) {
      Scalar free_at = begin(f, free), depth_at = begin(d, t_.depth.size);
      // Load along the contiguous dimension of the source: the depth of rhs, the rows of lhs. Code
      // that computes elements is not unrolled for each row of the square.
      bool plain = IsInput(side);
      auto fill = [&](LoopRole role, ArrayId to, bool computes) {
        b_.For("k", role, b_.Index(lanes), [&](Scalar k) {
          b_.For("l", LoopRole::kVector, b_.Index(lanes), [&](Scalar l) {
            Scalar at = k * b_.Index(lanes) + l;
            if (!computes) return b_.Store(to, at, b_.Read(stage_, at));
            b_.Store(to, at,
                     is_lhs ? ElementOf(side, panel, free_at + l, depth_at + k)
                            : ElementOf(side, panel, free_at + k, depth_at + l));
          });
        });
      };
      if (!plain) fill(LoopRole::kSerial, stage_, true);
      fill(LoopRole::kUnrolled, square_, plain);
      StoreTransposed(is_lhs, lanes, free_at, depth_at);
    });
  });
}

void DotTile::StoreTransposed(bool is_lhs, int64_t lanes, Scalar free_at, Scalar depth_at) {
  int64_t group = is_lhs ? 1 : GroupOf(t_.type);
  for (int64_t k = 0; k < lanes; k += group) {
    b_.For("l", LoopRole::kVector, b_.Index(lanes), [&](Scalar l) {
      std::vector<Scalar> values;
      for (int64_t p = 0; p < group; ++p)
        values.push_back(b_.Read(square_, l * b_.Index(lanes) + b_.Index(k + p)));
      for (int64_t p = 0; p < group; ++p) {
        if (is_lhs) {
          b_.Store(lhs_panel_, LhsIndex(free_at + b_.Index(k), depth_at + l), values[0]);
        } else {
          Scalar at = (depth_at + b_.Index(k)) / b_.Index(group);
          Scalar block = free_at / b_.Index(BlockColumns()),
                 in_block = free_at % b_.Index(BlockColumns()) + l;
          b_.Store(rhs_panel_, RhsIndex(block, in_block, at, p), values[static_cast<size_t>(p)]);
        }
      }
    });
  }
}

// ---- sums

// The index at which a directly read operand starts.
Scalar DotTile::PanelIndex(const Side& side, Scalar along, Scalar panel) {
  Dims strides = RowMajorStrides(*side.dims);
  Scalar at =
      along * b_.Index(side.free_distance) + panel * b_.Index(t_.depth.size * side.depth_distance);
  for (size_t i = 0; i < side.batch->size(); ++i)
    at = at + batch_at_[i] * b_.Index(strides[static_cast<size_t>((*side.batch)[i])]);
  return at;
}

ArrayId DotTile::InputArray(const Instr& instr) const {
  auto at = std::find(region_.inputs.begin(), region_.inputs.end(), &instr);
  return ArrayId{static_cast<uint32_t>(at - region_.inputs.begin())};
}

void DotTile::PackRhsOnce(Scalar column) {
  rhs_is_packed_once_ = true;
  column_ = column;
  if (!RhsIsReady()) PackRhs(b_.Index(0));
}

void DotTile::Emit(Scalar row, Scalar column) {
  row_ = row;
  column_ = column;
  output_at_ =
      output_ ? (batch_ * b_.Index(sides_.m) + row) * b_.Index(sides_.n) + column : b_.Index(0);
  if (t_.depth.count == 1) return Panel(b_.Index(0), true);
  b_.For("i", LoopRole::kSerial, b_.Index(t_.rows.size), [&](Scalar i) {
    ForVectors(b_, t_.Width(), t_.lanes, [&](Scalar j) {
      b_.Store(sums_, i * b_.Index(t_.Width()) + j, b_.Constant(b_.kernel().array(sums_).type, 0));
    });
  });
  b_.For("panel", LoopRole::kSerial, b_.Index(t_.depth.count),
         [&](Scalar panel) { Panel(panel, false); });
}

void DotTile::Panel(Scalar panel, bool fresh) {
  if (!lhs_.direct && !lhs_is_made_) PackLhs(panel);
  if (!RhsIsReady() && !rhs_is_packed_once_) PackRhs(panel);
  if (!emitter_.failure().empty()) return;
  bool is_transposed = LhsIsTransposed();
  Multiplication product{
      .fresh = fresh, .rows = t_.rows.size, .columns = t_.columns.size, .to_row = SumsPitch()};
  product.depth = b_.Index(t_.depth.size).id();
  if (lhs_.direct) {
    product.lhs = InputArray(*lhs_.instr);
    product.lhs_at = PanelIndex(lhs_, row_, panel).id();
    product.lhs_row = std::max<int64_t>(lhs_.free_distance, 1);
    product.lhs_column = 1;
  } else if (lhs_is_made_) {
    product.lhs = lhs_panel_;
    product.lhs_at = (panel * b_.Index(t_.depth.size)).id();
    product.lhs_row = lhs_pitch_;
    product.lhs_column = 1;
  } else {
    product.lhs = lhs_panel_;
    product.lhs_at = b_.Index(0).id();
    product.lhs_row = is_transposed ? 1 : t_.depth.size;
    product.lhs_column = is_transposed ? t_.rows.size : 1;
  }
  if (rhs_.direct) {
    product.rhs = InputArray(*rhs_.instr);
    product.rhs_at = PanelIndex(rhs_, column_, panel).id();
    product.rhs_row = rhs_.depth_distance;
    return b_.Multiply(sums_, output_at_, product);
  }
  product.rhs = rhs_panel_;
  product.rhs_row = BlockColumns() * GroupOf(t_.type);
  Scalar lhs_at{&b_, product.lhs_at}, rhs_at = b_.Index(0);
  int64_t next_block = t_.depth.size * BlockColumns();
  if (rhs_lies_in_blocks_) {
    product.rhs = InputArray(*rhs_.instr);
    rhs_at = panel * b_.Index(next_block);
    next_block = sides_.k * BlockColumns();
    rhs_at = rhs_at + column_ / b_.Index(BlockColumns()) * b_.Index(next_block);
  }
  ForBlocks(t_.rows.size, BlockRows(), [&](Scalar row_block, int64_t rows) {
    Scalar first = row_block * b_.Index(BlockRows());
    product.rows = rows;
    product.lhs_at = (lhs_at + first * b_.Index(product.lhs_row)).id();
    ForBlocks(t_.column_groups, 1, [&](Scalar part, int64_t) {
      Scalar group_at =
          rhs_at + part * b_.Index(sides_.n / t_.column_groups / BlockColumns() * next_block);
      Scalar to = output_at_ + first * b_.Index(SumsPitch()) + part * b_.Index(t_.columns.size);
      ForBlocks(t_.columns.size, BlockColumns(), [&](Scalar block, int64_t columns) {
        product.columns = columns;
        product.rhs_at = (group_at + block * b_.Index(next_block)).id();
        b_.Multiply(sums_, to + block * b_.Index(BlockColumns()), product);
      });
    });
  });
}

}  // namespace tokamak
