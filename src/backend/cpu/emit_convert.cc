// Conversions. f16 and bf16 are held as bits: where the processor has no conversion instructions,
// integer arithmetic computes the same, so no library function is called.

#include "backend/cpu/emitter.h"

namespace tokamak::cpu {
namespace {

bool IsNarrowFloat(ScalarType type) {
  return type == ScalarType::kF16 || type == ScalarType::kBF16;
}

}  // namespace

llvm::Value* LlvmEmitter::Convert(ScalarType to, ScalarType from, llvm::Value* x) {
  if (to == from) return x;
  bool wide = x->getType()->isVectorTy();
  if (IsNarrowFloat(from)) {
    x = ToF32(from, x);
    from = ScalarType::kF32;
    if (to == from) return x;
  }
  if (to == ScalarType::kPred)
    return IsFloat(from) ? b_.CreateFCmpUNE(x, Number(x, 0)) : b_.CreateICmpNE(x, Integer(x, 0));
  if (IsFloat(from)) {
    if (!IsFloat(to)) return FloatToInt(to, x);
    if (IsNarrowFloat(to)) return Narrowed(to, x);
    return to == ScalarType::kF64 ? b_.CreateFPExt(x, TypeOf(to, wide))
                                  : b_.CreateFPTrunc(x, TypeOf(to, wide));
  }
  if (!IsFloat(to)) return b_.CreateIntCast(x, TypeOf(to, wide), IsSigned(from));
  return IntToFloat(to, from, x);
}

llvm::Value* LlvmEmitter::Bitcast(ScalarType to, ScalarType from, llvm::Value* x) {
  bool wide = x->getType()->isVectorTy();
  if (to == from) return x;
  if (to == ScalarType::kPred) return b_.CreateICmpNE(x, Integer(x, 0));
  if (from == ScalarType::kPred) return b_.CreateZExt(x, TypeOf(to, wide));
  // An index in a vector may be narrower than its type.
  if (from == ScalarType::kIndex) x = b_.CreateSExt(x, Like(b_.getInt64Ty(), x));
  if (to == ScalarType::kIndex)
    return b_.CreateTrunc(b_.CreateBitCast(x, Like(b_.getInt64Ty(), x)), TypeOf(to, wide));
  return b_.CreateBitCast(x, TypeOf(to, wide));
}

llvm::Value* LlvmEmitter::FloatToInt(ScalarType to, llvm::Value* x) {
  // Types narrower than 32 bits are converted via s32: one instruction. Unspecified results are
  // frozen, as for shifts.
  llvm::Type* type = Like(TypeOf(to, x->getType()->isVectorTy())->getScalarType(), x);
  if (InfoOf(to).bits < 32)
    return b_.CreateTrunc(b_.CreateFreeze(b_.CreateFPToSI(x, Like(b_.getInt32Ty(), x))), type);
  return b_.CreateFreeze(IsSigned(to) ? b_.CreateFPToSI(x, type) : b_.CreateFPToUI(x, type));
}

llvm::Value* LlvmEmitter::IntToFloat(ScalarType to, ScalarType from, llvm::Value* x) {
  bool is_signed = IsSigned(from);
  int bits = from == ScalarType::kIndex ? 64 : InfoOf(from).bits;
  if (from == ScalarType::kPred || bits < 32) {
    x = b_.CreateIntCast(x, Like(b_.getInt32Ty(), x), is_signed);
    is_signed = true;
  }
  auto as = [&](llvm::Type* scalar) {
    llvm::Type* type = Like(scalar, x);
    return is_signed ? b_.CreateSIToFP(x, type) : b_.CreateUIToFP(x, type);
  };
  if (!IsNarrowFloat(to)) return as(TypeOf(to, false));
  // 32-bit integers are exact in f64, so there is one rounding. 64-bit
  // integers may be rounded twice.
  return Narrowed(to, as(bits == 32 ? b_.getDoubleTy() : b_.getFloatTy()));
}

llvm::Value* LlvmEmitter::ToF32(ScalarType from, llvm::Value* x) {
  if (from == ScalarType::kF16) return HalfToFloat(x);
  llvm::Value* bits = b_.CreateZExt(x, Like(b_.getInt32Ty(), x));
  return b_.CreateBitCast(b_.CreateShl(bits, Integer(bits, 16)), Like(b_.getFloatTy(), x));
}

llvm::Value* LlvmEmitter::Narrowed(ScalarType to, llvm::Value* x) {
  if (x->getType()->getScalarType()->isDoubleTy()) x = RoundToOdd(x);
  return to == ScalarType::kF16 ? FloatToHalf(x) : FloatToBfloat(x);
}

// Rounds to odd: truncates, and sets the last bit if anything was lost. Rounding the result again,
// to half the digits or fewer, then equals a single rounding.
llvm::Value* LlvmEmitter::RoundToOdd(llvm::Value* x) {
  llvm::Value* near = b_.CreateFPTrunc(x, Like(b_.getFloatTy(), x));
  llvm::Value* back = b_.CreateFPExt(near, x->getType());
  llvm::Value* bits = b_.CreateBitCast(near, Like(b_.getInt32Ty(), x));
  llvm::Value* beyond = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                         b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  bits = b_.CreateSub(bits, b_.CreateZExt(beyond, bits->getType()));
  bits = b_.CreateOr(bits, b_.CreateZExt(b_.CreateFCmpUNE(back, x), bits->getType()));
  return b_.CreateBitCast(bits, near->getType());
}

llvm::Value* LlvmEmitter::HalfToFloat(llvm::Value* x) {
  llvm::Type* f32 = Like(b_.getFloatTy(), x);
  if (target_.has_f16) return b_.CreateFPExt(b_.CreateBitCast(x, Like(b_.getHalfTy(), x)), f32);
  llvm::Value* bits = b_.CreateZExt(x, Like(b_.getInt32Ty(), x));
  llvm::Value* size = b_.CreateAnd(bits, Integer(bits, 0x7fff));
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(bits, Integer(bits, 0x8000)), Integer(bits, 16));
  // A multiplication corrects the exponent bias; it is exact and normalizes subnormals.
  llvm::Value* raw = b_.CreateBitCast(b_.CreateShl(size, Integer(size, 13)), f32);
  llvm::Value* scaled = b_.CreateBitCast(b_.CreateFMul(raw, Number(raw, 0x1p112)), bits->getType());
  llvm::Value* special = b_.CreateICmpUGE(size, Integer(size, 0x7c00));
  scaled =
      b_.CreateOr(scaled, b_.CreateSelect(special, Integer(bits, 0x7f800000), Integer(bits, 0)));
  return b_.CreateBitCast(b_.CreateOr(scaled, sign), f32);
}

llvm::Value* LlvmEmitter::FloatToHalf(llvm::Value* x) {
  llvm::Type* i16 = Like(b_.getInt16Ty(), x);
  if (target_.has_f16) return b_.CreateBitCast(b_.CreateFPTrunc(x, Like(b_.getHalfTy(), x)), i16);
  llvm::Value* bits = b_.CreateBitCast(x, Like(b_.getInt32Ty(), x));
  auto word = [&](uint64_t value) { return Integer(bits, value); };
  llvm::Value* size = b_.CreateAnd(bits, word(0x7fffffff));
  llvm::Value* sign = b_.CreateAnd(b_.CreateLShr(bits, word(16)), word(0x8000));
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(size, word(13)), word(1));
  llvm::Value* normal = b_.CreateAdd(size, word(static_cast<uint32_t>(0xfff - 0x38000000)));
  normal = b_.CreateLShr(b_.CreateAdd(normal, odd), word(13));
  // The ulp of 0.5 is that of f16's subnormals: adding it rounds to them.
  llvm::Value* small = b_.CreateFAdd(b_.CreateBitCast(size, x->getType()), Number(x, 0.5));
  small = b_.CreateSub(b_.CreateBitCast(small, bits->getType()), word(0x3f000000));
  llvm::Value* half = b_.CreateSelect(b_.CreateICmpULT(size, word(0x38800000)), small, normal);
  half = b_.CreateSelect(b_.CreateICmpUGE(size, word(0x477ff000)), word(0x7c00), half);
  half = b_.CreateSelect(b_.CreateICmpUGT(size, word(0x7f800000)), word(0x7e00), half);
  return b_.CreateTrunc(b_.CreateOr(half, sign), i16);
}

// Always by integers: x86's instruction flushes subnormals to zero.
llvm::Value* LlvmEmitter::FloatToBfloat(llvm::Value* x) {
  llvm::Value* bits = b_.CreateBitCast(x, Like(b_.getInt32Ty(), x));
  auto word = [&](uint64_t value) { return Integer(bits, value); };
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, word(16)), word(1));
  llvm::Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, word(0x7fff)));
  llvm::Value* quiet = b_.CreateOr(bits, word(0x400000));
  llvm::Value* result = b_.CreateSelect(b_.CreateFCmpUNO(x, x), quiet, rounded);
  return b_.CreateTrunc(b_.CreateLShr(result, word(16)), Like(b_.getInt16Ty(), x));
}

}  // namespace tokamak::cpu
