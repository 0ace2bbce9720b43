#pragma once

// A cache of built kernels. Three caches answer questions about the kernel of a region:
//
//   KernelCache              keeps the kernels of plans. Key: the regions are equal instruction by
//                            instruction, which is verified, since the kernels are executed.
//   RegionCosts              keeps estimates, and the modeled costs of kernels that are built only
//                            to evaluate moves. The search needs the costs; the greedy planner only
//                            needs to know whether the kernel exists. Key: the structural hash.
//   KernelFeasibilityCache   keeps whether a kernel exists, for the baseline planner
//                            (baseline_regions.h). Key: the structural hash and the generator.

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "cost/machine.h"
#include "fusion/extensions.h"
#include "fusion/region_hash.h"
#include "gen/generator.h"

namespace tokamak {

// The kernel of a region, or the reason why it has none.
struct KernelBuildResult {
  FusedRegion region;
  GeneratorKind kind{};
  std::optional<Schedule> requested;  // unset: the preferred schedule
  BuildOutcome outcome;
};

// Copies a kernel that was built for an identical region, and binds it to the inputs and roots of
// `region`.
BuiltKernel RebindKernel(const FusedRegion& region, const KernelBuildResult& result,
                         std::string name);

// Builds the kernels of a computation's plans. Regions that are equal instruction by instruction
// share one build: the kernels of 12 identical layers are built once. Kernels that are built only
// to evaluate moves do not go through this cache: few are requested again, so they would only fill
// it.
class KernelCache {
 public:
  // `extensions`: generators of plugins; may be null.
  KernelCache(const Computation& computation, const Machine& machine,
              const PlannerExtensions* extensions = nullptr)
      : computation_(computation),
        machine_(machine),
        extensions_(extensions),
        hasher_(computation),
        cached_numbers_(computation),
        requested_numbers_(computation) {}

  const Computation& computation() const { return computation_; }
  const Machine& machine() const { return machine_; }
  FusedRegionHasher& hasher() { return hasher_; }
  // Builds the kernel with the requested schedule; with the preferred one if that does not fit or
  // is unset. Never null. `outcome` of the result holds the kernel or the reason why there is none.
  std::shared_ptr<const KernelBuildResult> BuildOrGet(
      const FusedRegion& region, GeneratorKind kind,
      std::optional<Schedule> requested = std::nullopt);

 private:
  BuildOutcome Build(const FusedRegion& region, GeneratorKind kind,
                     const std::optional<Schedule>& requested) const;
  // Whether the regions have the same instructions in the same order, with corresponding operands,
  // and the same roots.
  bool IsSame(const FusedRegion& cached, const FusedRegion& requested);

  const Computation& computation_;
  const Machine& machine_;
  const PlannerExtensions* extensions_;
  FusedRegionHasher hasher_;
  std::unordered_multimap<uint64_t, std::shared_ptr<const KernelBuildResult>> results_;
  // Number of kernel IR values of all results. Above kMaxCachedValues (kernel_cache.cc), new
  // results are not kept.
  size_t cached_ir_values_ = 0;
  Numbering cached_numbers_, requested_numbers_;  // scratch of IsSame
};

}  // namespace tokamak
