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

// Makes the kernels of a computation's plans. What was made of one region is taken for all that are
// the same instruction by instruction: of 12 equal layers one is made. Not for kernels that are
// made for their prices: few of those are ever asked for again, and all would be kept.
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
