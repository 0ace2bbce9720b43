// Matrix products, block by block. The accumulators of a block live in registers over the whole
// contracted dimension (K). With vectors, an accumulator is a vector of results of one row; with
// AMX tiles, it is 16 x 16 results.

#include "backend/cpu/emit_multiply.h"

#include <algorithm>
#include <array>

#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace tokamak::cpu {
namespace {

// Rows of rhs at least kLargeStrideBytes apart are prefetched kPrefetchRows ahead, one cache line
// of kLineBytes at a time (chosen). An AMX tile has 16 rows of 64 bytes: 16 x 16 sums, or 32 bf16
// of K.
constexpr int64_t kLargeStrideBytes = 1024, kPrefetchRows = 12, kLineBytes = 64;
constexpr int64_t kTileRows = 16, kTileColumns = 16, kTileDepth = 32;

// Runs `body` with 0, 1 ... count - 1; count is at least 1.
template <typename Body>
void Counted(llvm::IRBuilder<>& b, llvm::Value* count, Body&& body) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b.getContext(), "product", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "end", function);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), before);
  body(i);
  llvm::Value* next = b.CreateAdd(i, b.getInt64(1), "", true, true);
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, count), loop, after);
  b.SetInsertPoint(after);
}

// Counted for a constant count, which may be 0.
template <typename Body>
void Times(llvm::IRBuilder<>& b, int64_t count, Body&& body) {
  if (count == 1) return body(b.getInt64(0));
  if (count > 1) Counted(b, b.getInt64(static_cast<uint64_t>(count)), body);
}

// Consecutive column blocks of one size.
struct ColumnRun {
  int64_t begin = 0, size = 0, count = 0;
};

class VectorProduct {
 public:
  VectorProduct(llvm::IRBuilder<>& b, const Target& target, const ProductOperands& operands)
      : b_(b), target_(target), o_(operands), p_(operands.product), group_(VnniGroupSize(o_.type)) {
    bool integer = IsInteger(o_.type);
    sum_ = integer                       ? static_cast<llvm::Type*>(b.getInt32Ty())
           : o_.type == ScalarType::kF64 ? b.getDoubleTy()
                                         : b.getFloatTy();
    lanes_ = target.vector_bytes / (o_.type == ScalarType::kF64 ? 8 : 4);
  }

  void Emit() {
    // A quarter of the registers is reserved for operands.
    int64_t sums = target_.vector_registers - target_.vector_registers / 4;
    // On x86 an element of lhs is broadcast by its load. On NEON it is a lane of a register: few
    // rows and many columns are better, with more accumulators than the latency of the adders needs
    // (measured on Neoverse V1: 77 GFLOP/s with 5 x 4, 72 with 4 x 4, 35 with 12 x 2).
    int64_t most = target_.IsNeon() ? 5 : sums / 2;
    int64_t groups = (p_.rows + most - 1) / most;
    int64_t rows = (p_.rows + groups - 1) / groups;
    // On NEON, all operands of a step are in registers.
    if (target_.IsNeon()) sums = std::min(sums, (target_.vector_registers - 1) / (rows + 1) * rows);
    int64_t vectors = std::clamp<int64_t>(sums / rows, 1, 8);
    int64_t width = lanes_ * vectors;
    int64_t full = p_.columns / width * width;
    int64_t whole = p_.columns / lanes_ * lanes_;
    Columns({0, width, p_.columns / width}, rows, lanes_);
    if (whole > full) Columns({full, whole - full, 1}, rows, lanes_);
    if (p_.columns > whole) Columns({whole, p_.columns - whole, 1}, rows, p_.columns - whole);
  }

 private:
  llvm::Value* At(llvm::Value* array, llvm::Value* index) {
    llvm::Type* element = group_ > 1 ? b_.getInt16Ty() : sum_;
    return b_.CreateInBoundsGEP(element, array, index);
  }
  llvm::Value* Scaled(llvm::Value* index, int64_t by) {
    return b_.CreateMul(index, b_.getInt64(static_cast<uint64_t>(by)), "", true, true);
  }
  llvm::Value* Plus(llvm::Value* index, int64_t more) {
    return b_.CreateAdd(index, b_.getInt64(static_cast<uint64_t>(more)), "", true, true);
  }

  // Blocks of `rows` rows; if they do not divide the matrix evenly, the last ones have one row
  // less.
  void Columns(const ColumnRun& columns, int64_t rows, int64_t lanes) {
    if (columns.count == 0) return;
    int64_t groups = (p_.rows + rows - 1) / rows, less = groups * rows - p_.rows;
    int64_t begin_less = (groups - less) * rows;
    Times(b_, columns.count, [&](llvm::Value* c) {
      llvm::Value* column = Plus(Scaled(c, columns.size), columns.begin);
      Times(b_, groups - less, [&](llvm::Value* r) {
        Block(Scaled(r, rows), column, {rows, columns.size / lanes, lanes});
      });
      Times(b_, less, [&](llvm::Value* r) {
        Block(Plus(Scaled(r, rows - 1), begin_less), column,
              {rows - 1, columns.size / lanes, lanes});
      });
    });
  }

  // The shape of the accumulators of a block.
  struct Sums {
    int64_t rows = 0, vectors = 0, lanes = 0;  // of a vector
  };

  // Multiplies one block of the result, with all of its accumulators in registers over the whole
  // depth.
  void Block(llvm::Value* row, llvm::Value* column, const Sums& of) {
    auto [rows, vectors, lanes] = of;
    auto* type = llvm::FixedVectorType::get(sum_, static_cast<unsigned>(lanes));
    llvm::Align align(sum_->isDoubleTy() ? 8 : 4);
    llvm::Value* to =
        b_.CreateInBoundsGEP(sum_, o_.to, b_.CreateAdd(Scaled(row, p_.result_row_stride), column));
    auto address_of = [&, lanes = lanes](int64_t r, int64_t v) {
      return b_.CreateConstInBoundsGEP1_64(
          sum_, to, static_cast<uint64_t>(r * p_.result_row_stride + v * lanes));
    };
    // A panel's sums are accumulated separately and then added to those of earlier panels: one more
    // addition, but the rounding error grows with the number and the depth of panels, not with all
    // of K.
    std::vector<llvm::Value*> sums(static_cast<size_t>(rows * vectors),
                                   llvm::Constant::getNullValue(type));
    llvm::Value* lhs = At(o_.lhs, Scaled(row, p_.lhs_row_stride));
    llvm::Value* rhs = At(o_.rhs, Scaled(column, group_));
    int64_t at_once = StepsAtOnce();
    llvm::Value* walked = b_.CreateUDiv(o_.depth, b_.getInt64(static_cast<uint64_t>(at_once)));
    Walk(walked, sums, [&](llvm::Value* q, std::vector<llvm::Value*>& next) {
      if (at_once == group_) return Step(q, lhs, rhs, of, next);
      Steps(Scaled(q, at_once), lhs, rhs, of, next);
    });
    if (int64_t rest = KnownDepth() % at_once; at_once != group_ && rest > 0)
      for (int64_t q = KnownDepth() - rest; q < KnownDepth(); ++q)
        Step(b_.getInt64(static_cast<uint64_t>(q)), lhs, rhs, of, sums);
    for (int64_t r = 0, i = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v, ++i) {
        llvm::Value* sum = sums[static_cast<size_t>(i)];
        if (!p_.overwrite) sum = Add(b_.CreateAlignedLoad(type, address_of(r, v), align), sum);
        b_.CreateAlignedStore(sum, address_of(r, v), align);
      }
  }

  // Emits a loop that updates the accumulators by `step`, for 0 ... count - 1; count is at least 1.
  template <typename OneStep>
  void Walk(llvm::Value* count, std::vector<llvm::Value*>& sums, OneStep&& step) {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    std::vector<llvm::PHINode*> running;
    Counted(b_, count, [&](llvm::Value* q) {
      for (llvm::Value* sum : sums) {
        running.push_back(b_.CreatePHI(sum->getType(), 2));
        running.back()->addIncoming(sum, before);
      }
      std::vector<llvm::Value*> next(running.begin(), running.end());
      step(q, next);
      for (size_t i = 0; i < next.size(); ++i) {
        running[i]->addIncoming(next[i], b_.GetInsertBlock());
        sums[i] = next[i];
      }
    });
  }

  // 0 if unknown.
  int64_t KnownDepth() const {
    auto* depth = llvm::dyn_cast<llvm::ConstantInt>(o_.depth);
    return depth == nullptr ? 0 : depth->getSExtValue();
  }

  // NEON multiplies by one lane of a register: contiguous elements along K are loaded as a vector.
  int64_t StepsAtOnce() const {
    bool lanes =
        target_.IsNeon() && group_ == 1 && p_.lhs_column_stride == 1 && KnownDepth() >= lanes_;
    return lanes ? lanes_ : group_;
  }

  // Accumulates a vector of K indices into all sums.
  void Steps(llvm::Value* p, llvm::Value* lhs, llvm::Value* rhs, const Sums& of,
             std::vector<llvm::Value*>& sums) {
    auto [rows, vectors, lanes] = of;
    auto* left_type = llvm::FixedVectorType::get(sum_, static_cast<unsigned>(lanes_));
    auto* type = llvm::FixedVectorType::get(sum_, static_cast<unsigned>(lanes));
    llvm::Align element(static_cast<uint64_t>(BytesOf(o_.type)));
    llvm::Value *left = At(lhs, p), *right = At(rhs, Scaled(p, p_.rhs_row_stride));
    std::vector<llvm::Value*> of_row;
    for (int64_t r = 0; r < rows; ++r)
      of_row.push_back(b_.CreateAlignedLoad(
          left_type, At(left, b_.getInt64(static_cast<uint64_t>(r * p_.lhs_row_stride))), element));
    for (int64_t l = 0; l < lanes_; ++l)
      for (int64_t v = 0; v < vectors; ++v) {
        llvm::Value* column = b_.CreateAlignedLoad(
            type, At(right, b_.getInt64(static_cast<uint64_t>(l * p_.rhs_row_stride + v * lanes))),
            element);
        for (int64_t r = 0; r < rows; ++r) {
          llvm::SmallVector<int> which(static_cast<size_t>(lanes), static_cast<int>(l));
          llvm::Value* all = b_.CreateShuffleVector(of_row[static_cast<size_t>(r)], which);
          llvm::Value*& sum = sums[static_cast<size_t>(r * vectors + v)];
          sum = MultiplyAdd(all, column, sum);
        }
      }
  }

  // Accumulates one K index, or one group of them, into all sums.
  void Step(llvm::Value* q, llvm::Value* lhs, llvm::Value* rhs, const Sums& of,
            std::vector<llvm::Value*>& sums) {
    auto [rows, vectors, lanes] = of;
    bool grouped = group_ > 1;
    llvm::Type* loaded = grouped ? b_.getInt32Ty() : sum_;
    auto* type = llvm::FixedVectorType::get(loaded, static_cast<unsigned>(lanes));
    llvm::Align element(static_cast<uint64_t>(BytesOf(o_.type)));
    llvm::Value* right = At(rhs, Scaled(q, p_.rhs_row_stride));
    llvm::Value* left = At(lhs, Scaled(q, grouped ? group_ : p_.lhs_column_stride));
    std::vector<llvm::Value*> columns;
    for (int64_t v = 0; v < vectors; ++v)
      columns.push_back(b_.CreateAlignedLoad(
          type, At(right, b_.getInt64(static_cast<uint64_t>(v * lanes * group_))), element));
    // The hardware does not prefetch rows with a large stride; processors with NEON do (measured on
    // Neoverse V1: 114 GFLOP/s on two cores, 78 with software prefetch).
    if (p_.rhs_row_stride * BytesOf(o_.type) >= kLargeStrideBytes && !target_.IsNeon()) {
      int64_t line = kLineBytes / BytesOf(o_.type);
      for (int64_t at = 0; at < vectors * lanes * group_; at += line)
        Prefetch(right, at + kPrefetchRows * p_.rhs_row_stride);
    }
    for (int64_t r = 0; r < rows; ++r) {
      llvm::Value* one = b_.CreateAlignedLoad(
          loaded, At(left, b_.getInt64(static_cast<uint64_t>(r * p_.lhs_row_stride))), element);
      llvm::Value* all = b_.CreateVectorSplat(static_cast<unsigned>(lanes), one);
      for (int64_t v = 0; v < vectors; ++v) {
        llvm::Value*& sum = sums[static_cast<size_t>(r * vectors + v)];
        llvm::Value* column = columns[static_cast<size_t>(v)];
        sum = !grouped              ? MultiplyAdd(all, column, sum)
              : sum_->isIntegerTy() ? DotIntegers(sum, all, column)
                                    : DotPairs(sum, all, column);
      }
    }
  }

  // May be out of bounds.
  void Prefetch(llvm::Value* array, int64_t index) {
    llvm::Value* at = b_.CreateConstGEP1_64(b_.getInt8Ty(), array,
                                            static_cast<uint64_t>(index * BytesOf(o_.type)));
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()},
                       {at, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
  }

  llvm::Value* MultiplyAdd(llvm::Value* x, llvm::Value* y, llvm::Value* sum) {
    if (sum_->isIntegerTy()) return b_.CreateAdd(sum, b_.CreateMul(x, y));
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {x, y, sum});
  }

  llvm::Value* Add(llvm::Value* x, llvm::Value* y) {
    return sum_->isIntegerTy() ? b_.CreateAdd(x, y) : b_.CreateFAdd(x, y);
  }

  // Two s16 in each lane.
  llvm::Value* DotIntegers(llvm::Value* sum, llvm::Value* x, llvm::Value* y) {
    auto lanes = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
    if (target_.dots_s16 && lanes == lanes_)
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpwssd_512, {}, {sum, x, y});
    auto lower = [&](llvm::Value* v) { return b_.CreateAShr(b_.CreateShl(v, 16), 16); };
    auto upper = [&](llvm::Value* v) { return b_.CreateAShr(v, 16); };
    return MultiplyAdd(upper(x), upper(y), MultiplyAdd(lower(x), lower(y), sum));
  }

  // Two bf16 in each lane.
  llvm::Value* DotPairs(llvm::Value* sum, llvm::Value* x, llvm::Value* y) {
    auto lanes = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
    auto* pairs = llvm::FixedVectorType::get(b_.getBFloatTy(), 2 * lanes);
    if (target_.dots_bf16 && lanes == lanes_) {
      llvm::Value *left = b_.CreateBitCast(x, pairs), *right = b_.CreateBitCast(y, pairs);
      if (target_.vector_bytes == 64)
        return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                                  {sum, left, right});
      if (target_.vector_bytes == 16)
        return b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_bfdot, {sum->getType(), pairs},
                                  {sum, left, right});
    }
    auto upper = [&](llvm::Value* v) {
      return b_.CreateBitCast(b_.CreateAnd(v, 0xFFFF0000u), sum->getType());
    };
    auto lower = [&](llvm::Value* v) {
      return b_.CreateBitCast(b_.CreateShl(v, 16), sum->getType());
    };
    return MultiplyAdd(upper(x), upper(y), MultiplyAdd(lower(x), lower(y), sum));
  }

  llvm::IRBuilder<>& b_;
  const Target& target_;
  const ProductOperands& o_;
  const MatrixMultiply& p_;
  int64_t group_, lanes_ = 1;
  llvm::Type* sum_ = nullptr;
};

// Tile registers: 0 to 3 are sums, 4 and 5 rows of lhs, 6 and 7 columns of rhs.
class TileProduct {
 public:
  TileProduct(llvm::IRBuilder<>& b, const ProductOperands& operands)
      : b_(b), o_(operands), p_(operands.product) {}

  void Emit() {
    int64_t pairs = p_.columns / (2 * kTileColumns);
    Columns(0, 2, pairs);
    if (p_.columns % (2 * kTileColumns) != 0) Columns(pairs * 2 * kTileColumns, 1, 1);
  }

 private:
  void Columns(int64_t begin, int64_t across, int64_t count) {
    int64_t pairs = p_.rows / (2 * kTileRows);
    Times(b_, count, [&](llvm::Value* c) {
      llvm::Value* column = b_.CreateAdd(Scaled(c, across * kTileColumns), Number(begin));
      Times(b_, pairs, [&](llvm::Value* r) { Block(Scaled(r, 2 * kTileRows), 2, column, across); });
      if (p_.rows % (2 * kTileRows) != 0) Block(Number(pairs * 2 * kTileRows), 1, column, across);
    });
  }

  llvm::Value* Number(int64_t number) { return b_.getInt64(static_cast<uint64_t>(number)); }
  llvm::Value* Scaled(llvm::Value* index, int64_t by) {
    return b_.CreateMul(index, Number(by), "", true, true);
  }
  llvm::Value* Tile(int64_t number) { return b_.getInt8(static_cast<uint8_t>(number)); }
  void Load(int64_t tile, llvm::Value* at, int64_t row_bytes) {
    b_.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {}, {Tile(tile), at, Number(row_bytes)});
  }

  // Tile registers: 0 to 3 accumulate up to 2 x 2 tiles, 4 and 5 hold rows of lhs, 6 and 7 columns
  // of rhs.
  void Block(llvm::Value* row, int64_t down, llvm::Value* column, int64_t across) {
    llvm::Type *f32 = b_.getFloatTy(), *bf16 = b_.getInt16Ty();
    llvm::Value* to =
        b_.CreateInBoundsGEP(f32, o_.to, b_.CreateAdd(Scaled(row, p_.result_row_stride), column));
    auto address_of = [&](int64_t r, int64_t c) {
      return b_.CreateInBoundsGEP(f32, to,
                                  Number(r * kTileRows * p_.result_row_stride + c * kTileColumns));
    };
    ForTiles(down, across, [&](int64_t r, int64_t c) {
      if (p_.overwrite) {
        b_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {Tile(2 * r + c)});
      } else {
        Load(2 * r + c, address_of(r, c), p_.result_row_stride * 4);
      }
    });
    llvm::Value* lhs = b_.CreateInBoundsGEP(bf16, o_.lhs, Scaled(row, p_.lhs_row_stride));
    llvm::Value* rhs = b_.CreateInBoundsGEP(bf16, o_.rhs, Scaled(column, 2));
    Counted(b_, b_.CreateLShr(o_.depth, 5), [&](llvm::Value* q) {
      llvm::Value* left = b_.CreateInBoundsGEP(bf16, lhs, Scaled(q, kTileDepth));
      llvm::Value* right =
          b_.CreateInBoundsGEP(bf16, rhs, Scaled(q, kTileDepth / 2 * p_.rhs_row_stride));
      for (int64_t c = 0; c < across; ++c)
        Load(6 + c, b_.CreateInBoundsGEP(bf16, right, Number(2 * kTileColumns * c)),
             p_.rhs_row_stride * 2);
      for (int64_t r = 0; r < down; ++r)
        Load(4 + r, b_.CreateInBoundsGEP(bf16, left, Number(kTileRows * r * p_.lhs_row_stride)),
             p_.lhs_row_stride * 2);
      ForTiles(down, across, [&](int64_t r, int64_t c) {
        b_.CreateIntrinsic(llvm::Intrinsic::x86_tdpbf16ps, {},
                           {Tile(2 * r + c), Tile(4 + r), Tile(6 + c)});
      });
    });
    ForTiles(down, across, [&](int64_t r, int64_t c) {
      b_.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {},
                         {Tile(2 * r + c), address_of(r, c), Number(p_.result_row_stride * 4)});
    });
  }

  template <typename Body>
  static void ForTiles(int64_t down, int64_t across, Body&& body) {
    for (int64_t r = 0; r < down; ++r)
      for (int64_t c = 0; c < across; ++c) body(r, c);
  }

  llvm::IRBuilder<>& b_;
  const ProductOperands& o_;
  const MatrixMultiply& p_;
};

}  // namespace

bool FitsTiles(const Target& target, ScalarType type, const MatrixMultiply& product,
               int64_t depth_multiple) {
  return target.has_tiles && type == ScalarType::kBF16 && product.rows % kTileRows == 0 &&
         product.columns % kTileColumns == 0 && depth_multiple % kTileDepth == 0;
}

void EmitTilesBegin(llvm::IRBuilder<>& b) {
  // All eight have the same shape: 16 rows of 64 bytes.
  std::array<uint8_t, 64> setting{};
  setting[0] = 1;
  for (size_t tile = 0; tile < 8; ++tile) {
    setting[16 + 2 * tile] = 64;
    setting[48 + tile] = kTileRows;
  }
  auto* bytes = llvm::ConstantDataVector::get(b.getContext(), llvm::ArrayRef<uint8_t>(setting));
  auto* slot = b.CreateAlloca(bytes->getType(), nullptr, "tiles");
  slot->setAlignment(llvm::Align(64));
  b.CreateAlignedStore(bytes, slot, llvm::Align(64));
  b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {slot});
}

void EmitTilesEnd(llvm::IRBuilder<>& b) {
  b.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

void EmitTileProduct(llvm::IRBuilder<>& b, const ProductOperands& operands) {
  TileProduct(b, operands).Emit();
}

void EmitVectorProduct(llvm::IRBuilder<>& b, const Target& target,
                       const ProductOperands& operands) {
  VectorProduct(b, target, operands).Emit();
}

}  // namespace tokamak::cpu
