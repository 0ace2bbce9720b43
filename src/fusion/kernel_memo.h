#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "cost/machine.h"
#include "fusion/region_hash.h"
#include "gen/generator.h"

namespace tokamak {

// A kernel that was made of a region, or why there is none.
struct MadeKernel {
  Region region;
  RegionKind kind{};
  BuildOutcome outcome;
};

// The same kernel for a region that is the same instruction by instruction.
BuiltKernel KernelFor(const Region& region, const MadeKernel& made, std::string name);

// Makes kernels of the regions of a computation. What was made of one is taken for all that are the
// same instruction by instruction: of 12 equal layers one is made, and what a planner has priced
// need not be made once more.
class KernelMemo {
 public:
  KernelMemo(const Computation& computation, const Machine& machine)
      : computation_(computation),
        machine_(machine),
        hasher_(computation),
        of_made_(computation),
        of_region_(computation) {}

  const Computation& computation() const { return computation_; }
  const Machine& machine() const { return machine_; }
  RegionHasher& hasher() { return hasher_; }
  // Never null.
  std::shared_ptr<const MadeKernel> Make(const Region& region, RegionKind kind);

 private:
  bool IsSame(const Region& made, const Region& region);

  const Computation& computation_;
  const Machine& machine_;
  RegionHasher hasher_;
  std::unordered_multimap<uint64_t, std::shared_ptr<const MadeKernel>> made_;
  size_t values_ = 0;              // of all kernels that are kept
  Numbering of_made_, of_region_;  // of the two that are compared
};

}  // namespace tokamak
