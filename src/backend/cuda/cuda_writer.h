#pragma once

#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backend/cuda/cuda_prims.h"
#include "backend/cuda/cuda_text.h"
#include "backend/cuda/device_function_form.h"
#include "backend/cuda/guarded_inverses.h"
#include "backend/cuda/lost_signs.h"
#include "backend/cuda/mbarriers.h"
#include "backend/cuda/pipe_balance.h"
#include "backend/cuda/shared_memory.h"
#include "kernel/choice.h"
#include "kernel/cold_paths.h"
#include "kernel/divergence.h"
#include "kernel/names.h"
#include "kernel/narrow_arithmetic.h"
#include "kernel/placement.h"
#include "kernel/range.h"

// The writer of CUDA C++ text (cuda_text.h). The class is declared here and implemented in
// cuda_text.cc, cuda_function.cc, cuda_values.cc, cuda_narrow.cc, cuda_multiply.cc,
// cuda_async.cc and cuda_lanes.cc.
namespace tokamak::cuda {

// Records which values the line of each value mentions, to drop dead ones.
class Mentions {
 public:
  void Add(ValueId by, ValueId value) { by_[by].push_back(value); }
  // Values that are mentioned, directly or indirectly, by something other than a dead value.
  std::set<ValueId> Needed() const {
    std::set<ValueId> needed;
    std::vector<ValueId> open = {kNoValue};
    while (!open.empty()) {
      auto at = by_.find(open.back());
      open.pop_back();
      if (at == by_.end()) continue;
      for (ValueId value : at->second)
        if (needed.insert(value).second) open.push_back(value);
    }
    return needed;
  }

 private:
  std::map<ValueId, std::vector<ValueId>> by_;
};

// Functions that a block multiply calls.
std::string_view BlockMultiplyText();
// Functions of f16 or bf16 arithmetic (cuda_narrow.cc).
std::string NarrowArithmeticText(ScalarType type);
// Functions of asynchronous work: of mbarriers, of copies, of warpgroup multiplies (cuda_async.cc).
std::string_view PhasesText();
std::string TensorMapsText(const CudaSource& source);
std::string WarpgroupMultiplyText(const CudaSource& source);

// f32 quotients that are only used rounded to a 16-bit float (cuda_values.cc).
std::set<ValueId> NarrowedQuotients(const Kernel& kernel);

// Writes one kernel as CUDA C++.
class CudaWriter {
 public:
  // `needed`: only these values are written. A first pass without it finds them; indices of lanes
  // that became one wide access, for example, appear in no line. `kernel_function`: the name of the
  // __device__ function, for a horizontally fused launch. `open`: constants that are written as
  // placeholders.
  explicit CudaWriter(const Kernel& kernel, const std::set<ValueId>* needed = nullptr,
                      const std::string* kernel_function = nullptr, OpenConstants* open = nullptr)
      : kernel_(kernel),
        needed_(needed),
        device_function_(kernel_function),
        open_(open),
        placement_(kernel),
        cold_paths_(kernel),
        divergence_(kernel),
        names_(kernel, placement_),
        spelling_(kernel.index_bits),
        multiplied_(MultipliedSums(kernel)),
        narrowed_(NarrowedQuotients(kernel)),
        guarded_(GuardedInverses(kernel)),
        narrow_arrays_(kernel),
        signed_(MayLoseSign(kernel)) {}

  const Mentions& mentions() const { return mentions_; }

  Result<CudaSource> Write();

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<size_t>(depth_) * 2, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  void Fail(const std::string& what) {
    if (!failed_) failure_ = fmt::format("kernel {}: {}", kernel_.name, what);
    failed_ = true;
  }
  Error Unsupported(const std::string& what) const {
    return MakeError(ErrorCode::kCudaText, fmt::format("kernel {}: {}", kernel_.name, what));
  }
  int64_t ConstantOf(ValueId id) const {
    return IntOfBits(ScalarType::kIndex, kernel_.node(id).bits);
  }
  std::string_view Type(ScalarType type) const { return spelling_.Type(type); }
  std::string_view IndexType() const { return Type(ScalarType::kIndex); }
  std::string Operand(ValueId id) const {
    const ScalarNode& node = kernel_.node(id);
    mentions_.Add(defining_, id);
    if (node.prim != Prim::kConst) return names_.Operand(id);
    std::string literal = spelling_.Constant(node.type, node.bits);
    return open_ != nullptr && open_->IsOpen(id) ? open_->MarkOf(id, literal) : literal;
  }

  // ---- the function around the statements (cuda_function.cc)
  // Finds the grid and thread loops: the perfectly nested loops at the top.
  Status Layout(const StmtList& block);
  void Function();
  void SharedArrays();
  void InitMbarriers();
  void Registers(size_t i);
  // Lanes of the vector loops that access a per-lane register array: all have the same number.
  int64_t LanesOf(size_t array);
  void FindLanes(const StmtList& block, int64_t around, size_t array, int64_t& lanes) const;
  void NoteType(ScalarType type) {
    if (type == ScalarType::kF16) source_.helpers.insert(Helper::kF16);
    if (type == ScalarType::kBF16) source_.helpers.insert(Helper::kBf16);
  }

  // ---- values (cuda_text.cc)
  std::string Element(ArrayId id, ValueId index) const;
  // The expression of a pure primitive; SpelledOtherwise gives the special forms (cuda_values.cc).
  std::string Spelled(ValueId id);
  std::string SpelledOtherwise(ValueId id);
  // Whether the lanes of a vector loop divide by one number, and round the quotients.
  bool DividesAllLanes(ValueId quotient) const;
  // Arithmetic that is rounded to f16 or bf16 as one operation of that type; empty if `id` is
  // something else (cuda_narrow.cc).
  std::string SpelledNarrow(ValueId id);
  // A bf16 quotient by a constant as a product; empty if the divisor is something else.
  std::string NarrowProduct(ValueId quotient);
  // The bits, as f16 or bf16, of an f32 that the type can represent.
  std::string NarrowOperand(ValueId id, ScalarType type);
  void Define(ValueId id);
  // In this order; cold paths become branches.
  void DefineAll(std::span<const ValueId> ids);
  void DefineColdPath(const ColdPaths::ColdPath& path);
  std::vector<ValueId> BranchesLast(std::span<const ValueId> ids) const;
  bool SetsRegister(const Stmt& stmt) const;
  std::string Hidden(const Choice& choice);
  void Shuffle(ValueId id);

  // ---- statements (cuda_text.cc)
  void Body(const StmtList& block);
  void EmitBarrier(const Stmt& stmt);
  void EmitWarpBarrier();
  // The mbarrier that counts the bytes stored before a sync point. `stmt` is a store or barrier
  // that belongs to it.
  std::string MbarrierFor(const Stmt& stmt) const;
  void Inner(const StmtList& block);
  bool IsLong(const Loop& loop, std::string_view text) const;
  void WriteStmt(const Stmt& stmt);
  void Store(const Stmt& stmt);
  void For(const Stmt& stmt);
  // A thread's index along a dimension of the block. A device function derives it from the linear
  // thread index.
  std::string ThreadIndex(size_t dimension) const;
  // Splits the block index into the indices of the grid loops; the innermost one varies fastest.
  void Grid(const Stmt& stmt);
  // The extent of an inner grid loop as an expression: it may not have been computed yet.
  std::string GridExtent(ValueId id) const;

  // ---- products (cuda_multiply.cc)
  void Multiply(const Stmt& stmt);
  void BlockMultiply(const Stmt& stmt);

  // ---- asynchronous work (cuda_async.cc)
  // Fills the source's `uses_async` and `maps`.
  Status FindAsyncWork();
  Status FindTensorMaps(const StmtList& block);
  std::string MapName(size_t map) const;
  void StartAsyncWork();
  void Async(const Stmt& stmt);
  void LimitRegisters(int64_t registers);
  int64_t PendingMultiplies(const Stmt& await) const;
  static bool MultipliesInside(const Stmt& stmt);
  void AsyncMultiply(const Stmt& stmt);

  // ---- lanes (cuda_lanes.cc)
  void Vector(const Stmt& stmt);
  // Whether `lanes` elements loaded at once are bytes packed into registers.
  static bool AreBytes(ScalarType type, int64_t lanes);
  // One element of a vector load; `lane` is its number as text.
  std::string Lane(ValueId vector_access, int64_t lanes, const std::string& lane);
  // Finds the loads and stores that are one wide access over all lanes: contiguous across the
  // lanes, with an aligned first element.
  void FindVectorAccesses(const Stmt& stmt, int64_t lanes);
  // Vector loads from shared memory that the loop does not store to.
  void FindVectorRead(const Stmt& loop, int64_t lanes, ValueId id,
                      const std::map<ArrayId, int>& stored);
  // The vector that collects what all lanes store; numbered by the stores to its array.
  std::string StoredName(const Stmt& stmt) const;
  // Whether all stores of a vector loop to an array are wide and directly in the loop's body.
  bool AreWide(const Stmt& loop, int64_t lanes, ArrayId array);
  // Whether the lanes of a loop read a shared array only at the index that they then store to, and
  // access it nowhere else.
  bool IsReplaced(const StmtList& body, ArrayId array) const;
  bool Touches(const Stmt& stmt, ArrayId array) const;
  static size_t StoresTo(const Stmt& stmt, ArrayId array);
  // Whether a load that may alias other arrays follows a statement of a block.
  bool LoadsAfter(const StmtList& block, size_t stmt) const;
  void FindAccesses(const StmtList& block, std::set<ArrayId>& read, std::map<ArrayId, int>& stored);
  // Whether each lane stores a register before it reads it: no value is carried from lane to lane.
  bool BeginsAnew(const StmtList& body, ArrayId array) const;
  // Whether a register is stored with a uniform value: lanes in lockstep do so once, lanes in
  // sequence would repeat it.
  bool StoresUniform(const StmtList& block, const std::set<ArrayId>& read) const;
  // The address of the first lane's element, `by` elements before that of the index, as text; empty
  // if there is no wide access.
  std::string VectorBase(LoopId loop, int64_t lanes, ArrayId id, ValueId index, int64_t by = 0);
  // Loads that are shifted by one element from a wide one: all lanes but one take theirs from it.
  void FindBeside(const Stmt& stmt, int64_t lanes);

  const Kernel& kernel_;
  const std::set<ValueId>* needed_;
  const std::string* device_function_;
  OpenConstants* open_;
  mutable Mentions mentions_;
  ValueId defining_ = kNoValue;
  Placement placement_;
  ColdPaths cold_paths_;
  Divergence divergence_;
  KernelNames names_;
  Spelling spelling_;
  std::set<ValueId> multiplied_;  // sums that are written as multiply-adds
  std::set<ValueId> narrowed_;
  std::set<ValueId> guarded_;
  NarrowArrays narrow_arrays_;
  std::set<std::pair<ValueId, size_t>> signed_;
  RangeTable ranges_;
  CudaSource source_;
  std::string text_, failure_;
  bool failed_ = false, in_vector_ = false;
  int depth_ = 0;
  std::string lane_ = "0";
  int64_t lanes_ = 1;  // of the vector loop
  std::vector<LoopId> grid_, threads_;
  SharedMemoryLayout shared_memory_;
  std::optional<MbarrierPlan> mbarriers_;    // of a cluster that synchronizes by mbarriers
  std::map<const AsyncOp*, size_t> map_of_;  // copies, to the number of their tensor map
  // The registers of the asynchronous multiplies that were issued in this order, since control flow
  // with multiplies.
  std::vector<ArrayId> issued_;
  std::map<ValueId, std::string> vector_loads_;
  struct Beside {
    ValueId vector_access{};
    int64_t by = 0, lanes = 0;
  };
  std::map<ValueId, Beside> beside_;
  std::map<const Stmt*, std::string> vector_stores_;  // in the order of the block's statements
  std::set<ArrayId> vector_loaded_;                   // arrays with vector stores in earlier loops
  std::set<ValueId> inside_;                          // values computed within the vector loop
};

}  // namespace tokamak::cuda
