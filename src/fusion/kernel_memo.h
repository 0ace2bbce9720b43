#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "cost/machine.h"
#include "fusion/region_hash.h"
#include "gen/generator.h"

namespace tokamak {

// The kernel of a region, or the reason why it has none.
struct MadeKernel {
  FusedRegion region;
  GeneratorKind kind{};
  BuildOutcome outcome;
};

// The kernel `made`, with the arguments of `region`, which is equal instruction by instruction.
BuiltKernel KernelFor(const FusedRegion& region, const MadeKernel& made, std::string name);

// Builds the kernels of a computation's plans. Regions that are equal instruction by instruction
// share one build: of 12 equal layers, one is built. Kernels that the planner builds only to
// estimate their cost do not go through this cache: few of them are requested again, and all would
// be kept. RegionCosts keeps their costs instead.
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
  std::shared_ptr<const MadeKernel> Make(const FusedRegion& region, GeneratorKind kind);

 private:
  bool IsSame(const FusedRegion& made, const FusedRegion& region);

  const Computation& computation_;
  const Machine& machine_;
  FusedRegionHasher hasher_;
  std::unordered_multimap<uint64_t, std::shared_ptr<const MadeKernel>> made_;
  size_t values_ = 0;              // kernel IR values of all cached kernels
  Numbering of_made_, of_region_;  // scratch of IsSame
};

}  // namespace tokamak
