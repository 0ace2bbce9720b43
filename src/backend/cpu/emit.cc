// The function of a kernel, and its statements. Values are in emit_prims.cc, memory accesses in
// emit_memory.cc.

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include "backend/cpu/emit_multiply.h"
#include "backend/cpu/emitter.h"
#include "backend/cpu/scratch.h"
#include "support/ceil_div.h"

namespace tokamak::cpu {
namespace {

// Maximum trip count of an unrolled loop; longer ones become counted loops. Chosen: code size.
constexpr int64_t kMaxUnrolled = 64;
// Maximum values of a body that is duplicated without masks. Chosen: code size.
constexpr int kMaxTwice = 400;
// Masked values from which a branch around them pays off if no lane is active. Chosen; no
// measurement on record.
constexpr int kWorthABranch = 8;
// Bytes of stack that a kernel may use. Chosen; no measurement on record.
constexpr int64_t kMaxStackBytes = 256 << 10;
// Bytes. Larger shared arrays use scratch memory (scratch.h) instead of the stack. Chosen; no
// measurement on record.
constexpr int64_t kMaxSharedOnStack = 16 << 10;

bool MayBeEmpty(const Range& extent) {
  return extent.low < 1;
}

bool Overlaps(const Array& x, const Array& y) {
  bool x_written = x.access != Access::kRead, y_written = y.access != Access::kRead;
  return !((x.distinct && y_written) || (y.distinct && x_written));
}

}  // namespace

LlvmEmitter::LlvmEmitter(const Kernel& kernel, const Lanes& lanes, const Target& target,
                         llvm::Module& module)
    : kernel_(kernel),
      lanes_(lanes),
      target_(target),
      module_(module),
      context_(module.getContext()),
      b_(context_),
      placement_(kernel),
      cold_paths_(kernel) {}

Status LlvmEmitter::FindScratch() {
  int64_t stack_bytes = 0, shared_bytes = 0;
  for (size_t i = kernel_.ArgumentCount(); i < kernel_.arrays.size(); ++i) {
    const Array& array = kernel_.arrays[i];
    int64_t lanes = std::max<int64_t>(lanes_.LanesOf(ArrayId{static_cast<uint32_t>(i)}), 1),
            bytes = 0;
    bool in_shared_memory = array.space == Space::kShared;
    int64_t &sum = in_shared_memory ? shared_bytes : stack_bytes,
            most = in_shared_memory ? kMaxScratchBytes : kMaxStackBytes;
    if (array.size < 0 || array.size > most ||
        __builtin_mul_overflow(array.size, BytesOf(array.type) * lanes, &bytes) ||
        __builtin_add_overflow(sum, RoundUp(bytes, 64), &sum) || sum > most)
      return MakeError(ErrorCode::kKernelForm, "kernel " + kernel_.name +
                                                   ": its local arrays exceed " +
                                                   std::to_string(most) + " bytes");
  }
  if (shared_bytes > kMaxSharedOnStack) scratch_bytes_ = shared_bytes;
  return Ok();
}

Status LlvmEmitter::Emit(const std::string& name) {
  TOK_RETURN_IF_ERROR(FindScratch());
  BeginFunction(name);
  FindAliases();
  MakeRegisters();
  bool tiles = HasTiles(kernel_.body);
  if (tiles) EmitTilesBegin(b_);
  EmitBlock(kernel_.body);
  if (tiles) EmitTilesEnd(b_);
  // Non-temporal stores are not ordered with the stores that signal completion to other threads.
  if (streams_ && target_.triple.starts_with("x86_64"))
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  b_.CreateRetVoid();
  return Ok();
}

bool LlvmEmitter::IsForTiles(const Stmt& multiply) {
  Range depth = ranges_.Of(kernel_, multiply.matmul.depth);
  int64_t multiple = depth.low == depth.high ? depth.low : depth.stride;
  return FitsTiles(target_, kernel_.array(multiply.matmul.lhs).type, multiply.matmul, multiple);
}

bool LlvmEmitter::HasTiles(const StmtList& block) {
  return std::ranges::any_of(block, [&](const Stmt& stmt) {
    return (stmt.kind == StmtKind::kMatMul && IsForTiles(stmt)) || HasTiles(stmt.condition_stmts) ||
           HasTiles(stmt.body) || HasTiles(stmt.else_body);
  });
}

void LlvmEmitter::EmitMultiply(const Stmt& stmt) {
  const MatrixMultiply& product = stmt.matmul;
  ProductOperands operands{.product = product,
                           .type = kernel_.array(product.lhs).type,
                           .to = Pointer(stmt.array, Uniform(stmt.index)),
                           .lhs = Pointer(product.lhs, Uniform(product.lhs_index)),
                           .rhs = Pointer(product.rhs, Uniform(product.rhs_index)),
                           .depth = Uniform(product.depth)};
  if (IsForTiles(stmt)) {
    EmitTileProduct(b_, operands);
  } else {
    EmitVectorProduct(b_, target_, operands);
  }
}

void LlvmEmitter::BeginFunction(const std::string& name) {
  llvm::Type *pointer = b_.getPtrTy(), *word = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, word, word}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
  function_->setDoesNotThrow();
  function_->addFnAttr("prefer-vector-width", "512");
  for (unsigned i : {0u, 1u}) {
    function_->addParamAttr(i, llvm::Attribute::NoAlias);
    function_->addParamAttr(i, llvm::Attribute::NoCapture);
    function_->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  b_.SetInsertPoint(NewBlock("entry"));
  values_.assign(kernel_.nodes.size(), nullptr);
  loops_.assign(kernel_.loops.size(), nullptr);
  llvm::MDNode* none = llvm::MDNode::get(context_, {});
  for (size_t i = 0; i < kernel_.extents.size(); ++i) {
    llvm::Value* at = b_.CreateConstInBoundsGEP1_64(word, function_->getArg(1), i);
    auto* load = b_.CreateAlignedLoad(word, at, llvm::Align(8), kernel_.extents[i].name);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, none);
    extents_.push_back(load);
  }
  memory_.resize(kernel_.arrays.size());
  for (size_t i = 0; i < kernel_.ArgumentCount(); ++i) {
    llvm::Value* at = b_.CreateConstInBoundsGEP1_64(pointer, function_->getArg(0), i);
    auto* load = b_.CreateAlignedLoad(pointer, at, llvm::Align(8), kernel_.arrays[i].name);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, none);
    memory_[i].pointer = load;
  }
}

// Aliasing guarantees of a launch about its arguments, as alias scopes: an access to one argument
// lists the scopes that it cannot alias.
void LlvmEmitter::FindAliases() {
  size_t count = kernel_.ArgumentCount();
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::MDNode*> scopes;
  for (size_t i = 0; i < count; ++i) scopes.push_back(metadata.createAnonymousAliasScope(domain));
  for (size_t i = 0; i < count; ++i) {
    llvm::SmallVector<llvm::Metadata*> noalias;
    bool written = kernel_.arrays[i].access != Access::kRead;
    for (size_t j = 0; j < count; ++j) {
      if (i == j) continue;
      if (!Overlaps(kernel_.arrays[i], kernel_.arrays[j])) {
        noalias.push_back(scopes[j]);
      } else if (kernel_.arrays[j].access != Access::kRead) {
        written = true;
      }
    }
    memory_[i].scope = llvm::MDNode::get(context_, {scopes[i]});
    if (!noalias.empty()) memory_[i].noalias = llvm::MDNode::get(context_, noalias);
    memory_[i].constant = !written;
  }
}

void LlvmEmitter::MakeRegisters() {
  llvm::Value* scratch = nullptr;
  int64_t used = 0;
  if (scratch_bytes_ > 0) {
    auto* type = llvm::FunctionType::get(b_.getPtrTy(), {b_.getInt64Ty()}, false);
    llvm::FunctionCallee take = module_.getOrInsertFunction(kScratchSymbol, type);
    auto* call = b_.CreateCall(take, {b_.getInt64(static_cast<uint64_t>(scratch_bytes_))});
    call->addRetAttr(llvm::Attribute::NoAlias);
    call->addRetAttr(llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
    scratch = call;
  }
  for (size_t i = kernel_.ArgumentCount(); i < kernel_.arrays.size(); ++i) {
    ArrayId id{static_cast<uint32_t>(i)};
    const Array& array = kernel_.array(id);
    llvm::Type* element = MemoryType(array.type);
    if (scratch != nullptr && array.space == Space::kShared) {
      memory_[i].pointer =
          b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), scratch, static_cast<uint64_t>(used));
      used += RoundUp(array.size * BytesOf(array.type), 64);
      continue;
    }
    if (IsSlots(id))
      element = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_.LanesOf(id)));
    auto* type = llvm::ArrayType::get(element, static_cast<uint64_t>(array.size));
    auto* slot = b_.CreateAlloca(type, nullptr, array.name);
    slot->setAlignment(llvm::Align(64));
    memory_[i].pointer = slot;
  }
}

llvm::BasicBlock* LlvmEmitter::NewBlock(const char* name) {
  return llvm::BasicBlock::Create(context_, name, function_);
}

void LlvmEmitter::EmitBlock(const StmtList& block) {
  for (size_t i = 0; i < block.size(); ++i) {
    DefineAll(placement_.Before(block, i));
    if (i + 1 < block.size() && IsPair(block[i], block[i + 1])) {
      DefineAll(placement_.Before(block, i + 1));
      EmitPair(block[i], block[i + 1]);
      ++i;
    } else {
      EmitStmt(block[i]);
    }
  }
}

void LlvmEmitter::EmitStmt(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kFor:
      return EmitFor(stmt);
    case StmtKind::kIf:
      return EmitIf(stmt);
    case StmtKind::kWhile:
      return EmitWhile(stmt);
    case StmtKind::kStore:
      return EmitStore(stmt);
    case StmtKind::kRead: {
      const ScalarNode& node = kernel_.node(stmt.value);
      values_[static_cast<size_t>(stmt.value)] = Load(node.array(), node.operands[0]);
      return;
    }
    case StmtKind::kShuffle:
      values_[static_cast<size_t>(stmt.value)] = EmitShuffle(stmt.value);
      return;
    case StmtKind::kBarrier:
      return;
    case StmtKind::kMatMul:
      return EmitMultiply(stmt);
    case StmtKind::kAsync:  // Lanes::Collect rejects it
      return;
  }
}

void LlvmEmitter::EmitFor(const Stmt& stmt) {
  const Loop& loop = kernel_.loop(stmt.loop);
  Range extent = ranges_.Of(kernel_, loop.extent);
  if (&loop == GridOf(kernel_))
    return EmitCounted(stmt, function_->getArg(2), function_->getArg(3), true);
  if (loop.role == LoopRole::kUnrolled && extent.low <= kMaxUnrolled)
    return EmitUnrolled(stmt, extent.low);
  if (loop.role == LoopRole::kVector) {
    unsigned width = width_;
    width_ = extent.low > 1 ? static_cast<unsigned>(extent.low) : width_;
    loops_[static_cast<size_t>(stmt.loop)] = b_.getInt64(0);
    EmitBlock(stmt.body);
    width_ = width;
    return;
  }
  if (lanes_.IsUniform(loop.extent))
    return EmitCounted(stmt, b_.getInt64(0), Uniform(loop.extent), MayBeEmpty(extent));
  // Runs the maximum trip count of all lanes; lanes that are done are masked.
  llvm::Value *trips = Wide(loop.extent), *mask = mask_;
  if (mask != nullptr)
    trips = b_.CreateSelect(mask, trips, llvm::Constant::getNullValue(trips->getType()));
  llvm::Value* most = b_.CreateSExtOrTrunc(b_.CreateIntMaxReduce(trips, true), b_.getInt64Ty());
  EmitCounted(stmt, b_.getInt64(0), most, true);
}

void LlvmEmitter::EmitUnrolled(const Stmt& stmt, int64_t trips) {
  for (int64_t i = 0; i < trips; ++i) {
    loops_[static_cast<size_t>(stmt.loop)] = b_.getInt64(static_cast<uint64_t>(i));
    EmitBlock(stmt.body);
  }
}

void LlvmEmitter::EmitCounted(const Stmt& stmt, llvm::Value* begin, llvm::Value* end,
                              bool may_be_empty) {
  const Loop& loop = kernel_.loop(stmt.loop);
  llvm::BasicBlock *before = b_.GetInsertBlock(), *body = NewBlock("loop"),
                   *after = NewBlock("end");
  if (may_be_empty) {
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), body, after);
  } else {
    b_.CreateBr(body);
  }
  b_.SetInsertPoint(body);
  llvm::PHINode* variable = b_.CreatePHI(b_.getInt64Ty(), 2, loop.name);
  variable->addIncoming(begin, before);
  loops_[static_cast<size_t>(stmt.loop)] = variable;
  llvm::Value* mask = mask_;
  if (!lanes_.IsUniform(loop.extent)) {
    llvm::Value* trips = Wide(loop.extent);
    llvm::Value* now = b_.CreateVectorSplat(
        width_, b_.CreateSExtOrTrunc(variable, trips->getType()->getScalarType()));
    mask_ = Both(mask_, b_.CreateICmpSLT(now, trips));
  }
  EmitBlock(stmt.body);
  mask_ = mask;
  llvm::Value* next = b_.CreateAdd(variable, b_.getInt64(1), "", true, true);
  variable->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, after);
  b_.SetInsertPoint(after);
}

llvm::Value* LlvmEmitter::Any(llvm::Value* mask) {
  return b_.CreateOrReduce(mask);
}

llvm::Value* LlvmEmitter::Both(llvm::Value* mask, llvm::Value* more) {
  return mask == nullptr ? more : b_.CreateAnd(mask, more);
}

void LlvmEmitter::EmitBranch(llvm::Value* condition, const StmtList& body,
                             const StmtList& otherwise) {
  llvm::BasicBlock *then = NewBlock("then"), *after = NewBlock("fi");
  llvm::BasicBlock* other = otherwise.empty() ? after : NewBlock("else");
  b_.CreateCondBr(condition, then, other);
  b_.SetInsertPoint(then);
  EmitBlock(body);
  b_.CreateBr(after);
  if (!otherwise.empty()) {
    b_.SetInsertPoint(other);
    EmitBlock(otherwise);
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

void LlvmEmitter::EmitIf(const Stmt& stmt) {
  if (lanes_.IsUniform(stmt.condition))
    return EmitBranch(Uniform(stmt.condition), stmt.body, stmt.else_body);
  if (stmt.uniform)
    return EmitBranch(Any(Both(mask_, Wide(stmt.condition))), stmt.body, stmt.else_body);
  int budget = kMaxTwice;
  if (mask_ == nullptr && stmt.else_body.empty() && IsSmall(stmt.body, budget)) {
    // The bounds check of a tail: all iterations but the last run without masks.
    if (llvm::Value* all = HoldsInAllLanes(stmt.condition)) {
      llvm::BasicBlock *full = NewBlock("full"), *part = NewBlock("part"), *after = NewBlock("fi");
      b_.CreateCondBr(all, full, part);
      b_.SetInsertPoint(full);
      EmitBlock(stmt.body);
      b_.CreateBr(after);
      b_.SetInsertPoint(part);
      EmitMasked(stmt.body, Wide(stmt.condition));
      b_.CreateBr(after);
      b_.SetInsertPoint(after);
      return;
    }
  }
  llvm::Value *condition = Wide(stmt.condition), *mask = mask_;
  EmitMasked(stmt.body, Both(mask, condition));
  if (!stmt.else_body.empty()) EmitMasked(stmt.else_body, Both(mask, b_.CreateNot(condition)));
}

void LlvmEmitter::EmitMasked(const StmtList& block, llvm::Value* mask) {
  llvm::Value* around = mask_;
  llvm::BasicBlock* after = nullptr;
  if (NeedsGuard(block)) {
    llvm::BasicBlock* some = NewBlock("some");
    after = NewBlock("none");
    b_.CreateCondBr(Any(mask), some, after);
    b_.SetInsertPoint(some);
  }
  mask_ = mask;
  EmitBlock(block);
  mask_ = around;
  if (after == nullptr) return;
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

// Whether a block needs a branch around it. Scalars ignore the mask: those that could fault, have
// side effects or not terminate must not run if no lane is active.
bool LlvmEmitter::NeedsGuard(const StmtList& block) const {
  int values = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    for (ValueId id : placement_.Before(block, i)) {
      const ScalarNode& node = kernel_.node(id);
      bool may_fault =
          node.prim == Prim::kLoad || node.prim == Prim::kDiv || node.prim == Prim::kRem;
      if (may_fault && lanes_.IsUniform(id)) return true;
      ++values;
    }
    const Stmt& stmt = block[i];
    switch (stmt.kind) {
      case StmtKind::kStore:
        if (lanes_.IsUniform(stmt.index)) return true;
        break;
      case StmtKind::kRead:
        if (lanes_.IsUniform(stmt.value)) return true;
        break;
      case StmtKind::kIf:
        if (NeedsGuard(stmt.body) || NeedsGuard(stmt.else_body)) return true;
        break;
      case StmtKind::kFor:
      case StmtKind::kWhile:
      case StmtKind::kMatMul:
        return true;
      case StmtKind::kShuffle:
      case StmtKind::kBarrier:
      case StmtKind::kAsync:
        break;
    }
  }
  return values > kWorthABranch;
}

bool LlvmEmitter::IsSmall(const StmtList& block, int& budget) const {
  for (size_t i = 0; i < block.size(); ++i) {
    const Stmt& stmt = block[i];
    budget -= static_cast<int>(placement_.Before(block, i).size()) + 1;
    if (budget < 0) return false;
    if (!IsSmall(stmt.condition_stmts, budget) || !IsSmall(stmt.body, budget) ||
        !IsSmall(stmt.else_body, budget))
      return false;
  }
  return true;
}

llvm::Value* LlvmEmitter::HoldsInAllLanes(ValueId condition) {
  const ScalarNode& node = kernel_.node(condition);
  if (node.prim == Prim::kAnd) {
    llvm::Value* x = HoldsInAllLanes(node.operands[0]);
    llvm::Value* y = x == nullptr ? nullptr : HoldsInAllLanes(node.operands[1]);
    return y == nullptr ? nullptr : b_.CreateAnd(x, y);
  }
  if (lanes_.IsUniform(condition)) return Uniform(condition);
  if (node.prim != Prim::kLt && node.prim != Prim::kLe) return nullptr;
  if (kernel_.node(node.operands[0]).type != ScalarType::kIndex) return nullptr;
  llvm::Value* ends[2];  // maximum of the left side, minimum of the right side
  for (size_t i : {0, 1}) {
    const LaneFact& fact = lanes_.of(node.operands[i]);
    if (fact.kind == LaneKind::kVarying) return nullptr;
    int64_t last = fact.step * (static_cast<int64_t>(width_) - 1);
    int64_t add = i == 0 ? std::max<int64_t>(last, 0) : std::min<int64_t>(last, 0);
    ends[i] = b_.CreateAdd(Uniform(node.operands[i]), b_.getInt64(static_cast<uint64_t>(add)));
  }
  return node.prim == Prim::kLt ? b_.CreateICmpSLT(ends[0], ends[1])
                                : b_.CreateICmpSLE(ends[0], ends[1]);
}

void LlvmEmitter::EmitWhile(const Stmt& stmt) {
  bool varies = !lanes_.IsUniform(stmt.condition) && !stmt.uniform;
  llvm::BasicBlock *before = b_.GetInsertBlock(), *head = NewBlock("while");
  llvm::BasicBlock *body = NewBlock("do"), *after = NewBlock("done");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::Value* mask = mask_;
  llvm::PHINode* live = nullptr;
  if (varies) {  // lanes leave individually; the loop ends with the last
    live = b_.CreatePHI(AllLanes()->getType(), 2, "live");
    live->addIncoming(mask == nullptr ? AllLanes() : mask, before);
    mask_ = live;
  }
  EmitBlock(stmt.condition_stmts);
  DefineAll(placement_.Before(stmt.condition_stmts, stmt.condition_stmts.size()));
  llvm::Value* goes_on = nullptr;
  if (varies) {
    mask_ = b_.CreateAnd(live, Wide(stmt.condition));
    goes_on = Any(mask_);
  } else if (lanes_.IsUniform(stmt.condition)) {
    goes_on = Uniform(stmt.condition);
  } else {
    goes_on = Any(Both(mask_, Wide(stmt.condition)));
  }
  b_.CreateCondBr(goes_on, body, after);
  b_.SetInsertPoint(body);
  EmitBlock(stmt.body);
  if (varies) live->addIncoming(mask_, b_.GetInsertBlock());
  b_.CreateBr(head);
  mask_ = mask;
  b_.SetInsertPoint(after);
}

}  // namespace tokamak::cpu
