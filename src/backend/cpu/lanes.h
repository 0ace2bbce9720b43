#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/range.h"
#include "support/result.h"

// What the lanes of a vector loop share: decided once, before any code is made.

namespace tokamak::cpu {

// How a value differs between the lanes of the vector loop around it.
enum class LaneKind : uint8_t {
  kUniform,  // not at all
  kAffine,   // an index: base + step * lane
  kVarying,
};

struct LaneFact {
  LaneKind kind = LaneKind::kUniform;
  int64_t step = 0;           // of an affine index, not 0
  int64_t base_multiple = 1;  // of an affine index: its base is a multiple of this; 0: it is 0
  int64_t lanes = 0;          // of the vector loop that an affine index runs with
};

// Lanes that one vector loop may have: code grows with them.
inline constexpr int64_t kMaxLanes = 128;

class Lanes {
 public:
  // TK4001 when the kernel is not in the form that the CPU backend compiles.
  static Result<Lanes> Of(const Kernel& kernel);

  const LaneFact& of(ValueId id) const { return facts_[static_cast<size_t>(id)]; }
  bool IsUniform(ValueId id) const { return of(id).kind == LaneKind::kUniform; }
  // An array of registers of which each lane has its own: the number of lanes, else 0.
  int64_t LanesOf(ArrayId id) const { return laned_[static_cast<size_t>(id)]; }
  // Every index that is not uniform fits 32 bits.
  bool narrow_index() const { return narrow_index_; }

 private:
  struct Site {  // a statement, with what is around it
    const Stmt* stmt = nullptr;
    int64_t lanes = 0;                // of the vector loop around it; 0: none
    std::vector<ValueId> deciders{};  // what decides whether a lane comes here
  };
  explicit Lanes(const Kernel& kernel) : kernel_(&kernel) {}
  Status Collect(const Block& block, const Site& around);
  Status CollectFor(const Stmt& stmt, Site around);
  void FindFacts();
  LaneFact FactOf(ValueId id);
  LaneFact FactOfIndex(const ScalarNode& node);
  LaneFact FactOfDivision(const ScalarNode& node, const LaneFact& x);
  bool SpreadLanes();
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

// The loop whose range a launch divides, or null: the kernel's only outermost statement, when that
// is a grid loop.
const Loop* GridOf(const Kernel& kernel);

}  // namespace tokamak::cpu
