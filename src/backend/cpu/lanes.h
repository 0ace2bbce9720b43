#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/range.h"
#include "support/result.h"

// Divergence analysis across the lanes of a vector loop, done once before code is emitted.

namespace tokamak::cpu {

// How a value varies across the lanes of the enclosing vector loop.
enum class LaneKind : uint8_t {
  kUniform,  // equal in all lanes
  kAffine,   // an index: base + step * lane
  kVarying,
};

struct LaneFact {
  LaneKind kind = LaneKind::kUniform;
  int64_t step = 0;           // of an affine index, not 0
  int64_t base_multiple = 1;  // divides the base of an affine index; 0: the base is 0
  int64_t lanes = 0;          // of the vector loop over which an affine index varies
};

// Maximum lanes of a vector loop. Chosen: code size grows with them.
inline constexpr int64_t kMaxLanes = 128;

class Lanes {
 public:
  // Returns TK4001 if the CPU backend does not compile kernels of this form.
  static Result<Lanes> Of(const Kernel& kernel);

  const LaneFact& of(ValueId id) const { return facts_[static_cast<size_t>(id)]; }
  bool IsUniform(ValueId id) const { return of(id).kind == LaneKind::kUniform; }
  // The number of lanes of a per-lane register array, else 0.
  int64_t LanesOf(ArrayId id) const { return laned_[static_cast<size_t>(id)]; }
  // Whether every non-uniform index fits 32 bits.
  bool narrow_index() const { return narrow_index_; }

 private:
  struct Site {  // a statement and its context
    const Stmt* stmt = nullptr;
    int64_t lanes = 0;                // of the enclosing vector loop; 0: none
    std::vector<ValueId> deciders{};  // conditions that control whether a lane executes it
  };
  explicit Lanes(const Kernel& kernel) : kernel_(&kernel) {}
  Status Collect(const StmtList& block, const Site& around);
  Status CollectFor(const Stmt& stmt, Site around);
  void FindFacts();
  LaneFact FactOf(ValueId id);
  LaneFact FactOfIndex(const ScalarNode& node);
  LaneFact FactOfDivision(const ScalarNode& node, const LaneFact& x);
  bool PropagateLanes();
  Status CheckRegisters() const;
  bool IndicesFit32Bits();

  const Kernel* kernel_;
  std::vector<Site> sites_;
  std::vector<int64_t> read_lanes_;  // of the vector loop around each read or shuffle
  std::vector<LaneFact> facts_;
  std::vector<int64_t> laned_;
  RangeTable ranges_;
  bool narrow_index_ = false;
};

// The loop whose range a launch divides: the kernel's only outermost statement if that is a grid
// loop, else null.
const Loop* GridOf(const Kernel& kernel);

}  // namespace tokamak::cpu
