#include "gen/dot_tile.h"

#include <algorithm>

namespace tokamak {
namespace {

// Rows. Chosen: up to here a packed rhs would be read too few times (once per 6 to 12 rows that fit
// in registers) to repay the copy.
constexpr int64_t kFewRows = 36;
// Stride in bytes: rows at multiples of it map to the same L1 sets. Hardware: 64 sets of 64 bytes,
// as in x86 L1 caches.
constexpr int64_t kBadDistance = 4096;
// Rows. From here on a copy of rhs pays off if its rows conflict in the L1 cache. Chosen: with more
// rows than registers hold at once, rhs is reread, and each reread misses.
constexpr int64_t kWorthCopy = 16;
// Elements. Maximum edge of the squares in which panels are transposed. Chosen: a larger square
// costs more code and compile time than it saves.
constexpr int64_t kMaxSquare = 16;

}  // namespace

DotTile::DotTile(const Environment& environment, const Instr& dot, const Tiling& tiling)
    : region_(environment.region),
      machine_(environment.machine),
      b_(environment.b),
      emitter_(environment.emitter),
      dot_(dot),
      result_(&dot),
      dot_dims_(dot),
      t_(tiling) {
  ClassifyOperands();
}

ElementType DotTile::sum_type() const {
  return DotElementType(*AccumulatorScalarType(t_.type));
}

ElementType DotTile::factor_type() const {
  return DotElementType(t_.type);
}

// Elements from row to row, padded if rows would conflict in the L1 cache.
int64_t DotTile::PaddedPitch(int64_t row_length) const {
  // Bytes: a cache line (hardware), and a stride whose multiples use few L1 sets (chosen: multiples
  // of 8 lines use 8 of 64 sets; one more line of padding uses all).
  constexpr int64_t kLine = 64, kConflictStride = 512;
  int64_t bytes = BytesOf(t_.type);
  return row_length * bytes % kConflictStride == 0 ? row_length + kLine / bytes : row_length;
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

ArrayId DotTile::DeclareLhs() {
  lhs_is_caller_filled_ = true;
  lhs_.direct = false;
  lhs_pitch_ = PaddedPitch(t_.PaddedDepth());
  lhs_panel_ = b_.Local("lhs_rows", t_.type, Space::kShared, t_.rows.size * lhs_pitch_);
  return lhs_panel_;
}

void DotTile::ZeroLhsPadding() {
  auto zero = [&](int64_t row, int64_t rows, int64_t begin, int64_t count) {
    if (rows == 0 || count == 0) return;
    b_.For("i", LoopRole::kSerial, b_.Index(rows), [&](Scalar i) {
      Scalar at = (i + b_.Index(row)) * b_.Index(lhs_pitch_) + b_.Index(begin);
      ForVectors(b_, count, t_.lanes,
                 [&](Scalar l) { b_.Store(lhs_panel_, at + l, b_.Constant(t_.type, 0)); });
    });
  };
  int64_t valid = t_.rows.ValidSize();
  zero(0, valid, dot_dims_.k, t_.PaddedDepth() - dot_dims_.k);
  zero(valid, t_.rows.size - valid, 0, t_.PaddedDepth());
}

// With a single panel the sums are the results.
bool DotTile::CanWriteTo() const {
  ElementType type = result_->shape().type();
  return t_.depth.count == 1 && t_.column_groups == 1 && !t_.rows.IsPadded() &&
         !t_.columns.IsPadded() && !IsComplex(type) && type == sum_type();
}

void DotTile::BeginBatch(Scalar batch) {
  batch_ = batch;
  batch_at_ = Delinearized(b_, batch, SizesAlong(dot_dims_.lhs_dims, dot_dims_.attrs.lhs_batch));
}

void DotTile::ClassifyOperands() {
  static_cast<DotOperand&>(lhs_) = DotOperand(dot_, dot_dims_, 0);
  static_cast<DotOperand&>(rhs_) = DotOperand(dot_, dot_dims_, 1);
  for (TileOperand* side : {&lhs_, &rhs_}) FindLayout(*side);
  FindMergedResult();
  int64_t bytes = BytesOf(t_.type);
  bool disjoint = lhs_.free_stride * bytes % kBadDistance != 0;
  lhs_.direct = lhs_.direct && !t_.rows.IsPadded() && lhs_.k_stride == 1 && disjoint;
  rhs_.direct = rhs_.direct && !t_.columns.IsPadded() && rhs_.free_stride == 1 &&
                VnniGroupSize(t_.type) == 1 && t_.rows.count == 1 && t_.rows.size <= kFewRows &&
                rhs_.k_stride >= dot_dims_.n && !RhsRowsConflictInCache();
}

// Whether rows of rhs conflict in the L1 cache. With short vectors few rows of results are in
// registers at a time, so each row of rhs is reread often.
bool DotTile::RhsRowsConflictInCache() const {
  return machine_.HasShortVectors() && t_.rows.size >= kWorthCopy &&
         rhs_.k_stride * BytesOf(t_.type) % kBadDistance == 0;
}

// A dot with prepacked rhs is followed by a reshape to the shape of the original dot.
void DotTile::FindMergedResult() {
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

bool DotTile::SupportsColumnGroups() const {
  return t_.rhs_is_prepacked && t_.columns.total % t_.rhs_block == 0 && result_ != &dot_ &&
         ColumnDims().size() == 1;
}

// The column dimensions of the result.
Dims DotTile::ColumnDims() const {
  const Dims& dims = result_->shape().dims();
  return {dims.begin() +
              static_cast<int64_t>(dot_dims_.attrs.lhs_batch.size() + dot_dims_.lhs_free.size()),
          dims.end()};
}

void DotTile::FindLayout(TileOperand& side) {
  std::optional<int64_t> free = LinearizedStride(*side.dims, *side.free);
  std::optional<int64_t> depth = LinearizedStride(*side.dims, *side.contracting);
  side.direct = t_.staging == Staging::kMemory && IsInput(side) && free && depth &&
                t_.PaddedDepth() == dot_dims_.k &&
                StorageType(side.instr->shape().type()) == t_.type &&
                !IsComplex(side.instr->shape().type());
  side.free_stride = free.value_or(0);
  side.k_stride = depth.value_or(0);
  if (dot_dims_.k == 1) side.k_stride = std::max<int64_t>(side.free_stride, 1);
}

bool DotTile::IsInput(const TileOperand& side) const {
  return std::find(region_.inputs.begin(), region_.inputs.end(), side.instr) !=
         region_.inputs.end();
}

void DotTile::DeclareArrays() {
  sums_ = output_ ? *output_
                  : b_.Local("sums", *AccumulatorScalarType(t_.type), Space::kShared,
                             t_.rows.size * t_.TileColumns());
  if (!lhs_.direct && !lhs_is_caller_filled_)
    lhs_panel_ = b_.Local("lhs_panel", t_.type, Space::kShared, t_.rows.size * t_.depth.size);
  if (!RhsNeedsNoPacking())
    rhs_panel_ = b_.Local("rhs_panel", t_.type, Space::kShared,
                          t_.depth.size * RoundUp(t_.columns.size, t_.multiply_columns));
  int64_t side = TransposeTileSize();
  bool transposes = NeedsTranspose(lhs_) || NeedsTranspose(rhs_);
  if (transposes) transpose_square_ = b_.Local("square", t_.type, Space::kRegisters, side * side);
  if ((NeedsTranspose(lhs_) && !IsInput(lhs_)) || (NeedsTranspose(rhs_) && !IsInput(rhs_)))
    transpose_source_ = b_.Local("stage", t_.type, Space::kShared, side * side);
}

int64_t DotTile::TransposeTileSize() const {
  return std::min<int64_t>(machine_.Lanes(BytesOf(t_.type) * 8), kMaxSquare);
}

// Whether the operand is contiguous along the other dimension than its panel.
bool DotTile::NeedsTranspose(const TileOperand& side) const {
  if (side.direct || (lhs_is_caller_filled_ && &side == &lhs_)) return false;
  if (&side == &rhs_ && t_.rhs_is_prepacked) return false;
  int64_t lanes = TransposeTileSize();
  int64_t free = (&side == &lhs_ ? t_.rows : t_.columns).size;
  if (free < lanes || t_.depth.size < lanes) return false;
  if (&side == &rhs_) return side.k_is_minor;
  return VnniGroupSize(t_.type) > 1 && !side.k_is_minor;
}

// The lhs panel is contiguous along the contracted dimension, unless the operand is contiguous
// along its rows.
bool DotTile::LhsIsTransposed() const {
  return VnniGroupSize(t_.type) == 1 && !lhs_.k_is_minor;
}

// ---- operands

// An element in the type of the factors. `free` and `depth` are relative to the tile and the panel.
Scalar DotTile::ElementOf(const TileOperand& side, Scalar panel, Scalar free, Scalar depth) {
  const TiledDimension& cut = &side == &lhs_ ? t_.rows : t_.columns;
  if (cut.IsPadded()) free = LesserOf(free, b_.Index(cut.total - 1));
  Scalar along = (&side == &lhs_ ? row_ : column_) + free;
  Scalar p = panel * b_.Index(t_.depth.size) + depth;
  bool padded = t_.PaddedDepth() != dot_dims_.k;
  Scalar inside = padded ? LesserOf(p, b_.Index(dot_dims_.k - 1)) : p;
  Element value = emitter_.At(*side.instr, side.At(b_, batch_at_, along, inside));
  if (!emitter_.failure().empty()) return b_.Constant(t_.type, 0);
  Scalar scalar = ConvertToFactorType(b_, side.instr->shape().type(), t_.type, value);
  return padded ? Choose(p < b_.Index(dot_dims_.k), scalar, b_.Constant(t_.type, 0)) : scalar;
}

Scalar DotTile::LhsIndex(Scalar row, Scalar depth) {
  return LhsIsTransposed() ? depth * b_.Index(t_.rows.size) + row
                           : row * b_.Index(t_.depth.size) + depth;
}
Scalar DotTile::RhsIndex(Scalar block, Scalar in_block, Scalar group, int64_t in_group) {
  int64_t of = VnniGroupSize(t_.type);
  return block * b_.Index(t_.depth.size * t_.multiply_columns) +
         group * b_.Index(t_.multiply_columns * of) + in_block * b_.Index(of) + b_.Index(in_group);
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
  int64_t group = VnniGroupSize(t_.type);
  ForBlocks(t_.columns.size, t_.multiply_columns, [&](Scalar block, int64_t columns) {
    Scalar first = block * b_.Index(t_.multiply_columns);
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
void DotTile::Transpose(const TileOperand& side, Scalar panel) {
  int64_t lanes = TransposeTileSize();
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
            if (!computes) return b_.Store(to, at, b_.Read(transpose_source_, at));
            b_.Store(to, at,
                     is_lhs ? ElementOf(side, panel, free_at + l, depth_at + k)
                            : ElementOf(side, panel, free_at + k, depth_at + l));
          });
        });
      };
      if (!plain) fill(LoopRole::kSerial, transpose_source_, true);
      fill(LoopRole::kUnrolled, transpose_square_, plain);
      StoreTransposed(is_lhs, lanes, free_at, depth_at);
    });
  });
}

void DotTile::StoreTransposed(bool is_lhs, int64_t lanes, Scalar free_at, Scalar depth_at) {
  int64_t group = is_lhs ? 1 : VnniGroupSize(t_.type);
  for (int64_t k = 0; k < lanes; k += group) {
    b_.For("l", LoopRole::kVector, b_.Index(lanes), [&](Scalar l) {
      std::vector<Scalar> values;
      for (int64_t p = 0; p < group; ++p)
        values.push_back(b_.Read(transpose_square_, l * b_.Index(lanes) + b_.Index(k + p)));
      for (int64_t p = 0; p < group; ++p) {
        if (is_lhs) {
          b_.Store(lhs_panel_, LhsIndex(free_at + b_.Index(k), depth_at + l), values[0]);
        } else {
          Scalar at = (depth_at + b_.Index(k)) / b_.Index(group);
          Scalar block = free_at / b_.Index(t_.multiply_columns),
                 in_block = free_at % b_.Index(t_.multiply_columns) + l;
          b_.Store(rhs_panel_, RhsIndex(block, in_block, at, p), values[static_cast<size_t>(p)]);
        }
      }
    });
  }
}

// ---- sums

// The index at which a directly read operand starts.
Scalar DotTile::PanelIndex(const TileOperand& side, Scalar free, Scalar panel) {
  Dims strides = RowMajorStrides(*side.dims);
  Scalar at = free * b_.Index(side.free_stride) + panel * b_.Index(t_.depth.size * side.k_stride);
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
  if (!RhsNeedsNoPacking()) PackRhs(b_.Index(0));
}

void DotTile::EmitTile(Scalar row, Scalar column) {
  row_ = row;
  column_ = column;
  output_index_ = output_ ? (batch_ * b_.Index(dot_dims_.m) + row) * b_.Index(dot_dims_.n) + column
                          : b_.Index(0);
  if (t_.depth.count == 1) return MultiplyPanel(b_.Index(0), true);
  b_.For("i", LoopRole::kSerial, b_.Index(t_.rows.size), [&](Scalar i) {
    ForVectors(b_, t_.TileColumns(), t_.lanes, [&](Scalar j) {
      b_.Store(sums_, i * b_.Index(t_.TileColumns()) + j,
               b_.Constant(b_.kernel().array(sums_).type, 0));
    });
  });
  b_.For("panel", LoopRole::kSerial, b_.Index(t_.depth.count),
         [&](Scalar panel) { MultiplyPanel(panel, false); });
}

void DotTile::MultiplyPanel(Scalar panel, bool overwrite) {
  if (!lhs_.direct && !lhs_is_caller_filled_) PackLhs(panel);
  if (!RhsNeedsNoPacking() && !rhs_is_packed_once_) PackRhs(panel);
  if (!emitter_.failure().empty()) return;
  bool is_transposed = LhsIsTransposed();
  MatrixMultiply product{.overwrite = overwrite,
                         .rows = t_.rows.size,
                         .columns = t_.columns.size,
                         .result_row_stride = SumsPitch()};
  product.depth = b_.Index(t_.depth.size).id();
  if (lhs_.direct) {
    product.lhs = InputArray(*lhs_.instr);
    product.lhs_index = PanelIndex(lhs_, row_, panel).id();
    product.lhs_row_stride = std::max<int64_t>(lhs_.free_stride, 1);
    product.lhs_column_stride = 1;
  } else if (lhs_is_caller_filled_) {
    product.lhs = lhs_panel_;
    product.lhs_index = (panel * b_.Index(t_.depth.size)).id();
    product.lhs_row_stride = lhs_pitch_;
    product.lhs_column_stride = 1;
  } else {
    product.lhs = lhs_panel_;
    product.lhs_index = b_.Index(0).id();
    product.lhs_row_stride = is_transposed ? 1 : t_.depth.size;
    product.lhs_column_stride = is_transposed ? t_.rows.size : 1;
  }
  if (rhs_.direct) {
    product.rhs = InputArray(*rhs_.instr);
    product.rhs_index = PanelIndex(rhs_, column_, panel).id();
    product.rhs_row_stride = rhs_.k_stride;
    return b_.Multiply(sums_, output_index_, product);
  }
  product.rhs = rhs_panel_;
  product.rhs_row_stride = t_.multiply_columns * VnniGroupSize(t_.type);
  Scalar lhs_at{&b_, product.lhs_index}, rhs_at = b_.Index(0);
  int64_t next_block = t_.depth.size * t_.multiply_columns;
  if (t_.rhs_is_prepacked) {
    product.rhs = InputArray(*rhs_.instr);
    rhs_at = panel * b_.Index(next_block);
    next_block = dot_dims_.k * t_.multiply_columns;
    rhs_at = rhs_at + column_ / b_.Index(t_.multiply_columns) * b_.Index(next_block);
  }
  ForBlocks(t_.rows.size, t_.multiply_rows, [&](Scalar row_block, int64_t rows) {
    Scalar first = row_block * b_.Index(t_.multiply_rows);
    product.rows = rows;
    product.lhs_index = (lhs_at + first * b_.Index(product.lhs_row_stride)).id();
    ForBlocks(t_.column_groups, 1, [&](Scalar group, int64_t) {
      Scalar group_at = rhs_at + group * b_.Index(dot_dims_.n / t_.column_groups /
                                                  t_.multiply_columns * next_block);
      Scalar to = output_index_ + first * b_.Index(SumsPitch()) + group * b_.Index(t_.columns.size);
      ForBlocks(t_.columns.size, t_.multiply_columns, [&](Scalar block, int64_t columns) {
        product.columns = columns;
        product.rhs_index = (group_at + block * b_.Index(next_block)).id();
        b_.Multiply(sums_, to + block * b_.Index(t_.multiply_columns), product);
      });
    });
  });
}

}  // namespace tokamak
