// Values: each primitive in LLVM IR.

#include <optional>

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/MDBuilder.h>

#include "backend/cpu/emitter.h"
#include "kernel/choice.h"
#include "support/check.h"

namespace tokamak::cpu {

using llvm::Intrinsic::ID;

// ---- types and constants

llvm::Type* LlvmEmitter::TypeOf(ScalarType type, bool wide) const {
  llvm::Type* scalar = nullptr;
  switch (type) {
    case ScalarType::kF32:
      scalar = llvm::Type::getFloatTy(context_);
      break;
    case ScalarType::kF64:
      scalar = llvm::Type::getDoubleTy(context_);
      break;
    case ScalarType::kIndex:
      scalar = llvm::Type::getIntNTy(context_, wide && lanes_.narrow_index() ? 32 : 64);
      break;
    default:
      scalar = llvm::Type::getIntNTy(context_, static_cast<unsigned>(InfoOf(type).bits));
  }
  return wide ? llvm::FixedVectorType::get(scalar, width_) : scalar;
}

llvm::Type* LlvmEmitter::Like(llvm::Type* scalar, llvm::Value* shape) const {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape->getType());
  if (vector == nullptr) return scalar;
  return llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

llvm::Constant* LlvmEmitter::Number(llvm::Value* like, double value) const {
  return llvm::ConstantFP::get(like->getType(), value);
}

llvm::Constant* LlvmEmitter::Integer(llvm::Value* like, uint64_t value) const {
  return llvm::ConstantInt::get(like->getType(), value);
}

llvm::Constant* LlvmEmitter::Steps(int64_t step) const {
  llvm::SmallVector<llvm::Constant*, 64> lanes;
  llvm::Type* type = TypeOf(ScalarType::kIndex, true)->getScalarType();
  for (int64_t i = 0; i < static_cast<int64_t>(width_); ++i)
    lanes.push_back(llvm::ConstantInt::get(type, static_cast<uint64_t>(i * step), true));
  return llvm::ConstantVector::get(lanes);
}

llvm::Constant* LlvmEmitter::AllLanes() const {
  return llvm::Constant::getAllOnesValue(TypeOf(ScalarType::kPred, true));
}

// ---- values by number

llvm::Value* LlvmEmitter::Uniform(ValueId id) {
  const ScalarNode& node = kernel_.node(id);
  switch (node.prim) {
    case Prim::kConst: {
      llvm::Type* type = TypeOf(node.type, false);
      if (node.type == ScalarType::kF32 || node.type == ScalarType::kF64)
        return llvm::ConstantFP::get(
            type,
            llvm::APFloat(type->getFltSemantics(),
                          llvm::APInt(static_cast<unsigned>(InfoOf(node.type).bits), node.bits)));
      return llvm::ConstantInt::get(type, node.bits);
    }
    case Prim::kExtent:
      return extents_[static_cast<size_t>(node.extent())];
    case Prim::kLoop:
      return loops_[static_cast<size_t>(node.loop())];
    default:
      TOK_CHECK(values_[static_cast<size_t>(id)] != nullptr,
                "a value is used before it is emitted");
      return values_[static_cast<size_t>(id)];
  }
}

llvm::Value* LlvmEmitter::Wide(ValueId id) {
  const LaneFact& fact = lanes_.of(id);
  llvm::Value* value = Uniform(id);
  if (fact.kind == LaneKind::kVarying) return value;
  if (kernel_.node(id).type == ScalarType::kIndex)
    value = b_.CreateTrunc(value, TypeOf(ScalarType::kIndex, true)->getScalarType());
  value = b_.CreateVectorSplat(width_, value);
  return fact.kind == LaneKind::kAffine ? b_.CreateAdd(value, Steps(fact.step)) : value;
}

// ---- primitives

void LlvmEmitter::Define(ValueId id) {
  values_[static_cast<size_t>(id)] = Make(id);
}

void LlvmEmitter::DefineAll(std::span<const ValueId> ids) {
  cold_paths_.Walk(
      ids,
      [&](const ColdPaths::ColdPath& path) {
        return width_ > 1 && !lanes_.IsUniform(path.condition);
      },
      [&](ValueId id) { Define(id); },
      [&](const ColdPaths::ColdPath& path) { DefineColdPath(path); });
}

// Branches around values that no lane needs.
void LlvmEmitter::DefineColdPath(const ColdPaths::ColdPath& path) {
  llvm::SmallVector<llvm::Value*, 4> others;
  llvm::Value* which = Wide(path.condition);
  for (ValueId id : path.selects) others.push_back(Wide(kernel_.node(id).operands[2]));
  llvm::BasicBlock *before = b_.GetInsertBlock(), *some = NewBlock("cold"),
                   *after = NewBlock("all");
  b_.CreateCondBr(Any(Both(mask_, which)), some, after,
                  llvm::MDBuilder(context_).createBranchWeights(1, 1000));
  b_.SetInsertPoint(some);
  DefineAll(path.values);
  llvm::SmallVector<llvm::Value*, 4> chosen;
  for (size_t i = 0; i < path.selects.size(); ++i)
    chosen.push_back(
        b_.CreateSelect(which, Wide(kernel_.node(path.selects[i]).operands[1]), others[i]));
  some = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  for (size_t i = 0; i < path.selects.size(); ++i) {
    llvm::PHINode* value = b_.CreatePHI(others[i]->getType(), 2);
    value->addIncoming(others[i], before);
    value->addIncoming(chosen[i], some);
    values_[static_cast<size_t>(path.selects[i])] = value;
  }
}

// A comparison that LLVM does not optimize (kernel/choice.h).
llvm::Value* LlvmEmitter::Compared(ValueId compare, bool is_negated, bool wide) {
  const ScalarNode& node = kernel_.node(compare);
  llvm::Value* holds = b_.CreateConstrainedFPCmp(
      llvm::Intrinsic::experimental_constrained_fcmp,
      node.prim == Prim::kLt ? llvm::CmpInst::FCMP_OLT : llvm::CmpInst::FCMP_OLE,
      Operand(node.operands[0], wide), Operand(node.operands[1], wide), "", llvm::fp::ebIgnore);
  return is_negated ? b_.CreateNot(holds) : holds;
}

llvm::Value* LlvmEmitter::Make(ValueId id) {
  const ScalarNode& node = kernel_.node(id);
  const LaneFact& fact = lanes_.of(id);
  bool wide = fact.kind == LaneKind::kVarying;
  if (node.prim == Prim::kLoad) return Load(node.array(), node.operands[0]);
  bool is_sum = node.prim == Prim::kAdd || node.prim == Prim::kSub || node.prim == Prim::kMul;
  if (node.type == ScalarType::kIndex && is_sum) {
    Range range = ranges_.Of(kernel_, id);
    bool no_wrap = range.low > INT64_MIN && range.high < INT64_MAX;
    llvm::Value *x = Operand(node.operands[0], wide), *y = Operand(node.operands[1], wide);
    if (node.prim == Prim::kMul) return b_.CreateMul(x, y, "", false, no_wrap);
    return node.prim == Prim::kAdd ? b_.CreateAdd(x, y, "", false, no_wrap)
                                   : b_.CreateSub(x, y, "", false, no_wrap);
  }
  if (node.prim == Prim::kSelect) {
    if (std::optional<Extreme> of; target_.has_extremes && (of = ExtremeOf(kernel_, id)))
      return b_.CreateBinaryIntrinsic(
          of->is_least ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, Operand(of->x, wide),
          Operand(of->y, wide));
    llvm::Value* which = Operand(node.operands[0], !lanes_.IsUniform(node.operands[0]));
    std::optional<Choice> choice = RepeatedChoice(kernel_, id);
    if (!choice) choice = RoundedChoiceByZero(kernel_, id);
    if (choice) which = Compared(choice->compare, choice->is_negated, wide);
    return b_.CreateSelect(which, Operand(node.operands[1], wide), Operand(node.operands[2], wide));
  }
  llvm::SmallVector<llvm::Value*, 3> v;
  for (ValueId operand : kernel_.operands(id)) v.push_back(Operand(operand, wide));
  ScalarType from = kernel_.node(node.operands[0]).type;
  if (node.prim == Prim::kConvert) return Convert(node.type, from, v[0]);
  if (node.prim == Prim::kBitcast) return Bitcast(node.type, from, v[0]);
  return Arithmetic(node, from, v);
}

llvm::Value* LlvmEmitter::Arithmetic(const ScalarNode& node, ScalarType from,
                                     llvm::ArrayRef<llvm::Value*> v) {
  if (!IsFloat(from)) return OnIntegers(node.prim, from, v);
  if (from == ScalarType::kF32 || from == ScalarType::kF64) return OnFloats(node.prim, v);
  // f16 and bf16 compute in f32 with one rounding. Primitives that only move bits work on the bits.
  llvm::Value *x = v[0], *sign = Integer(x, 0x8000), *rest = Integer(x, 0x7fff);
  switch (node.prim) {
    case Prim::kAbs:
      return b_.CreateAnd(x, rest);
    case Prim::kNeg:
      return b_.CreateXor(x, sign);
    case Prim::kCopySign:
      return b_.CreateOr(b_.CreateAnd(x, rest), b_.CreateAnd(v[1], sign));
    default:
      break;
  }
  llvm::SmallVector<llvm::Value*, 3> f32;
  for (llvm::Value* operand : v) f32.push_back(ToF32(from, operand));
  if (node.prim == Prim::kMin) return b_.CreateSelect(b_.CreateFCmpOLT(f32[0], f32[1]), v[0], v[1]);
  if (node.prim == Prim::kMax) return b_.CreateSelect(b_.CreateFCmpOGT(f32[0], f32[1]), v[0], v[1]);
  llvm::Value* result = OnFloats(node.prim, f32);
  return node.type == ScalarType::kPred ? result : Narrowed(node.type, result);
}

// Whether the min or max of this constant and another number is one instruction: not for 0, which
// has two signs; NaN propagates either way.
bool LlvmEmitter::IsBound(const llvm::Value* value) const {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (constant != nullptr && constant->getType()->isVectorTy())
    constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return target_.has_extremes && number != nullptr && !number->isZero() && !number->isNaN();
}

// long: a table, one line per primitive.
llvm::Value* LlvmEmitter::OnFloats(Prim prim, llvm::ArrayRef<llvm::Value*> v) {
  auto unary = [&](ID id) { return b_.CreateUnaryIntrinsic(id, v[0]); };
  switch (prim) {
    case Prim::kAdd:
      return b_.CreateFAdd(v[0], v[1]);
    case Prim::kSub:
      return b_.CreateFSub(v[0], v[1]);
    case Prim::kMul:
      return b_.CreateFMul(v[0], v[1]);
    case Prim::kDiv:
      return b_.CreateFDiv(v[0], v[1]);
    case Prim::kMin:  // exactly this select is one instruction on x86
      if (IsBound(v[0])) return b_.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, v[0], v[1]);
      return b_.CreateSelect(b_.CreateFCmpOLT(v[0], v[1]), v[0], v[1]);
    case Prim::kMax:
      if (IsBound(v[0])) return b_.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, v[0], v[1]);
      return b_.CreateSelect(b_.CreateFCmpOGT(v[0], v[1]), v[0], v[1]);
    case Prim::kMinimum:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, v[0], v[1]);
    case Prim::kMaximum:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, v[0], v[1]);
    case Prim::kFma:
      return b_.CreateIntrinsic(llvm::Intrinsic::fma, {v[0]->getType()}, {v[0], v[1], v[2]});
    case Prim::kInverse:
      return b_.CreateFDiv(llvm::ConstantFP::get(v[0]->getType(), 1), v[0]);
    case Prim::kSqrt:
      return unary(llvm::Intrinsic::sqrt);
    case Prim::kAbs:
      return unary(llvm::Intrinsic::fabs);
    case Prim::kNeg:
      return b_.CreateFNeg(v[0]);
    case Prim::kCopySign:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, v[0], v[1]);
    case Prim::kFloor:
      return unary(llvm::Intrinsic::floor);
    case Prim::kCeil:
      return unary(llvm::Intrinsic::ceil);
    case Prim::kTrunc:
      return unary(llvm::Intrinsic::trunc);
    case Prim::kRoundEven:
      return unary(llvm::Intrinsic::roundeven);
    case Prim::kLt:
      return b_.CreateFCmpOLT(v[0], v[1]);
    case Prim::kLe:
      return b_.CreateFCmpOLE(v[0], v[1]);
    case Prim::kEq:
      return b_.CreateFCmpOEQ(v[0], v[1]);
    case Prim::kNe:
      return b_.CreateFCmpUNE(v[0], v[1]);
    default:
      TOK_UNREACHABLE("a primitive that floats do not have");
  }
}

// long: a table, one line per primitive.
llvm::Value* LlvmEmitter::OnIntegers(Prim prim, ScalarType from, llvm::ArrayRef<llvm::Value*> v) {
  bool is_signed = IsSigned(from);
  llvm::Value *x = v[0], *y = v.size() > 1 ? v[1] : nullptr;
  auto less = [&](llvm::Value* a, llvm::Value* b) {
    return is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
  };
  switch (prim) {
    case Prim::kAdd:
      return b_.CreateAdd(x, y);
    case Prim::kSub:
      return b_.CreateSub(x, y);
    case Prim::kMul:
      return b_.CreateMul(x, y);
    case Prim::kDiv:
    case Prim::kRem:
      return Division(prim, is_signed, x, y);
    case Prim::kMin:
      return b_.CreateSelect(less(x, y), x, y);
    case Prim::kMax:
      return b_.CreateSelect(less(y, x), x, y);
    case Prim::kAnd:
      return b_.CreateAnd(x, y);
    case Prim::kOr:
      return b_.CreateOr(x, y);
    case Prim::kXor:
      return b_.CreateXor(x, y);
    // Unspecified beyond the width. Frozen, so that poison does not reach values that do not depend
    // on it.
    case Prim::kShl:
      return b_.CreateFreeze(b_.CreateShl(x, y));
    case Prim::kShr:
      return b_.CreateFreeze(is_signed ? b_.CreateAShr(x, y) : b_.CreateLShr(x, y));
    case Prim::kMulHigh:
      return MulHigh(is_signed, x, y);
    case Prim::kPopCount:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, x);
    case Prim::kLeadingZeros:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, b_.getFalse());
    case Prim::kLt:
      return less(x, y);
    case Prim::kLe:
      return is_signed ? b_.CreateICmpSLE(x, y) : b_.CreateICmpULE(x, y);
    case Prim::kEq:
      return b_.CreateICmpEQ(x, y);
    case Prim::kNe:
      return b_.CreateICmpNE(x, y);
    default:
      TOK_UNREACHABLE("a primitive that integers do not have");
  }
}

llvm::Value* LlvmEmitter::Division(Prim prim, bool is_signed, llvm::Value* x, llvm::Value* y) {
  if (llvm::Value* one = llvm::getSplatValue(y);
      one != nullptr && !llvm::isa<llvm::Constant>(y) && y->getType()->getScalarSizeInBits() <= 32)
    return DivisionByOne(prim, is_signed, x, y, one);
  // An inactive lane may hold a zero.
  if (mask_ != nullptr && y->getType()->isVectorTy() && !llvm::isa<llvm::Constant>(y))
    y = b_.CreateSelect(mask_, y, Integer(y, 1));
  if (y->getType()->isVectorTy() && !llvm::isa<llvm::Constant>(y) &&
      y->getType()->getScalarSizeInBits() <= 32)
    return DivisionOfReals(prim, is_signed, x, y);
  if (prim == Prim::kDiv) return is_signed ? b_.CreateSDiv(x, y) : b_.CreateUDiv(x, y);
  return is_signed ? b_.CreateSRem(x, y) : b_.CreateURem(x, y);
}

// Processors have vector division of floats only. The quotient truncated towards zero is exact:
// distinct quotients of b-bit integers differ by at least 2^-b of their size, and the floats have
// more digits.
llvm::Value* LlvmEmitter::DivisionOfReals(Prim prim, bool is_signed, llvm::Value* x,
                                          llvm::Value* y) {
  llvm::Value* quotient = b_.CreateFDiv(AsReal(is_signed, x), AsReal(is_signed, y));
  return Divided(prim, is_signed, x, y, quotient);
}

// Converts to a float type that represents it exactly, and products with it.
llvm::Value* LlvmEmitter::AsReal(bool is_signed, llvm::Value* x) {
  bool is_short = x->getType()->getScalarSizeInBits() <= 16;
  llvm::Type* real = Like(is_short ? b_.getFloatTy() : b_.getDoubleTy(), x);
  return is_signed ? b_.CreateSIToFP(x, real) : b_.CreateUIToFP(x, real);
}

// x / y or x % y from their floating-point quotient.
llvm::Value* LlvmEmitter::Divided(Prim prim, bool is_signed, llvm::Value* x, llvm::Value* y,
                                  llvm::Value* quotient) {
  quotient =
      is_signed ? b_.CreateFPToSI(quotient, x->getType()) : b_.CreateFPToUI(quotient, x->getType());
  return prim == Prim::kDiv ? quotient : b_.CreateSub(x, b_.CreateMul(quotient, y));
}

// All lanes have the same divisor, whose reciprocal is computed once. The reciprocal is made
// slightly too large: by more than the rounding errors of it and of the product, and by less than
// would take the largest non-integer quotient to the next integer.
llvm::Value* LlvmEmitter::DivisionByOne(Prim prim, bool is_signed, llvm::Value* x, llvm::Value* y,
                                        llvm::Value* one) {
  bool is_short = one->getType()->getScalarSizeInBits() <= 16;
  // If no lane is active, the divisor may be zero.
  if (mask_ != nullptr)
    one = b_.CreateSelect(b_.CreateIsNull(one), llvm::ConstantInt::get(one->getType(), 1), one);
  llvm::Value* divisor = AsReal(is_signed, one);
  llvm::Value* inverse = b_.CreateFDiv(
      llvm::ConstantFP::get(divisor->getType(), is_short ? 1 + 0x1p-20 : 1 + 0x1p-40), divisor);
  auto lanes = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
  llvm::Value* quotient = b_.CreateFMul(AsReal(is_signed, x), b_.CreateVectorSplat(lanes, inverse));
  return Divided(prim, is_signed, x, y, quotient);
}

llvm::Value* LlvmEmitter::MulHigh(bool is_signed, llvm::Value* x, llvm::Value* y) {
  llvm::Type* type = x->getType();
  unsigned bits = type->getScalarSizeInBits();
  llvm::Type* twice = Like(b_.getIntNTy(2 * bits), x);
  auto widened = [&](llvm::Value* v) {
    return is_signed ? b_.CreateSExt(v, twice) : b_.CreateZExt(v, twice);
  };
  llvm::Value* product = b_.CreateMul(widened(x), widened(y));
  return b_.CreateTrunc(b_.CreateLShr(product, Integer(product, bits)), type);
}

llvm::Value* LlvmEmitter::EmitShuffle(ValueId id) {
  const ScalarNode& node = kernel_.node(id);
  if (width_ == 0 || lanes_.IsUniform(node.operands[0])) return Uniform(node.operands[0]);
  auto flip = static_cast<unsigned>(kernel_.node(node.operands[1]).bits);
  llvm::SmallVector<int, 64> order;
  for (unsigned i = 0; i < width_; ++i)
    order.push_back(static_cast<int>((i ^ flip) < width_ ? i ^ flip : i));
  return b_.CreateShuffleVector(Wide(node.operands[0]), order);
}

}  // namespace tokamak::cpu
