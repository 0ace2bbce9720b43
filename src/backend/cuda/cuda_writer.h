#pragma once

#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backend/cuda/arrivals.h"
#include "backend/cuda/cuda_prims.h"
#include "backend/cuda/cuda_text.h"
#include "backend/cuda/lost_signs.h"
#include "backend/cuda/part_form.h"
#include "backend/cuda/team_memory.h"
#include "kernel/choice.h"
#include "kernel/names.h"
#include "kernel/placement.h"
#include "kernel/range.h"
#include "kernel/rare.h"
#include "kernel/variance.h"

namespace tokamak::cuda {

// Which values a text names, each with the one in whose line it stands.
class Mentions {
 public:
  void Add(ValueId by, ValueId value) { by_[by].push_back(value); }
  // What others than unneeded values name, directly or not.
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

// Functions that the multiply of a team calls.
std::string_view TeamMultiplyText();

// Whether sums of integers are better done as products: the units that shift and compare would be
// busier with them than those that multiply (cuda_values.cc).
bool MultipliesSums(const Kernel& kernel);

// Quotients of f32 of which nothing but a number of 16 bits is made (cuda_values.cc).
std::set<ValueId> NarrowedQuotients(const Kernel& kernel);

// Writes one kernel as CUDA C++.
class CudaWriter {
 public:
  // With `needed`, only those values are written: a first text tells which they are. Indices of
  // lanes whose accesses are one are in no line of it.
  // `part`: the name of a function of the device, for a pack of kernels; `open`: constants for
  // which it gets marks.
  explicit CudaWriter(const Kernel& kernel, const std::set<ValueId>* needed = nullptr,
                      const std::string* part = nullptr, OpenConstants* open = nullptr)
      : kernel_(kernel),
        needed_(needed),
        part_(part),
        open_(open),
        placement_(kernel),
        rare_(kernel),
        variance_(kernel),
        names_(kernel, placement_),
        spelling_(kernel.index_bits),
        multiplies_sums_(MultipliesSums(kernel)),
        narrowed_(NarrowedQuotients(kernel)),
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
  // Which loops are the grid and the block: those at the head, one in the other.
  Status Layout(const Block& block);
  void Function();
  void TeamArrays();
  void BeginArrivals();
  void Registers(size_t i);
  // Lanes of the vector loops that touch an array of which each lane has its own: all alike.
  int64_t LanesOf(size_t array);
  void FindLanes(const Block& block, int64_t around, size_t array, int64_t& lanes) const;
  void NoteType(ScalarType type) {
    if (type == ScalarType::kF16) source_.helpers.insert(Helper::kF16);
    if (type == ScalarType::kBF16) source_.helpers.insert(Helper::kBf16);
  }

  // ---- values (cuda_text.cc)
  std::string Element(ArrayId id, ValueId index) const;
  // What a pure primitive is; where one is spelled otherwise, that (cuda_values.cc).
  std::string Spelled(ValueId id);
  std::string SpelledOtherwise(ValueId id);
  void Define(ValueId id);
  // In this order; what few numbers need stands behind a branch.
  void DefineAll(std::span<const ValueId> ids);
  void DefineRare(const RareArms::Arm& arm);
  std::vector<ValueId> BranchesLast(std::span<const ValueId> ids) const;
  bool SetsRegister(const Stmt& stmt) const;
  std::string Hidden(const Choice& choice);
  void Shuffle(ValueId id);

  // ---- statements (cuda_text.cc)
  void Body(const Block& block);
  void Meet(const Stmt& stmt);
  void MeetInWarp();
  // The place that counts what arrives for a meeting, of a store or barrier that belongs to it.
  std::string ArrivalsFor(const Stmt& stmt) const;
  void Inner(const Block& block);
  bool IsLong(const Loop& loop, std::string_view text) const;
  void WriteStmt(const Stmt& stmt);
  void Store(const Stmt& stmt);
  void For(const Stmt& stmt);
  // A thread's number along a dimension of the block; of a part, in the order of a block of so
  // many.
  std::string ThreadIndex(size_t dimension) const;
  // A team's number, taken apart for the grid loops; the innermost one changes fastest.
  void Grid(const Stmt& stmt);
  // The extent of an inner grid loop, which may not have been computed yet: its expression.
  std::string GridExtent(ValueId id) const;

  // ---- products (cuda_multiply.cc)
  void Multiply(const Stmt& stmt);
  void TeamMultiply(const Stmt& stmt);

  // ---- lanes (cuda_lanes.cc)
  void Vector(const Stmt& stmt);
  // Whether so many elements, loaded at once, are bytes that share registers.
  static bool AreBytes(ScalarType type, int64_t lanes);
  // One of the elements that all lanes loaded at once, by its number as text.
  std::string Lane(ValueId packed, int64_t lanes, const std::string& lane);
  // The loads and stores of all lanes that are one wide access: each lane's element next to its
  // neighbour's, the first one aligned.
  void FindPacks(const Stmt& stmt, int64_t lanes);
  // Of team memory that the loop does not store to.
  void FindPackedRead(const Stmt& loop, int64_t lanes, ValueId id,
                      const std::map<ArrayId, int>& stored);
  // What all lanes store, by the number of the store among those to its array.
  std::string StoredName(const Stmt& stmt) const;
  // Whether all stores of a vector loop to an array are wide ones, of the loop's own block.
  bool AreWide(const Stmt& loop, int64_t lanes, ArrayId array);
  // Whether the lanes of a loop read an array of the team, if at all, and then store to the same
  // place, and touch it nowhere else.
  bool IsReplaced(const Block& body, ArrayId array) const;
  bool Touches(const Stmt& stmt, ArrayId array) const;
  static size_t StoresTo(const Stmt& stmt, ArrayId array);
  // Whether something that may overlap other arrays is loaded after a statement of a block.
  bool LoadsAfter(const Block& block, size_t stmt) const;
  void FindAccesses(const Block& block, std::set<ArrayId>& read, std::map<ArrayId, int>& stored);
  // Whether each lane stores a register before all else: what the lane before it left is not seen.
  bool BeginsAnew(const Block& body, ArrayId array) const;
  // Lanes in lockstep do so once, lanes one after the other would do it again and again.
  bool StoresAlike(const Block& block, const std::set<ArrayId>& read) const;
  // Where the first lane's element is, `by` places before that of the index, as text; empty: no
  // wide access.
  std::string PackBase(LoopId loop, int64_t lanes, ArrayId id, ValueId index, int64_t by = 0);
  // Loads one place beside a wide one: all lanes but one find theirs in it.
  void FindBeside(const Stmt& stmt, int64_t lanes);

  const Kernel& kernel_;
  const std::set<ValueId>* needed_;
  const std::string* part_;
  OpenConstants* open_;
  mutable Mentions mentions_;
  ValueId defining_ = kNoValue;
  Placement placement_;
  RareArms rare_;
  Variance variance_;
  KernelNames names_;
  Spelling spelling_;
  bool multiplies_sums_;
  std::set<ValueId> narrowed_;
  std::set<std::pair<ValueId, size_t>> signed_;
  RangeTable ranges_;
  CudaSource source_;
  std::string text_, failure_;
  bool failed_ = false, in_vector_ = false;
  int depth_ = 0;
  std::string lane_ = "0";
  int64_t lanes_ = 1;  // of the vector loop
  std::vector<LoopId> grid_, threads_;
  TeamMemory team_memory_;
  std::optional<Arrivals> arrivals_;  // of a cluster that needs no barrier
  std::map<ValueId, std::string> packed_loads_;
  struct Beside {
    ValueId packed{};
    int64_t by = 0, lanes = 0;
  };
  std::map<ValueId, Beside> beside_;
  std::map<const Stmt*, std::string> packed_stores_;  // of one block: in its order
  std::set<ArrayId> packed_before_;                   // of which loops before stored vectors
  std::set<ValueId> inside_;                          // computed within the vector loop
};

}  // namespace tokamak::cuda
