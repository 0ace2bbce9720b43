#pragma once

#include <string>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "backend/cpu/lanes.h"
#include "backend/cpu/target.h"
#include "kernel/clamped.h"
#include "kernel/cold_paths.h"
#include "kernel/kernel.h"
#include "kernel/placement.h"
#include "kernel/range.h"
#include "support/result.h"

// From kernel IR to LLVM IR. The class is declared here and implemented in emit.cc, emit_memory.cc,
// emit_prims.cc and emit_convert.cc.
namespace tokamak::cpu {

// Writes one kernel as a function of an LLVM module:
//   void(void* const* arguments, const int64_t* extents, int64_t begin, int64_t end)
//
//   - A uniform value (equal in all lanes) is a scalar. An affine index is represented by the
//     scalar of its base; the lane offsets are added where a vector is needed. All other values
//     are vectors of the loop's lanes.
//   - f16 and bf16 are i16, an index is i64 (i32 in vectors if all fit), a pred is i1 (i8 in
//     memory).
//   - Control flow that diverges between lanes becomes a mask. Operations that could fault or
//     have side effects (loads, stores, divisions) are masked.
class LlvmEmitter {
 public:
  LlvmEmitter(const Kernel& kernel, const Lanes& lanes, const Target& target, llvm::Module& module);
  Status Emit(const std::string& name);

 private:
  struct Memory {
    llvm::Value* pointer = nullptr;
    llvm::Value* aligned = nullptr;  // rounded to a cache line; computed on demand
    llvm::MDNode *scope = nullptr, *noalias = nullptr;  // alias.scope, noalias
    bool constant = false;                              // not written while the kernel runs
  };

  // ---- emit.cc: the function and its statements
  Status FindScratch();
  void BeginFunction(const std::string& name);
  void FindAliases();
  void MakeRegisters();
  void EmitBlock(const StmtList& block);
  void EmitStmt(const Stmt& stmt);
  void EmitFor(const Stmt& stmt);
  void EmitUnrolled(const Stmt& stmt, int64_t trips);
  void EmitCounted(const Stmt& stmt, llvm::Value* begin, llvm::Value* end, bool may_be_empty);
  void EmitIf(const Stmt& stmt);
  void EmitBranch(llvm::Value* condition, const StmtList& body, const StmtList& otherwise);
  void EmitMasked(const StmtList& block, llvm::Value* mask);
  void EmitWhile(const Stmt& stmt);
  void EmitMultiply(const Stmt& stmt);
  bool IsForTiles(const Stmt& multiply);
  bool HasTiles(const StmtList& block);
  bool NeedsGuard(const StmtList& block) const;
  // A scalar that is true if the condition holds in all lanes; null if that is expensive to test.
  llvm::Value* HoldsInAllLanes(ValueId condition);
  bool IsSmall(const StmtList& block, int& budget) const;
  llvm::BasicBlock* NewBlock(const char* name);
  llvm::Value* Any(llvm::Value* mask);
  llvm::Value* Both(llvm::Value* mask, llvm::Value* more);  // `mask` may be null

  // ---- emit_memory.cc
  llvm::Value* Load(ArrayId array, ValueId index);
  llvm::Value* Whole(llvm::Value* loaded, int64_t step);
  llvm::Value* LoadAffine(ArrayId array, ValueId index);
  llvm::Value* LoadClamped(ArrayId array, ValueId index);
  llvm::Value* SumOf(const LinearIndex& index);  // of values that are uniform
  llvm::Value* Clamped(const ClampedIndex& index, llvm::Value* at);
  llvm::Value* Either(llvm::Intrinsic::ID which, llvm::Value* x, int64_t y);
  llvm::Value* LoadColumn(ArrayId array, ValueId index);
  llvm::Value* Zipped(ArrayId array, uint64_t square, unsigned iterations, unsigned row);
  void EmitStore(const Stmt& stmt);
  void StoreLanes(const Stmt& stmt);
  void StoreScalar(ArrayId array, llvm::Value* index, llvm::Value* value);
  // Two stores to elements 2i and 2i + 1, such as the parts of a complex number: emitted as one.
  bool IsPair(const Stmt& first, const Stmt& second) const;
  void EmitPair(const Stmt& first, const Stmt& second);
  llvm::Value* SlotPointer(ArrayId array, ValueId index);
  llvm::Value* LoadVector(ArrayId array, llvm::Value* pointer, llvm::Align align,
                          llvm::Value* mask);
  void StoreVector(const Stmt& stmt, llvm::Value* value);
  void Blend(llvm::Value* value, llvm::Value* pointer, llvm::Align align);
  bool Streams(const Array& array) const;
  // Stores a whole vector. `index`: the facts known about its address.
  void Store(llvm::Value* value, llvm::Value* pointer, ArrayId array, const LaneFact& index);
  llvm::Value* IsAligned(ArrayId array);
  llvm::Value* Reversed(llvm::Value* vector);  // the lanes in reverse order
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
  void DefineColdPath(const ColdPaths::ColdPath& path);
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
  llvm::Value* Uniform(ValueId id);  // the scalar; the base of an affine index
  llvm::Value* Wide(ValueId id);     // as a vector
  llvm::Value* Operand(ValueId id, bool wide) { return wide ? Wide(id) : Uniform(id); }
  llvm::Type* TypeOf(ScalarType type, bool wide) const;
  llvm::Type* Like(llvm::Type* scalar, llvm::Value* shape) const;  // with as many lanes as `shape`
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
  ColdPaths cold_paths_;
  RangeTable ranges_;

  llvm::Function* function_ = nullptr;
  std::vector<Memory> memory_;         // per array
  std::vector<llvm::Value*> extents_;  // per extent
  std::vector<llvm::Value*> loops_;    // per loop: its variable
  std::vector<llvm::Value*> values_;   // per value, as last emitted
  bool streams_ = false;               // whether a non-temporal store was emitted
  unsigned width_ = 0;                 // lanes of the enclosing vector loop; 0: none
  llvm::Value* mask_ = nullptr;        // null: all lanes
  int64_t scratch_bytes_ = 0;          // of shared arrays that are too large for the stack
};

}  // namespace tokamak::cpu
