#include "gen/dot_tile.h"

#include <algorithm>

namespace tokamak {
namespace {

// So few rows do not pay for putting the right side in order.
constexpr int64_t kFewRows = 36;
// Rows this far apart meet in the same few places of the first cache.
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

// Elements from row to row: those that would meet in few places of the first cache are moved apart.
int64_t DotTile::Apart(int64_t row) const {
  constexpr int64_t kLine = 64, kFar = 512;
  int64_t bytes = BytesOf(t_.type);
  return row * bytes % kFar == 0 ? row + kLine / bytes : row;
}

// Columns of the right side's panel that lie together, for all of its depth. Short vectors have few
// columns at a time in registers, and read what lies apart slowly (Neoverse V1: 72 GFLOP/s a core
// by blocks, 59 by rows of a panel); long ones prefetch their rows (backend/cpu/emit_multiply.cc).
int64_t DotTile::BlockColumns() const {
  if (rhs_lies_in_blocks_) return t_.rhs_block;
  if (!machine_.HasShortVectors() || GroupOf(t_.type) > 1) return t_.columns.size;
  int64_t blocks = CeilDiv(t_.columns.size, BlockVectors(machine_) * t_.lanes);
  return RoundUp(CeilDiv(t_.columns.size, blocks), t_.lanes);
}

// Rows whose left side stays in the first cache while blocks of the right side pass.
int64_t DotTile::BlockRows() const {
  constexpr int64_t kBytes = 32 << 10, kLeast = 8;
  if (BlockColumns() == t_.Width()) return t_.rows.size;
  int64_t most = std::max(kBytes / (t_.depth.size * BytesOf(t_.type)), kLeast);
  return CeilDiv(t_.rows.size, CeilDiv(t_.rows.size, most));
}

// Runs body(block, size) for all blocks of `total`; the last may be smaller.
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
  lhs_pitch_ = Apart(t_.PaddedDepth());
  lhs_panel_ = b_.Local("lhs_rows", t_.type, Space::kTeam, t_.rows.size * lhs_pitch_);
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

// Sums of one panel are the results.
bool DotTile::MayWriteTo() const {
  ElementType type = result_->shape().type();
  return t_.depth.count == 1 && t_.parts == 1 && !t_.rows.IsPadded() && !t_.columns.IsPadded() &&
         !IsComplex(type) && type == sum_type();
}

void DotTile::BeginBatch(Scalar batch) {
  batch_ = batch;
  batch_at_ = Delinearized(b_, batch, SizesOf(sides_.lhs, sides_.attrs.lhs_batch));
}

void DotTile::FindSides() {
  static_cast<DotOperand&>(lhs_) = DotOperand(dot_, sides_, 0);
  static_cast<DotOperand&>(rhs_) = DotOperand(dot_, sides_, 1);
  for (Side* side : {&lhs_, &rhs_}) FindPlaces(*side);
  FindResult();
  int64_t bytes = BytesOf(t_.type);
  bool apart = lhs_.free_distance * bytes % kBadDistance != 0;
  lhs_.direct = lhs_.direct && !t_.rows.IsPadded() && lhs_.depth_distance == 1 && apart;
  rhs_lies_in_blocks_ = t_.rhs_block > 0 && IsInput(rhs_) && t_.PaddedDepth() == sides_.k;
  rhs_.direct = rhs_.direct && !t_.columns.IsPadded() && rhs_.free_distance == 1 &&
                GroupOf(t_.type) == 1 && t_.rows.count == 1 && t_.rows.size <= kFewRows &&
                rhs_.depth_distance >= sides_.n && !RhsMeets();
}

// Whether rows of the right side meet in few places of the first cache, from where each row of
// vectors is read anew for a few rows of results: short vectors have few of them at a time.
bool DotTile::RhsMeets() const {
  constexpr int64_t kWorthCopy = 16;
  return machine_.HasShortVectors() && t_.rows.size >= kWorthCopy &&
         rhs_.depth_distance * BytesOf(t_.type) % kBadDistance == 0;
}

// A dot by a right side in blocks is followed by a reshape to what it would be without them.
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

bool DotTile::TakesParts() const {
  return rhs_lies_in_blocks_ && t_.columns.total % t_.rhs_block == 0 && result_ != &dot_ &&
         ColumnDims().size() == 1;
}

// Dimensions of the results' columns.
Dims DotTile::ColumnDims() const {
  const Dims& dims = result_->shape().dims();
  return {
      dims.begin() + static_cast<int64_t>(sides_.attrs.lhs_batch.size() + sides_.lhs_free.size()),
      dims.end()};
}

void DotTile::FindPlaces(Side& side) {
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
  sums_ = output_ ? *output_
                  : b_.Local("sums", *SumTypeOf(t_.type), Space::kTeam, t_.rows.size * t_.Width());
  if (!lhs_.direct && !lhs_is_made_)
    lhs_panel_ = b_.Local("lhs_panel", t_.type, Space::kTeam, t_.rows.size * t_.depth.size);
  if (!RhsIsReady())
    rhs_panel_ = b_.Local("rhs_panel", t_.type, Space::kTeam,
                          t_.depth.size * RoundUp(t_.columns.size, BlockColumns()));
  int64_t side = SquareSide();
  bool turns = NeedsTurn(lhs_) || NeedsTurn(rhs_);
  if (turns) square_ = b_.Local("square", t_.type, Space::kRegisters, side * side);
  if ((NeedsTurn(lhs_) && !IsInput(lhs_)) || (NeedsTurn(rhs_) && !IsInput(rhs_)))
    stage_ = b_.Local("stage", t_.type, Space::kTeam, side * side);
}

// A larger square takes more code, and longer to compile, than it saves.
int64_t DotTile::SquareSide() const {
  return std::min<int64_t>(machine_.Lanes(BytesOf(t_.type) * 8), 16);
}

// Element code of an operand whose neighbours lie along the other direction than its panel wants.
bool DotTile::NeedsTurn(const Side& side) const {
  if (side.direct || (lhs_is_made_ && &side == &lhs_)) return false;
  if (&side == &rhs_ && rhs_lies_in_blocks_) return false;
  int64_t lanes = SquareSide();
  int64_t free = (&side == &lhs_ ? t_.rows : t_.columns).size;
  if (free < lanes || t_.depth.size < lanes) return false;
  if (&side == &rhs_) return side.depth_is_inner;
  return GroupOf(t_.type) > 1 && !side.depth_is_inner;
}

// The panel of lhs has rows of neighbours along the depth, except of what lies the other way.
bool DotTile::LhsLiesAcross() const {
  return GroupOf(t_.type) == 1 && !lhs_.depth_is_inner;
}

// ---- operands

// An element, as it is multiplied. `free` and `depth` count within the tile and the panel.
Scalar DotTile::ElementOf(const Side& side, Scalar panel, Scalar free, Scalar depth) {
  const TileCut& cut = &side == &lhs_ ? t_.rows : t_.columns;
  if (cut.IsPadded()) free = LesserOf(free, b_.Index(cut.total - 1));
  Scalar along = (&side == &lhs_ ? row_ : column_) + free;
  Scalar p = panel * b_.Index(t_.depth.size) + depth;
  bool padded = t_.PaddedDepth() != sides_.k;
  Scalar inside = padded ? LesserOf(p, b_.Index(sides_.k - 1)) : p;
  Element value = emitter_.At(*side.instr, side.At(b_, batch_at_, along, inside));
  if (!emitter_.fault().empty()) return b_.Constant(t_.type, 0);
  Scalar scalar = AsMultiplied(b_, side.instr->shape().type(), t_.type, value);
  return padded ? Choose(p < b_.Index(sides_.k), scalar, b_.Constant(t_.type, 0)) : scalar;
}

Scalar DotTile::LhsPlace(Scalar row, Scalar depth) {
  return LhsLiesAcross() ? depth * b_.Index(t_.rows.size) + row
                         : row * b_.Index(t_.depth.size) + depth;
}
Scalar DotTile::RhsPlace(Scalar block, Scalar in_block, Scalar group, int64_t in_group) {
  int64_t of = GroupOf(t_.type);
  return block * b_.Index(t_.depth.size * BlockColumns()) + group * b_.Index(BlockColumns() * of) +
         in_block * b_.Index(of) + b_.Index(in_group);
}

void DotTile::PackLhs(Scalar panel) {
  if (NeedsTurn(lhs_)) return Turn(lhs_, panel);
  bool across = LhsLiesAcross();
  int64_t outer = across ? t_.depth.size : t_.rows.size;
  int64_t inner = across ? t_.rows.size : t_.depth.size;
  int64_t lanes = machine_.Lanes(BytesOf(t_.type) * 8);
  b_.For("i", LoopRole::kSerial, b_.Index(outer), [&](Scalar i) {
    ForVectors(b_, inner, lanes, [&](Scalar l) {
      Scalar row = across ? l : i, depth = across ? i : l;
      b_.Store(lhs_panel_, LhsPlace(row, depth), ElementOf(lhs_, panel, row, depth));
    });
  });
}

void DotTile::PackRhs(Scalar panel) {
  if (NeedsTurn(rhs_)) return Turn(rhs_, panel);
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
          b_.Store(rhs_panel_, RhsPlace(block, column, i, p), values[static_cast<size_t>(p)]);
      });
    });
  });
}

// Squares, read along one direction and stored along the other.
void DotTile::Turn(const Side& side, Scalar panel) {
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
      // Along the source's neighbours: of rhs the depth, of lhs the rows. What takes code to
      // compute is not written out for each row of the square.
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
      StoreTurned(is_lhs, lanes, free_at, depth_at);
    });
  });
}

void DotTile::StoreTurned(bool is_lhs, int64_t lanes, Scalar free_at, Scalar depth_at) {
  int64_t group = is_lhs ? 1 : GroupOf(t_.type);
  for (int64_t k = 0; k < lanes; k += group) {
    b_.For("l", LoopRole::kVector, b_.Index(lanes), [&](Scalar l) {
      std::vector<Scalar> values;
      for (int64_t p = 0; p < group; ++p)
        values.push_back(b_.Read(square_, l * b_.Index(lanes) + b_.Index(k + p)));
      for (int64_t p = 0; p < group; ++p) {
        if (is_lhs) {
          b_.Store(lhs_panel_, LhsPlace(free_at + b_.Index(k), depth_at + l), values[0]);
        } else {
          Scalar at = (depth_at + b_.Index(k)) / b_.Index(group);
          Scalar block = free_at / b_.Index(BlockColumns()),
                 in_block = free_at % b_.Index(BlockColumns()) + l;
          b_.Store(rhs_panel_, RhsPlace(block, in_block, at, p), values[static_cast<size_t>(p)]);
        }
      }
    });
  }
}

// ---- sums

// Where a direct operand begins.
Scalar DotTile::PlaceOf(const Side& side, Scalar along, Scalar panel) {
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

void DotTile::ShareRhs(Scalar column) {
  rhs_is_shared_ = true;
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
  if (!RhsIsReady() && !rhs_is_shared_) PackRhs(panel);
  if (!emitter_.fault().empty()) return;
  bool across = LhsLiesAcross();
  Multiplication product{
      .fresh = fresh, .rows = t_.rows.size, .columns = t_.columns.size, .to_row = SumsPitch()};
  product.depth = b_.Index(t_.depth.size).id();
  if (lhs_.direct) {
    product.lhs = InputArray(*lhs_.instr);
    product.lhs_at = PlaceOf(lhs_, row_, panel).id();
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
    product.lhs_row = across ? 1 : t_.depth.size;
    product.lhs_column = across ? t_.rows.size : 1;
  }
  if (rhs_.direct) {
    product.rhs = InputArray(*rhs_.instr);
    product.rhs_at = PlaceOf(rhs_, column_, panel).id();
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
    ForBlocks(t_.parts, 1, [&](Scalar part, int64_t) {
      Scalar part_at = rhs_at + part * b_.Index(sides_.n / t_.parts / BlockColumns() * next_block);
      Scalar to = output_at_ + first * b_.Index(SumsPitch()) + part * b_.Index(t_.columns.size);
      ForBlocks(t_.columns.size, BlockColumns(), [&](Scalar block, int64_t columns) {
        product.columns = columns;
        product.rhs_at = (part_at + block * b_.Index(next_block)).id();
        b_.Multiply(sums_, to + block * b_.Index(BlockColumns()), product);
      });
    });
  });
}

}  // namespace tokamak
