// Loads and stores. How lanes meet memory:
//   all at one index       a scalar
//   side by side           one vector access (backwards: turned; n apart: n accesses, shuffled)
//   side by side up to an  one vector access under a mask; the others take the element at that end
//   end, where they stay
//   else                   a gather or a scatter
//   down a square          of registers: its rows, zipped until they are columns
// Registers that are each lane's own are an array of vectors.

#include "backend/cpu/emitter.h"
#include "kernel/linear.h"

namespace tokamak::cpu {
namespace {

// Lanes that are so many elements apart are read as vectors and shuffled: a gather costs as much as
// its lanes one by one.
constexpr int64_t kMaxStep = 4;
// Bytes of a line of the cache, to which memory is aligned that we allocate.
constexpr int64_t kLine = 64;
// Stores past the caches that are less aligned would be made word by word.
constexpr uint64_t kStreamAlignment = 16;
constexpr LaneFact kNothingKnown{.kind = LaneKind::kVarying, .base_multiple = 1};

}  // namespace

llvm::Type* Emitter::MemoryType(ScalarType type) const {
  return type == ScalarType::kPred ? llvm::Type::getInt8Ty(context_) : TypeOf(type, false);
}

llvm::Value* Emitter::FromMemory(ScalarType type, llvm::Value* value) {
  if (type == ScalarType::kPred) return b_.CreateICmpNE(value, Integer(value, 0));
  if (type == ScalarType::kIndex)
    return b_.CreateTrunc(value, TypeOf(type, value->getType()->isVectorTy()));
  return value;
}

llvm::Value* Emitter::ToMemory(ScalarType type, llvm::Value* value) {
  llvm::Type* as = Like(MemoryType(type), value);
  if (type == ScalarType::kPred) return b_.CreateZExt(value, as);
  if (type == ScalarType::kIndex) return b_.CreateSExt(value, as);
  return value;
}

void Emitter::Mark(llvm::Instruction* access, ArrayId array, bool is_load) {
  const Memory& memory = memory_[static_cast<size_t>(array)];
  if (memory.scope != nullptr) access->setMetadata(llvm::LLVMContext::MD_alias_scope, memory.scope);
  if (memory.apart != nullptr) access->setMetadata(llvm::LLVMContext::MD_noalias, memory.apart);
  if (is_load && memory.constant)
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
}

llvm::Align Emitter::ElementAlignment(ArrayId array) const {
  return llvm::Align(static_cast<uint64_t>(BytesOf(kernel_.array(array).type)));
}

llvm::Align Emitter::AlignmentOf(ArrayId array, const LaneFact& index) const {
  const Array& of = kernel_.array(array);
  return AlignmentOf(array, index, of.space == Space::kArgument ? of.alignment : kLine);
}

llvm::Align Emitter::AlignmentOf(ArrayId array, const LaneFact& index, int64_t memory) const {
  auto of_index = static_cast<uint64_t>(index.base_multiple) *
                  static_cast<uint64_t>(BytesOf(kernel_.array(array).type));
  uint64_t both = static_cast<uint64_t>(memory) | of_index;  // the lowest bit of either
  return std::max(ElementAlignment(array),
                  llvm::Align(std::min<uint64_t>(both & (~both + 1), kLine)));
}

llvm::Value* Emitter::Pointer(ArrayId array, llvm::Value* index) {
  return b_.CreateInBoundsGEP(MemoryType(kernel_.array(array).type),
                              memory_[static_cast<size_t>(array)].pointer, index);
}

llvm::Value* Emitter::SlotPointer(ArrayId array, ValueId index) {
  auto* slot = llvm::FixedVectorType::get(MemoryType(kernel_.array(array).type),
                                          static_cast<unsigned>(lanes_.LanesOf(array)));
  return b_.CreateInBoundsGEP(slot, memory_[static_cast<size_t>(array)].pointer, Uniform(index));
}

llvm::Value* Emitter::LanePointers(ArrayId array, ValueId index) {
  llvm::Type* element = MemoryType(kernel_.array(array).type);
  llvm::Value* base = memory_[static_cast<size_t>(array)].pointer;
  if (IsSlots(array)) {  // element i of lane l stands at i * lanes + l; vectors are padded
    llvm::Value* place = Wide(index);
    place = b_.CreateMul(place, Integer(place, llvm::PowerOf2Ceil(width_)));
    return b_.CreateGEP(element, base, b_.CreateAdd(place, Steps(1)));
  }
  const LaneFact& fact = lanes_.of(index);
  if (fact.kind == LaneKind::kAffine)
    return b_.CreateGEP(element, Pointer(array, Uniform(index)), Steps(fact.step));
  return b_.CreateGEP(element, base, Wide(index));
}

llvm::Value* Emitter::Turned(llvm::Value* vector) {
  llvm::SmallVector<int, 64> order;
  for (unsigned i = width_; i-- > 0;) order.push_back(static_cast<int>(i));
  return b_.CreateShuffleVector(vector, order);
}

llvm::Value* Emitter::LoadVector(ArrayId array, llvm::Value* pointer, llvm::Align align,
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

// Where a shuffle takes one lane of a register, LLVM 19 for aarch64 loads that lane alone, perhaps
// with an address that it writes back for others. Then it makes one instruction of that load and
// the insertion of the lane (performPostLD1Combine), which loses the offset and the address: code
// generation crashes. A frozen vector is loaded whole. Lanes that are 2 apart come in pairs.
llvm::Value* Emitter::Whole(llvm::Value* loaded, int64_t step) {
  bool takes_one = step > 2 || width_ == 2;
  return takes_one && !target_.IsX86() ? b_.CreateFreeze(loaded) : loaded;
}

llvm::Value* Emitter::LoadAffine(ArrayId array, ValueId index) {
  const LaneFact& fact = lanes_.of(index);
  llvm::Align element = ElementAlignment(array);
  auto last = static_cast<int64_t>(width_) - 1;
  auto at = [&](int64_t offset) {
    return Pointer(array, b_.CreateAdd(Uniform(index), b_.getInt64(static_cast<uint64_t>(offset)),
                                       "", false, true));
  };
  if (fact.step == 1) return LoadVector(array, at(0), AlignmentOf(array, fact), mask_);
  if (fact.step == -1) {
    llvm::Value* mask = mask_ == nullptr ? nullptr : Turned(mask_);
    return Turned(LoadVector(array, at(-last), element, mask));
  }
  if (fact.step < 2 || fact.step > kMaxStep || mask_ != nullptr) return nullptr;
  // All that lies between, vector by vector. The last one ends with the last lane's element:
  // nothing beyond is read.
  int64_t tail = (fact.step - 1) * last;
  llvm::Value* picked = Whole(LoadVector(array, at(0), element, nullptr), fact.step);
  for (int64_t k = 1; k < fact.step; ++k) {
    bool is_tail = k + 1 == fact.step;
    int64_t begin = is_tail ? tail : k * (last + 1);
    llvm::Value* more = Whole(LoadVector(array, at(begin), element, nullptr), fact.step);
    llvm::SmallVector<int, 64> pick;
    for (int64_t i = 0; i <= last; ++i) {
      int64_t place = fact.step * i;
      bool there = place >= k * (last + 1);
      // What the first vector holds is picked with the second; later ones leave it where it is.
      int64_t from = there ? place - begin + last + 1 : k == 1 ? place : i;
      pick.push_back(static_cast<int>(std::min(from, 2 * last + 1)));
    }
    picked = b_.CreateShuffleVector(picked, more, pick);
  }
  return picked;
}

// Where a vector that is read may cross an end of a concatenation's part, of a slice or of what is
// padded: one access under a mask; lanes beyond an end have the element there. Null when the index
// is another one.
llvm::Value* Emitter::LoadClamped(ArrayId array, ValueId index) {
  const Array& of = kernel_.array(array);
  if (BytesOf(of.type) < kLeastMasked) return nullptr;
  std::optional<ClampedIndex> clamped =
      ClampedOf(kernel_, index, [&](ValueId id) { return !lanes_.IsUniform(id); });
  if (!clamped) return nullptr;
  const LaneFact& inner = lanes_.of(clamped->inner);
  if (inner.kind != LaneKind::kAffine || inner.step != 1) return nullptr;
  // Where an end lies outside, no lane reads there; which ones read at all is not known under a
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
    // Lanes from here on, or up to here: perhaps none. Then no memory beyond the end is touched:
    // processors are slow on memory that is none, also where the mask leaves it out.
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

llvm::Value* Emitter::SumOf(const LinearIndex& index) {
  llvm::Value* sum = b_.getInt64(static_cast<uint64_t>(index.constant));
  for (const auto& [value, factor] : index.terms)
    sum =
        b_.CreateAdd(sum, b_.CreateMul(Uniform(value), b_.getInt64(static_cast<uint64_t>(factor))));
  return sum;
}

llvm::Value* Emitter::Clamped(const ClampedIndex& index, llvm::Value* at) {
  if (index.low) at = Either(llvm::Intrinsic::smax, at, *index.low);
  return index.high ? Either(llvm::Intrinsic::smin, at, *index.high) : at;
}

llvm::Value* Emitter::Either(llvm::Intrinsic::ID which, llvm::Value* x, int64_t y) {
  return b_.CreateBinaryIntrinsic(which, x, b_.getInt64(static_cast<uint64_t>(y)));
}

// Row `row` of a square after some rounds of zipping each row of the upper half with that of the
// lower half. After as many rounds as the width has binary digits these are the columns. Columns
// share most of the work, which EarlyCSE finds.
llvm::Value* Emitter::Zipped(ArrayId array, uint64_t square, unsigned rounds, unsigned row) {
  if (rounds == 0)
    return LoadVector(array, Pointer(array, b_.getInt64(square + row * width_)),
                      ElementAlignment(array), nullptr);
  llvm::Value* upper = Zipped(array, square, rounds - 1, row / 2);
  llvm::Value* lower = Zipped(array, square, rounds - 1, row / 2 + width_ / 2);
  llvm::SmallVector<int, 64> zip;
  for (unsigned i = row % 2 * width_ / 2; zip.size() < width_; ++i) {
    zip.push_back(static_cast<int>(i));
    zip.push_back(static_cast<int>(i + width_));
  }
  return b_.CreateShuffleVector(upper, lower, zip);
}

// Null when it is not a column of a square whose side is the lanes.
llvm::Value* Emitter::LoadColumn(ArrayId array, ValueId index) {
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

llvm::Value* Emitter::Load(ArrayId array, ValueId index) {
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

void Emitter::StoreScalar(ArrayId array, llvm::Value* index, llvm::Value* value) {
  auto* store = b_.CreateAlignedStore(ToMemory(kernel_.array(array).type, value),
                                      Pointer(array, index), ElementAlignment(array));
  Mark(store, array, false);
}

// Registers keep to vectors that can be promoted: what is there is read, and written back.
void Emitter::Blend(llvm::Value* value, llvm::Value* pointer, llvm::Align align) {
  if (mask_ != nullptr)
    value = b_.CreateSelect(mask_, value, b_.CreateAlignedLoad(value->getType(), pointer, align));
  b_.CreateAlignedStore(value, pointer, align);
}

// What is written once and is too large for the caches goes past them: else each line is read
// before it is written.
bool Emitter::Streams(const Array& array) const {
  return array.space == Space::kArgument && array.access == Access::kWrite &&
         target_.stream_bytes > 0 && array.size >= target_.stream_bytes / BytesOf(array.type);
}

void Emitter::Store(llvm::Value* value, llvm::Value* pointer, ArrayId array,
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
  // The caller's memory is as it is: usually aligned.
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

llvm::Value* Emitter::IsAligned(ArrayId array) {
  Memory& memory = memory_[static_cast<size_t>(array)];
  if (memory.aligned != nullptr) return memory.aligned;
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(llvm::cast<llvm::Instruction>(memory.pointer)->getNextNode());
  llvm::Value* low = b_.CreateAnd(b_.CreatePtrToInt(memory.pointer, b_.getInt64Ty()),
                                  b_.getInt64(static_cast<uint64_t>(kLine - 1)));
  memory.aligned = b_.CreateICmpEQ(low, b_.getInt64(0));
  return memory.aligned;
}

void Emitter::StoreVector(const Stmt& stmt, llvm::Value* value) {
  const Array& array = kernel_.array(stmt.array);
  const LaneFact& fact = lanes_.of(stmt.index);
  llvm::Value *base = Uniform(stmt.index), *mask = mask_;
  llvm::Align align = AlignmentOf(stmt.array, fact);
  if (fact.step == -1) {
    base = b_.CreateSub(base, b_.getInt64(width_ - 1), "", false, true);
    value = Turned(value);
    mask = mask == nullptr ? nullptr : Turned(mask);
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

void Emitter::StoreLanes(const Stmt& stmt) {
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

void Emitter::EmitStore(const Stmt& stmt) {
  bool alike = lanes_.IsUniform(stmt.index) && lanes_.IsUniform(stmt.value);
  if (IsSlots(stmt.array) && width_ == 0) {  // for all lanes
    auto lanes = static_cast<unsigned>(lanes_.LanesOf(stmt.array));
    ScalarType type = kernel_.array(stmt.array).type;
    llvm::Value* value = ToMemory(type, Uniform(stmt.value));
    b_.CreateAlignedStore(b_.CreateVectorSplat(lanes, value), SlotPointer(stmt.array, stmt.index),
                          llvm::Align(BytesOf(type)));
  } else if (width_ == 0 || (alike && !IsSlots(stmt.array))) {
    StoreScalar(stmt.array, Uniform(stmt.index), Uniform(stmt.value));
  } else {
    StoreLanes(stmt);
  }
}

bool Emitter::IsPair(const Stmt& first, const Stmt& second) const {
  if (width_ == 0 || mask_ != nullptr || first.kind != StmtKind::kStore ||
      second.kind != StmtKind::kStore || first.array != second.array || IsSlots(first.array))
    return false;
  if (lanes_.of(first.index).step != 2 || lanes_.of(second.index).step != 2) return false;
  std::optional<LinearIndex> x = LinearOf(kernel_, first.index);
  std::optional<LinearIndex> y = LinearOf(kernel_, second.index);
  return x && y && x->terms == y->terms && y->constant - x->constant == 1;
}

void Emitter::EmitPair(const Stmt& first, const Stmt& second) {
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
