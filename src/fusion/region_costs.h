#pragma once

// Costs of regions for the planner, in microseconds. The cost of a candidate plan is the sum of the
// costs of its regions. There are two levels (plan.h). Both apply the cost model (EstimateCost) to
// counts of operations and bytes: Estimate() counts them per instruction (region_work.h) and builds
// nothing; ModeledCostOf() builds the kernel and counts them in its IR.
//
// Both can be cached by the structural hash of the region, so regions with the same instructions on
// inputs of the same shapes share one evaluation. Equal hashes are taken for equal regions: a
// collision (64 bits) would give a region a wrong cost, but never a wrong kernel.

#include <optional>
#include <string>
#include <unordered_map>

#include "cost/work.h"
#include "fusion/chain_slices.h"
#include "fusion/extensions.h"
#include "fusion/region_hash.h"
#include "fusion/region_work.h"
#include "gen/accepts_rows.h"
#include "gen/generator.h"

namespace tokamak {

// The modeled cost of a region as one kernel, or the reason why it has no kernel. The type
// CostEstimate does not mean an estimate in the sense of plan.h: it is the result of the cost model
// on both levels.
struct RegionCost {
  std::string why_not;  // why no kernel exists; empty if one does
  CostEstimate modeled;
  GeneratorKind kind{};  // the kernel generator
  size_t values = 0;     // of the kernel IR; 0 if it has not been built
  double registers = 0;  // per thread; 0 if it has not been built

  bool HasKernel() const { return why_not.empty(); }
};

// The effort of a build, as RegionCosts::build_effort counts it.
size_t BuildEffortOf(const BuildOutcome& outcome, const FusedRegion& region);

class RegionCosts {
 public:
  // `extensions`: generators and the cost hook of plugins; may be null.
  RegionCosts(const Computation& computation, const Machine& machine,
              const PlannerExtensions* extensions = nullptr)
      : machine_(machine),
        extensions_(extensions),
        hasher_(computation),
        work_estimator_(computation, machine),
        chain_slices_(machine) {}

  FusedRegionHasher& hasher() { return hasher_; }
  ChainSlices& chain_slices() { return chain_slices_; }
  // The estimate in microseconds; builds no kernel. This overload does not cache it: computing it
  // takes less time than the hash.
  double Estimate(const FusedRegion& region) {
    return EstimateCost(work_estimator_.EstimateWork(region), machine_).total();
  }
  // The estimate, cached by the structural hash of the region.
  double Estimate(const FusedRegion& region, uint64_t hash);
  // The modeled cost of the region's kernel, which is built on the first request.
  const RegionCost& ModeledCostOf(const FusedRegion& region) {
    return ModeledCostOf(region, hasher_.HashOf(region));
  }
  const RegionCost& ModeledCostOf(const FusedRegion& region, uint64_t hash);
  // What is known without building a kernel: the modeled cost, or the reason why shapes rule a
  // kernel out; null if the kernel must be built to know.
  const RegionCost* FindCost(const FusedRegion& region, uint64_t hash);
  // Adds the modeled cost of a kernel that the caller has built.
  void AddBuilt(const FusedRegion& region, uint64_t hash, GeneratorKind kind,
                const BuiltKernel& built);
  // Live registers per thread of the region's kernel, if it has been built; else 0.
  double EstimatedRegisters(const FusedRegion& region);
  // Whether all regions have kernels. A kernel is built only if the shape checks are inconclusive:
  // elementwise loops over one domain are always supported, and AcceptsRows and AcceptsContract
  // (gen/accepts_rows.h) decide most row reductions and contractions on CPUs.
  bool AllHaveKernels(const std::vector<FusedRegion>& regions);
  // Like AllHaveKernels, but false for contractions with several roots, whose estimates are
  // unreliable. For the greedy planner.
  bool AllHaveReliablyEstimatedKernels(const std::vector<FusedRegion>& regions,
                                       const std::vector<FusedRegionKey>& keys);
  const Machine& machine() const { return machine_; }
  size_t kernels_built() const { return kernels_built_; }
  // Effort spent on building kernels, roughly proportional to time: the number of IR values of all
  // built kernels. A failed build counts the instructions of its region. The budget of the search
  // is in this unit.
  size_t build_effort() const { return build_effort_; }

 private:
  struct CacheEntry {
    RegionCost cost;
    bool is_built = false;  // or building it failed. Otherwise only shapes have been checked
    // The kernel, if it has been built but its cost has not been computed yet; ModeledCostOf()
    // computes the cost and discards it.
    std::optional<BuiltKernel> not_yet_costed;
    // Row reductions and contractions on a CPU: whether the generator accepts the shapes. Set when
    // it is first needed.
    std::optional<Accepts> accepts;
  };
  bool HasKernel(const FusedRegion& region, uint64_t hash);
  // Checks the shapes on the first request.
  CacheEntry& FindOrCheck(const FusedRegion& region, uint64_t hash);
  // Does not compute the cost of a kernel that it builds.
  CacheEntry& FindOrBuild(const FusedRegion& region, uint64_t hash);

  // Offers the region to the generators of plugins, beside the kernel that was built, if any.
  void AskPlugins(const FusedRegion& region, CacheEntry& entry);
  void SetCost(const FusedRegion& region, const BuiltKernel& built, RegionCost& cost) const;

  const Machine& machine_;
  const PlannerExtensions* extensions_;
  FusedRegionHasher hasher_;
  RegionWorkEstimator work_estimator_;
  ChainSlices chain_slices_;
  std::unordered_map<uint64_t, CacheEntry> modeled_;
  std::unordered_map<uint64_t, double> estimates_;
  size_t kernels_built_ = 0, build_effort_ = 0;
};

}  // namespace tokamak
