// Loads and stores. The access pattern of the lanes decides the instructions:
//   all lanes at one index    a scalar
//   contiguous                one vector access (reversed: shuffled; stride n: n, shuffled)
//   contiguous up to a clamp  one masked vector access; other lanes take the clamped element
//   otherwise                 a gather or a scatter
//   a column of a square      rows of registers, interleaved until they are columns (a transpose)
// Per-lane registers are an array of vectors.

#include "backend/cpu/emitter.h"
#include "kernel/linear.h"

namespace tokamak::cpu {
namespace {

// Maximum stride in elements for which lanes are read as vectors and shuffled. Chosen: a gather
// costs as much as its lanes individually.
constexpr int64_t kMaxStep = 4;
// Bytes of a cache line; our allocations are aligned to it.
constexpr int64_t kLine = 64;
// Bytes. Less aligned non-temporal stores would be split into words.
constexpr uint64_t kStreamAlignment = 16;
constexpr LaneFact kNothingKnown{.kind = LaneKind::kVarying, .base_multiple = 1};

}  // namespace

llvm::Type* LlvmEmitter::MemoryType(ScalarType type) const {
  return type == ScalarType::kPred ? llvm::Type::getInt8Ty(context_) : TypeOf(type, false);
}

llvm::Value* LlvmEmitter::FromMemory(ScalarType type, llvm::Value* value) {
  if (type == ScalarType::kPred) return b_.CreateICmpNE(value, Integer(value, 0));
  if (type == ScalarType::kIndex)
    return b_.CreateTrunc(value, TypeOf(type, value->getType()->isVectorTy()));
  return value;
}

llvm::Value* LlvmEmitter::ToMemory(ScalarType type, llvm::Value* value) {
  llvm::Type* as = Like(MemoryType(type), value);
  if (type == ScalarType::kPred) return b_.CreateZExt(value, as);
  if (type == ScalarType::kIndex) return b_.CreateSExt(value, as);
  return value;
}

void LlvmEmitter::Mark(llvm::Instruction* access, ArrayId array, bool is_load) {
  const Memory& memory = memory_[static_cast<size_t>(array)];
  if (memory.scope != nullptr) access->setMetadata(llvm::LLVMContext::MD_alias_scope, memory.scope);
  if (memory.noalias != nullptr) access->setMetadata(llvm::LLVMContext::MD_noalias, memory.noalias);
  if (is_load && memory.constant)
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
}

llvm::Align LlvmEmitter::ElementAlignment(ArrayId array) const {
  return llvm::Align(static_cast<uint64_t>(BytesOf(kernel_.array(array).type)));
}

llvm::Align LlvmEmitter::AlignmentOf(ArrayId array, const LaneFact& index) const {
  const Array& of = kernel_.array(array);
  return AlignmentOf(array, index, of.space == Space::kArgument ? of.alignment : kLine);
}

llvm::Align LlvmEmitter::AlignmentOf(ArrayId array, const LaneFact& index, int64_t memory) const {
  auto of_index = static_cast<uint64_t>(index.base_multiple) *
                  static_cast<uint64_t>(BytesOf(kernel_.array(array).type));
  uint64_t both = static_cast<uint64_t>(memory) | of_index;  // the lowest set bit of either
  return std::max(ElementAlignment(array),
                  llvm::Align(std::min<uint64_t>(both & (~both + 1), kLine)));
}

llvm::Value* LlvmEmitter::Pointer(ArrayId array, llvm::Value* index) {
  return b_.CreateInBoundsGEP(MemoryType(kernel_.array(array).type),
                              memory_[static_cast<size_t>(array)].pointer, index);
}

llvm::Value* LlvmEmitter::SlotPointer(ArrayId array, ValueId index) {
  auto* slot = llvm::FixedVectorType::get(MemoryType(kernel_.array(array).type),
                                          static_cast<unsigned>(lanes_.LanesOf(array)));
  return b_.CreateInBoundsGEP(slot, memory_[static_cast<size_t>(array)].pointer, Uniform(index));
}

llvm::Value* LlvmEmitter::LanePointers(ArrayId array, ValueId index) {
  llvm::Type* element = MemoryType(kernel_.array(array).type);
  llvm::Value* base = memory_[static_cast<size_t>(array)].pointer;
  if (IsSlots(array)) {  // element i of lane l is at i * lanes + l; vectors are padded
    llvm::Value* element_offset = Wide(index);
    element_offset =
        b_.CreateMul(element_offset, Integer(element_offset, llvm::PowerOf2Ceil(width_)));
    return b_.CreateGEP(element, base, b_.CreateAdd(element_offset, Steps(1)));
  }
  const LaneFact& fact = lanes_.of(index);
  if (fact.kind == LaneKind::kAffine)
    return b_.CreateGEP(element, Pointer(array, Uniform(index)), Steps(fact.step));
  return b_.CreateGEP(element, base, Wide(index));
}

llvm::Value* LlvmEmitter::Reversed(llvm::Value* vector) {
  llvm::SmallVector<int, 64> order;
  for (unsigned i = width_; i-- > 0;) order.push_back(static_cast<int>(i));
  return b_.CreateShuffleVector(vector, order);
}

llvm::Value* LlvmEmitter::LoadVector(ArrayId array, llvm::Value* pointer, llvm::Align align,
                                     llvm::Value* mask) {
  auto* type = llvm::FixedVectorType::get(MemoryType(kernel_.array(array).type), width_);
  llvm::Instruction* load = nullptr;
  if (mask == nullptr) {
    load = b_.CreateAlignedLoad(type, pointer, align);
  } else {
    load = b_.CreateMaskedLoad(type, pointer, align, mask, llvm::Constant::getNullValue(type));
  }
  Mark(load, array, true);
  return load;
}

// Works around a crash of LLVM 19 on aarch64. Where a shuffle uses one lane of a loaded register,
// LLVM loads that lane alone, perhaps with a post-incremented address. It then combines the load
// with the lane insertion (performPostLD1Combine) and loses the offset and the address. A frozen
// vector is loaded whole. Lanes of stride 2 are used in pairs and are not affected.
llvm::Value* LlvmEmitter::Whole(llvm::Value* loaded, int64_t step) {
  bool takes_one = step > 2 || width_ == 2;
  return takes_one && !target_.IsX86() ? b_.CreateFreeze(loaded) : loaded;
}

// A load at base + step * lane as vector loads and shuffles. Null for steps that a gather serves
// better.
llvm::Value* LlvmEmitter::LoadAffine(ArrayId array, ValueId index) {
  const LaneFact& fact = lanes_.of(index);
  llvm::Align element = ElementAlignment(array);
  auto last = static_cast<int64_t>(width_) - 1;
  auto at = [&](int64_t offset) {
    return Pointer(array, b_.CreateAdd(Uniform(index), b_.getInt64(static_cast<uint64_t>(offset)),
                                       "", false, true));
  };
  if (fact.step == 1) return LoadVector(array, at(0), AlignmentOf(array, fact), mask_);
  if (fact.step == -1) {
    llvm::Value* mask = mask_ == nullptr ? nullptr : Reversed(mask_);
    return Reversed(LoadVector(array, at(-last), element, mask));
  }
  if (fact.step < 2 || fact.step > kMaxStep || mask_ != nullptr) return nullptr;
  // Loads the whole range, vector by vector. The last vector ends with the last lane's element, so
  // nothing beyond it is read.
  int64_t tail = (fact.step - 1) * last;
  llvm::Value* picked = Whole(LoadVector(array, at(0), element, nullptr), fact.step);
  for (int64_t k = 1; k < fact.step; ++k) {
    bool is_tail = k + 1 == fact.step;
    int64_t begin = is_tail ? tail : k * (last + 1);
    llvm::Value* more = Whole(LoadVector(array, at(begin), element, nullptr), fact.step);
    llvm::SmallVector<int, 64> pick;
    for (int64_t i = 0; i <= last; ++i) {
      int64_t element_offset = fact.step * i;
      bool there = element_offset >= k * (last + 1);
      // The first vector's elements are selected with the second vector; later shuffles keep them.
      int64_t from = there ? element_offset - begin + last + 1 : k == 1 ? element_offset : i;
      pick.push_back(static_cast<int>(std::min(from, 2 * last + 1)));
    }
    picked = b_.CreateShuffleVector(picked, more, pick);
  }
  return picked;
}

// Loads a vector that may cross the end of a concatenation operand, of a slice or of a padded
// array: one masked access; lanes beyond the end have the element at the end. Null if the index
// does not have this form.
llvm::Value* LlvmEmitter::LoadClamped(ArrayId array, ValueId index) {
  const Array& of = kernel_.array(array);
  if (BytesOf(of.type) < kMinMaskedBytes) return nullptr;
  std::optional<ClampedIndex> clamped =
      ClampedOf(kernel_, index, [&](ValueId id) { return !lanes_.IsUniform(id); });
  if (!clamped) return nullptr;
  const LaneFact& inner = lanes_.of(clamped->inner);
  if (inner.kind != LaneKind::kAffine || inner.step != 1) return nullptr;
  // If an end is out of bounds, no lane may read there, but the active lanes are unknown under a
  // mask.
  auto is_there = [&](std::optional<int64_t> end) {
    return !end || (clamped->base.terms.empty() && clamped->base.constant + *end >= 0 &&
                    clamped->base.constant + *end < of.size);
  };
  bool there = is_there(clamped->low) && is_there(clamped->high);
  if (!there && mask_ != nullptr) return nullptr;
  auto last = static_cast<int64_t>(width_) - 1;
  llvm::Value *base = SumOf(clamped->base), *first = Uniform(clamped->inner), *from = first;
  llvm::Value *inside = nullptr, *others = nullptr, *steps = Steps(1);
  for (bool is_low : {true, false}) {
    const std::optional<int64_t>& end = is_low ? clamped->low : clamped->high;
    if (!end) continue;
    llvm::Value* at = b_.getInt64(static_cast<uint64_t>(*end));
    // The number of lanes before or after the clamp, perhaps none. If none, no address beyond the
    // end is accessed: processors are slow on unmapped addresses, even masked ones.
    llvm::Value *limit = b_.CreateSub(at, first), *none = nullptr;
    if (is_low) {
      limit = Either(llvm::Intrinsic::smax, Either(llvm::Intrinsic::smin, limit, last + 1), 0);
      none = b_.CreateICmpSGT(limit, b_.getInt64(width_ - 1));
    } else {
      limit = Either(llvm::Intrinsic::smin, Either(llvm::Intrinsic::smax, limit, -1), last);
      none = b_.CreateICmpSLT(limit, b_.getInt64(0));
    }
    from = b_.CreateSelect(none, b_.getInt64(static_cast<uint64_t>(is_low ? *end : *end - last)),
                           from);
    limit = b_.CreateVectorSplat(width_, b_.CreateTrunc(limit, steps->getType()->getScalarType()));
    llvm::Value* holds = is_low ? b_.CreateICmpSGE(steps, limit) : b_.CreateICmpSLE(steps, limit);
    if (!there)
      at = Clamped(*clamped, is_low ? first : b_.CreateAdd(first, b_.getInt64(width_ - 1)));
    auto* here = b_.CreateAlignedLoad(MemoryType(of.type), Pointer(array, b_.CreateAdd(base, at)),
                                      ElementAlignment(array));
    Mark(here, array, true);
    llvm::Value* splat = b_.CreateVectorSplat(width_, here);
    others = others == nullptr ? splat : b_.CreateSelect(holds, others, splat);
    inside = Both(inside, holds);
  }
  llvm::Value* pointer = b_.CreateGEP(
      MemoryType(of.type), memory_[static_cast<size_t>(array)].pointer, b_.CreateAdd(base, from));
  auto* type = llvm::FixedVectorType::get(MemoryType(of.type), width_);
  auto* load =
      b_.CreateMaskedLoad(type, pointer, ElementAlignment(array), Both(mask_, inside), others);
  Mark(load, array, true);
  return load;
}

llvm::Value* LlvmEmitter::SumOf(const LinearIndex& index) {
  llvm::Value* sum = b_.getInt64(static_cast<uint64_t>(index.constant));
  for (const auto& [value, factor] : index.terms)
    sum =
        b_.CreateAdd(sum, b_.CreateMul(Uniform(value), b_.getInt64(static_cast<uint64_t>(factor))));
  return sum;
}

llvm::Value* LlvmEmitter::Clamped(const ClampedIndex& index, llvm::Value* at) {
  if (index.low) at = Either(llvm::Intrinsic::smax, at, *index.low);
  return index.high ? Either(llvm::Intrinsic::smin, at, *index.high) : at;
}

llvm::Value* LlvmEmitter::Either(llvm::Intrinsic::ID which, llvm::Value* x, int64_t y) {
  return b_.CreateBinaryIntrinsic(which, x, b_.getInt64(static_cast<uint64_t>(y)));
}

// Row `row` of a square after `iterations` steps of interleaving each row of the upper half with
// the corresponding row of the lower half. After log2(width) steps the rows are the columns.
// Columns share most of the work, which EarlyCSE finds.
llvm::Value* LlvmEmitter::Zipped(ArrayId array, uint64_t square, unsigned iterations,
                                 unsigned row) {
  if (iterations == 0)
    return LoadVector(array, Pointer(array, b_.getInt64(square + row * width_)),
                      ElementAlignment(array), nullptr);
  llvm::Value* upper = Zipped(array, square, iterations - 1, row / 2);
  llvm::Value* lower = Zipped(array, square, iterations - 1, row / 2 + width_ / 2);
  llvm::SmallVector<int, 64> zip;
  for (unsigned i = row % 2 * width_ / 2; zip.size() < width_; ++i) {
    zip.push_back(static_cast<int>(i));
    zip.push_back(static_cast<int>(i + width_));
  }
  return b_.CreateShuffleVector(upper, lower, zip);
}

// Null if the index is not a column of a square whose side is the number of lanes.
llvm::Value* LlvmEmitter::LoadColumn(ArrayId array, ValueId index) {
  const Array& of = kernel_.array(array);
  auto* base = llvm::dyn_cast<llvm::ConstantInt>(Uniform(index));
  uint64_t side = width_, area = side * side;
  if (base == nullptr || of.space != Space::kRegisters || !llvm::isPowerOf2_32(width_) ||
      lanes_.of(index).step != static_cast<int64_t>(side))
    return nullptr;
  uint64_t square = base->getZExtValue() / area * area, column = base->getZExtValue() - square;
  if (column >= side || square + area > static_cast<uint64_t>(of.size)) return nullptr;
  return Zipped(array, square, llvm::Log2_32(width_), static_cast<unsigned>(column));
}

llvm::Value* LlvmEmitter::Load(ArrayId array, ValueId index) {
  ScalarType type = kernel_.array(array).type;
  const LaneFact& fact = lanes_.of(index);
  llvm::Value* loaded = nullptr;
  if (IsSlots(array) && fact.kind == LaneKind::kUniform) {
    loaded = LoadVector(array, SlotPointer(array, index), llvm::Align(BytesOf(type)), nullptr);
  } else if (fact.kind == LaneKind::kUniform) {
    auto* load = b_.CreateAlignedLoad(MemoryType(type), Pointer(array, Uniform(index)),
                                      ElementAlignment(array));
    Mark(load, array, true);
    loaded = load;
  } else if (fact.kind == LaneKind::kAffine && !IsSlots(array)) {
    loaded = LoadColumn(array, index);
    if (loaded == nullptr) loaded = LoadAffine(array, index);
  }
  if (loaded == nullptr && fact.kind == LaneKind::kVarying && !IsSlots(array))
    loaded = LoadClamped(array, index);
  if (loaded == nullptr) {
    auto* vector = llvm::FixedVectorType::get(MemoryType(type), width_);
    auto* gather = b_.CreateMaskedGather(
        vector, LanePointers(array, index), ElementAlignment(array),
        mask_ == nullptr ? AllLanes() : mask_, llvm::Constant::getNullValue(vector));
    Mark(gather, array, true);
    loaded = gather;
  }
  return FromMemory(type, loaded);
}

void LlvmEmitter::StoreScalar(ArrayId array, llvm::Value* index, llvm::Value* value) {
  auto* store = b_.CreateAlignedStore(ToMemory(kernel_.array(array).type, value),
                                      Pointer(array, index), ElementAlignment(array));
  Mark(store, array, false);
}

// A masked store to registers reads, blends and writes back whole vectors, so that SROA can promote
// them.
void LlvmEmitter::Blend(llvm::Value* value, llvm::Value* pointer, llvm::Align align) {
  if (mask_ != nullptr)
    value = b_.CreateSelect(mask_, value, b_.CreateAlignedLoad(value->getType(), pointer, align));
  b_.CreateAlignedStore(value, pointer, align);
}

// Write-once data that exceeds the caches uses non-temporal stores: otherwise each line is read
// before it is written.
bool LlvmEmitter::Streams(const Array& array) const {
  return array.space == Space::kArgument && array.access == Access::kWrite &&
         target_.stream_bytes > 0 && array.size >= target_.stream_bytes / BytesOf(array.type);
}

void LlvmEmitter::Store(llvm::Value* value, llvm::Value* pointer, ArrayId array,
                        const LaneFact& index) {
  auto store = [&](llvm::Align align) {
    llvm::StoreInst* made = b_.CreateAlignedStore(value, pointer, align);
    Mark(made, array, false);
    return made;
  };
  llvm::Align known = AlignmentOf(array, index), best = AlignmentOf(array, index, kLine);
  if (!Streams(kernel_.array(array)) || best.value() < kStreamAlignment) {
    store(known);
    return;
  }
  // The caller's memory may have any alignment, but usually is aligned.
  streams_ = true;
  llvm::BasicBlock *past = NewBlock("past"), *plain = NewBlock("plain"),
                   *after = NewBlock("stored");
  b_.CreateCondBr(IsAligned(array), past, plain);
  b_.SetInsertPoint(past);
  auto* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  store(best)->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(context_, {one}));
  b_.CreateBr(after);
  b_.SetInsertPoint(plain);
  store(known);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

llvm::Value* LlvmEmitter::IsAligned(ArrayId array) {
  Memory& memory = memory_[static_cast<size_t>(array)];
  if (memory.aligned != nullptr) return memory.aligned;
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(llvm::cast<llvm::Instruction>(memory.pointer)->getNextNode());
  llvm::Value* low = b_.CreateAnd(b_.CreatePtrToInt(memory.pointer, b_.getInt64Ty()),
                                  b_.getInt64(static_cast<uint64_t>(kLine - 1)));
  memory.aligned = b_.CreateICmpEQ(low, b_.getInt64(0));
  return memory.aligned;
}

void LlvmEmitter::StoreVector(const Stmt& stmt, llvm::Value* value) {
  const Array& array = kernel_.array(stmt.array);
  const LaneFact& fact = lanes_.of(stmt.index);
  llvm::Value *base = Uniform(stmt.index), *mask = mask_;
  llvm::Align align = AlignmentOf(stmt.array, fact);
  if (fact.step == -1) {
    base = b_.CreateSub(base, b_.getInt64(width_ - 1), "", false, true);
    value = Reversed(value);
    mask = mask == nullptr ? nullptr : Reversed(mask);
    align = ElementAlignment(stmt.array);
  }
  llvm::Value* pointer = Pointer(stmt.array, base);
  Range range = ranges_.Of(kernel_, stmt.index);
  if (array.space != Space::kArgument && fact.step == 1 && range.low >= 0 &&
      range.high < array.size)
    return Blend(value, pointer, align);
  if (mask != nullptr)
    return Mark(b_.CreateMaskedStore(value, pointer, align, mask), stmt.array, false);
  Store(value, pointer, stmt.array, fact.step == 1 ? fact : kNothingKnown);
}

void LlvmEmitter::StoreLanes(const Stmt& stmt) {
  ScalarType type = kernel_.array(stmt.array).type;
  const LaneFact& fact = lanes_.of(stmt.index);
  llvm::Value* value = ToMemory(type, Wide(stmt.value));
  if (IsSlots(stmt.array) && fact.kind == LaneKind::kUniform)
    return Blend(value, SlotPointer(stmt.array, stmt.index), llvm::Align(BytesOf(type)));
  if (!IsSlots(stmt.array) && fact.kind == LaneKind::kAffine && (fact.step == 1 || fact.step == -1))
    return StoreVector(stmt, value);
  if (!IsSlots(stmt.array) && fact.kind == LaneKind::kUniform && mask_ == nullptr)
    return StoreScalar(stmt.array, Uniform(stmt.index),
                       b_.CreateExtractElement(Wide(stmt.value), width_ - 1));  // the last lane's
  llvm::Value* pointers =
      fact.kind == LaneKind::kUniform
          ? b_.CreateVectorSplat(width_, Pointer(stmt.array, Uniform(stmt.index)))
          : LanePointers(stmt.array, stmt.index);
  auto* scatter = b_.CreateMaskedScatter(value, pointers, ElementAlignment(stmt.array),
                                         mask_ == nullptr ? AllLanes() : mask_);
  Mark(scatter, stmt.array, false);
}

void LlvmEmitter::EmitStore(const Stmt& stmt) {
  bool is_uniform = lanes_.IsUniform(stmt.index) && lanes_.IsUniform(stmt.value);
  if (IsSlots(stmt.array) && width_ == 0) {  // for all lanes
    auto lanes = static_cast<unsigned>(lanes_.LanesOf(stmt.array));
    ScalarType type = kernel_.array(stmt.array).type;
    llvm::Value* value = ToMemory(type, Uniform(stmt.value));
    b_.CreateAlignedStore(b_.CreateVectorSplat(lanes, value), SlotPointer(stmt.array, stmt.index),
                          llvm::Align(BytesOf(type)));
  } else if (width_ == 0 || (is_uniform && !IsSlots(stmt.array))) {
    StoreScalar(stmt.array, Uniform(stmt.index), Uniform(stmt.value));
  } else {
    StoreLanes(stmt);
  }
}

bool LlvmEmitter::IsPair(const Stmt& first, const Stmt& second) const {
  if (width_ == 0 || mask_ != nullptr || first.kind != StmtKind::kStore ||
      second.kind != StmtKind::kStore || first.array != second.array || IsSlots(first.array))
    return false;
  if (lanes_.of(first.index).step != 2 || lanes_.of(second.index).step != 2) return false;
  std::optional<LinearIndex> x = LinearOf(kernel_, first.index);
  std::optional<LinearIndex> y = LinearOf(kernel_, second.index);
  return x && y && x->terms == y->terms && y->constant - x->constant == 1;
}

void LlvmEmitter::EmitPair(const Stmt& first, const Stmt& second) {
  ScalarType type = kernel_.array(first.array).type;
  llvm::SmallVector<int, 128> zip;
  for (int i = 0; i < static_cast<int>(width_); ++i) {
    zip.push_back(i);
    zip.push_back(i + static_cast<int>(width_));
  }
  llvm::Value* both = b_.CreateShuffleVector(ToMemory(type, Wide(first.value)),
                                             ToMemory(type, Wide(second.value)), zip);
  Store(both, Pointer(first.array, Uniform(first.index)), first.array, lanes_.of(first.index));
}

}  // namespace tokamak::cpu
