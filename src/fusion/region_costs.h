#pragma once

// Costs of regions for the planner. The cost of a candidate plan is the sum of the costs of its
// regions. There are two levels: Estimate() counts operations and bytes per instruction (summary.h)
// and builds nothing; Of() builds the kernel and applies the cost model to its IR. Both are cached
// by the structural hash of the region, so regions that compute the same function of inputs of the
// same shapes share one evaluation.

#include <optional>
#include <string>
#include <unordered_map>

#include "cost/work.h"
#include "fusion/region_hash.h"
#include "fusion/summary.h"
#include "gen/accepts_rows.h"
#include "gen/generator.h"

namespace tokamak {

// The cost of a region as one kernel, or the reason why it has no kernel.
struct RegionCost {
  std::string why_not;  // empty if a kernel exists
  CostEstimate estimate;
  GeneratorKind kind{};

  bool IsLegal() const { return why_not.empty(); }
};

class RegionCosts {
 public:
  RegionCosts(const Computation& computation, const Machine& machine)
      : machine_(machine), hasher_(computation), summarizer_(computation, machine) {}

  FusedRegionHasher& hasher() { return hasher_; }
  // Rough cost in microseconds; builds no kernel. Without a hash it is not cached.
  double Estimate(const FusedRegion& region) {
    return EstimateCost(summarizer_.Of(region), machine_).total();
  }
  double Estimate(const FusedRegion& region, uint64_t hash);
  // The cost of the region's kernel, which is built on the first request.
  const RegionCost& Of(const FusedRegion& region) { return Of(region, hasher_.Of(region)); }
  const RegionCost& Of(const FusedRegion& region, uint64_t hash);
  // Records the cost of a kernel that the caller has built.
  void Learn(uint64_t hash, GeneratorKind kind, const BuiltKernel& built);
  // Whether all regions have kernels. A kernel is built only if shapes cannot decide: elementwise
  // loops are always supported, and AcceptsRows and AcceptsContract decide most row reductions and
  // contractions.
  bool HaveKernels(const std::vector<FusedRegion>& regions);
  // Like HaveKernels, but false for contractions with several roots: their estimates are
  // unreliable.
  bool HaveSimpleKernels(const std::vector<FusedRegion>& regions,
                         const std::vector<FusedRegionKey>& keys);
  const Machine& machine() const { return machine_; }
  size_t kernels_built() const { return built_; }
  // Work done to build kernels, which is proportional to time: the IR values of each kernel, or the
  // instructions of a region without one. The budget of the search is in this unit.
  size_t work_done() const { return work_; }

 private:
  struct Known {
    RegionCost estimate;
    std::optional<BuiltKernel> built;  // until Of() computes its cost
  };
  bool HasKernel(const FusedRegion& region, uint64_t hash, GeneratorKind kind);
  // Builds the kernel if it is not known; does not compute its cost.
  Known& Find(const FusedRegion& region, uint64_t hash);

  const Machine& machine_;
  FusedRegionHasher hasher_;
  Summarizer summarizer_;
  std::unordered_map<uint64_t, Known> known_;
  std::unordered_map<uint64_t, double> estimates_;
  std::unordered_map<uint64_t, Accepts> accepts_;  // answers for row reductions and contractions
  size_t built_ = 0, work_ = 0;
};

}  // namespace tokamak
