#pragma once

#include <string>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "backend/cpu/lanes.h"
#include "backend/cpu/target.h"
#include "kernel/clamped.h"
#include "kernel/kernel.h"
#include "kernel/placement.h"
#include "kernel/range.h"
#include "kernel/rare.h"
#include "support/result.h"

namespace tokamak::cpu {

// Writes one kernel as a function of an LLVM module:
//   void(void* const* arguments, const int64_t* extents, int64_t begin, int64_t end)
//
//   * A value that all lanes share is a scalar. An affine index is the scalar of its base; the
//   lanes
//     are added where somebody wants them. All else is a vector of the loop's lanes.
//   * f16 and bf16 are i16 here, an index i64 (in vectors i32 when all fit), a pred i1 (i8 in
//     memory).
//   * Under a condition that differs between lanes there is a mask; what could fault or is seen
//     outside (loads, stores, divisions) obeys it.
class Emitter {
 public:
  Emitter(const Kernel& kernel, const Lanes& lanes, const Target& target, llvm::Module& module);
  Status Emit(const std::string& name);

 private:
  struct Memory {
    llvm::Value* pointer = nullptr;
    llvm::Value* aligned = nullptr;  // to a line of the cache; made when it is asked for
    llvm::MDNode *scope = nullptr, *apart = nullptr;  // alias.scope, noalias
    bool constant = false;                            // nothing writes it while the kernel runs
  };

  // ---- emit.cc: the function and its statements
  Status FindScratch();
  void BeginFunction(const std::string& name);
  void FindAliases();
  void MakeRegisters();
  void EmitBlock(const Block& block);
  void EmitStmt(const Stmt& stmt);
  void EmitFor(const Stmt& stmt);
  void EmitUnrolled(const Stmt& stmt, int64_t trips);
  void EmitCounted(const Stmt& stmt, llvm::Value* begin, llvm::Value* end, bool may_be_empty);
  void EmitIf(const Stmt& stmt);
  void EmitBranch(llvm::Value* condition, const Block& body, const Block& otherwise);
  void EmitMasked(const Block& block, llvm::Value* mask);
  void EmitWhile(const Stmt& stmt);
  void EmitMultiply(const Stmt& stmt);
  bool IsForTiles(const Stmt& multiply);
  bool HasTiles(const Block& block);
  bool NeedsGuard(const Block& block) const;
  // A scalar that says that the condition holds in all lanes; null when that is no cheap question.
  llvm::Value* HoldsInAllLanes(ValueId condition);
  bool IsSmall(const Block& block, int& budget) const;
  llvm::BasicBlock* NewBlock(const char* name);
  llvm::Value* Any(llvm::Value* mask);
  llvm::Value* Both(llvm::Value* mask, llvm::Value* more);  // `mask` may be null

  // ---- emit_memory.cc
  llvm::Value* Load(ArrayId array, ValueId index);
  llvm::Value* Whole(llvm::Value* loaded, int64_t step);
  llvm::Value* LoadAffine(ArrayId array, ValueId index);
  llvm::Value* LoadClamped(ArrayId array, ValueId index);
  llvm::Value* SumOf(const LinearIndex& index);  // of values that are the same in all lanes
  llvm::Value* Clamped(const ClampedIndex& index, llvm::Value* at);
  llvm::Value* Either(llvm::Intrinsic::ID which, llvm::Value* x, int64_t y);
  llvm::Value* LoadColumn(ArrayId array, ValueId index);
  llvm::Value* Zipped(ArrayId array, uint64_t square, unsigned rounds, unsigned row);
  void EmitStore(const Stmt& stmt);
  void StoreLanes(const Stmt& stmt);
  void StoreScalar(ArrayId array, llvm::Value* index, llvm::Value* value);
  // Two stores to elements 2i and 2i + 1, such as the parts of complex numbers: done as one.
  bool IsPair(const Stmt& first, const Stmt& second) const;
  void EmitPair(const Stmt& first, const Stmt& second);
  llvm::Value* SlotPointer(ArrayId array, ValueId index);
  llvm::Value* LoadVector(ArrayId array, llvm::Value* pointer, llvm::Align align,
                          llvm::Value* mask);
  void StoreVector(const Stmt& stmt, llvm::Value* value);
  void Blend(llvm::Value* value, llvm::Value* pointer, llvm::Align align);
  bool Streams(const Array& array) const;
  // A whole vector. `index`: what is known of where.
  void Store(llvm::Value* value, llvm::Value* pointer, ArrayId array, const LaneFact& index);
  llvm::Value* IsAligned(ArrayId array);
  llvm::Value* Turned(llvm::Value* vector);  // the lanes in the other order
  llvm::Value* Pointer(ArrayId array, llvm::Value* index);
  llvm::Value* LanePointers(ArrayId array, ValueId index);
  llvm::Value* FromMemory(ScalarType type, llvm::Value* value);
  llvm::Value* ToMemory(ScalarType type, llvm::Value* value);
  llvm::Type* MemoryType(ScalarType type) const;
  llvm::Align AlignmentOf(ArrayId array, const LaneFact& index) const;
  llvm::Align AlignmentOf(ArrayId array, const LaneFact& index, int64_t memory) const;
  llvm::Align ElementAlignment(ArrayId array) const;
  void Mark(llvm::Instruction* access, ArrayId array, bool is_load);
  bool IsSlots(ArrayId array) const { return lanes_.LanesOf(array) > 0; }

  // ---- emit_prims.cc: values
  void Define(ValueId id);
  void DefineAll(std::span<const ValueId> ids);
  void DefineRare(const RareArms::Arm& arm);
  llvm::Value* Make(ValueId id);
  llvm::Value* Compared(ValueId compare, bool is_negated, bool wide);
  llvm::Value* Arithmetic(const ScalarNode& node, ScalarType from, llvm::ArrayRef<llvm::Value*> v);
  bool IsBound(const llvm::Value* value) const;
  llvm::Value* OnFloats(Prim prim, llvm::ArrayRef<llvm::Value*> v);
  llvm::Value* OnIntegers(Prim prim, ScalarType from, llvm::ArrayRef<llvm::Value*> v);
  llvm::Value* Division(Prim prim, bool is_signed, llvm::Value* x, llvm::Value* y);
  llvm::Value* DivisionOfReals(Prim prim, bool is_signed, llvm::Value* x, llvm::Value* y);
  llvm::Value* AsReal(bool is_signed, llvm::Value* x);
  llvm::Value* Divided(Prim prim, bool is_signed, llvm::Value* x, llvm::Value* y,
                       llvm::Value* quotient);
  llvm::Value* DivisionByOne(Prim prim, bool is_signed, llvm::Value* x, llvm::Value* y,
                             llvm::Value* one);
  llvm::Value* MulHigh(bool is_signed, llvm::Value* x, llvm::Value* y);
  llvm::Value* EmitShuffle(ValueId id);

  // ---- emit_convert.cc
  llvm::Value* Convert(ScalarType to, ScalarType from, llvm::Value* x);
  llvm::Value* Bitcast(ScalarType to, ScalarType from, llvm::Value* x);
  llvm::Value* ToF32(ScalarType from, llvm::Value* x);  // from f16 or bf16
  llvm::Value* FloatToInt(ScalarType to, llvm::Value* x);
  llvm::Value* IntToFloat(ScalarType to, ScalarType from, llvm::Value* x);
  llvm::Value* Narrowed(ScalarType to, llvm::Value* x);  // f32 or f64 to f16 or bf16
  llvm::Value* RoundToOdd(llvm::Value* x);               // f64 to f32
  llvm::Value* HalfToFloat(llvm::Value* x);
  llvm::Value* FloatToHalf(llvm::Value* x);
  llvm::Value* FloatToBfloat(llvm::Value* x);

  // ---- values
  llvm::Value* Uniform(ValueId id);  // the scalar; of an affine index its base
  llvm::Value* Wide(ValueId id);     // as a vector
  llvm::Value* Operand(ValueId id, bool wide) { return wide ? Wide(id) : Uniform(id); }
  llvm::Type* TypeOf(ScalarType type, bool wide) const;
  llvm::Type* Like(llvm::Type* scalar, llvm::Value* shape) const;  // as many lanes as `shape`
  llvm::Constant* Number(llvm::Value* like, double value) const;
  llvm::Constant* Integer(llvm::Value* like, uint64_t value) const;
  llvm::Constant* Steps(int64_t step) const;  // {0, step, 2 step ...} as indices
  llvm::Constant* AllLanes() const;

  const Kernel& kernel_;
  const Lanes& lanes_;
  const Target& target_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  Placement placement_;
  RareArms rare_;
  RangeTable ranges_;

  llvm::Function* function_ = nullptr;
  std::vector<Memory> memory_;         // per array
  std::vector<llvm::Value*> extents_;  // per extent
  std::vector<llvm::Value*> loops_;    // per loop: its variable
  std::vector<llvm::Value*> values_;   // per value, as last made
  bool streams_ = false;               // something was stored past the caches
  unsigned width_ = 0;                 // lanes of the vector loop around; 0: none
  llvm::Value* mask_ = nullptr;        // null: all lanes
  int64_t scratch_bytes_ = 0;          // of team memory, when it is too much for the stack
};

}  // namespace tokamak::cpu
