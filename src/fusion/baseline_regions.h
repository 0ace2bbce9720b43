#pragma once

// Regions of the baseline planner (baseline_planner.h) while they grow. The planner visits the
// instructions from the last to the first and asks for each whether it may join the regions of its
// users.

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cost/machine.h"
#include "fusion/generator_choice.h"
#include "fusion/region_hash.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

// A region that instructions may still join.
struct GrowingRegion {
  std::vector<const Instr*> instrs;  // users before operands
  std::vector<const Instr*> roots;
  GeneratorChoice choice;
  // Operations per element, summed over the instructions, which kMaxOpsPerElement limits
  // (region_limits.h). Not only floating-point operations.
  int64_t ops_per_element = 0;
  // Total operand count of all instructions: an upper bound on the inputs that is cheap to
  // maintain.
  int64_t operand_count = 0;
  // How often the kernel evaluates an instruction, as far as its users in the region determine it.
  struct Evaluations {
    // Upper bound on the distinct indices of the instruction that are evaluated for one element of
    // the domain (the elements over which the kernel's loops iterate).
    int64_t indices_per_element = 1;
    // It is also evaluated where its value is unused: a concatenation or pad evaluates all its
    // operands.
    bool has_unused = false;
    // How often each element is evaluated because the tiled generator for contractions
    // (GeneratorKind::kContract) packs it into a panel of a dot's operand: once per panel that
    // contains it.
    int64_t panel_repetitions = 1;
    // It is evaluated for every multiply-add of a dot that another generator computes, which packs
    // no panels.
    bool per_multiply_add = false;
  };
  std::unordered_map<const Instr*, Evaluations> evaluations;  // of each of `instrs`
};

// Finds out by building whether a region has a kernel; once per region structure and generator. For
// the baseline planner; kernel_cache.h compares this cache with the others.
class KernelFeasibilityCache {
 public:
  KernelFeasibilityCache(const Computation& computation, const Machine& machine)
      : machine_(machine), hasher_(computation) {}
  // Why this generator builds no kernel for the region; empty if it builds one.
  const std::string& WhyNoKernel(const FusedRegion& region, GeneratorKind kind);

 private:
  const Machine& machine_;
  FusedRegionHasher hasher_;
  std::unordered_map<uint64_t, std::string> reasons_;  // by hash of region and generator
};

// The regions of a computation. An instruction may be in several. Regions are numbered in the order
// in which they were started.
class BaselineRegions {
 public:
  // `topological_order`: all instructions, operands before users.
  BaselineRegions(const Computation& computation, const std::vector<Instr*>& topological_order,
                  const Machine& machine, KernelFeasibilityCache& feasibility);

  // Whether the value needs memory in any case, as CandidatePlan::MustBeStored. A user that is in
  // no region counts as outside kernels, so call it when all users have been visited.
  bool MustBeStored(const Instr& instr) const;
  // The regions that contain its users, each once.
  std::vector<int> ConsumerRegions(const Instr& instr) const;

  // Why the region may not compute the instruction as an internal value; empty if it may.
  // `region_count`: the number of regions, including this one, that would compute it.
  std::string WhyNotInternal(const Instr& instr, int region, size_t region_count) const;
  // Why the region, which uses the instruction, may not also store it; empty if it may.
  std::string WhyNotRoot(const Instr& instr, int region) const;
  // Why a region that does not use the instruction may not compute and store it (a multi-output
  // sibling); empty if it may. A reduction and a root of the region must reduce the same dimensions
  // of the same shape, and must be computed from a common array. An elementwise value must have the
  // shape of the region's roots, and an expensive producer in common with them
  // (ExpensiveProducers).
  std::string WhyNotSiblingRoot(const Instr& instr, int region) const;

  // Starts a region, with number size(), whose root is the instruction.
  void StartRegion(const Instr& root);
  // Adds an internal value, or another root, to a region. Check the reasons above first.
  void Add(const Instr& instr, int region);
  void AddRoot(const Instr& instr, int region);

  size_t size() const { return regions_.size(); }
  const GrowingRegion& region(int number) const { return regions_[static_cast<size_t>(number)]; }
  // Whether a region computes the instruction, as a root or an internal value.
  bool IsInAnyRegion(const Instr& instr) const { return !regions_of_[&instr].empty(); }
  // The finished region: instructions in topological order, with inputs.
  FusedRegion Finish(int region) const;

 private:
  // A copy of the region with the instruction added.
  GrowingRegion CopyWith(const Instr& instr, int region) const;
  void Grow(GrowingRegion& growing, const Instr& instr,
            GrowingRegion::Evaluations evaluations) const;
  // Whether the region would read more than kMaxInputs arrays (region_limits.h). The check is
  // skipped for small regions unless the instruction is copied into several.
  bool ExceedsInputLimit(const Instr& instr, int region, bool is_copied) const;
  // How often the region would evaluate the instruction.
  GrowingRegion::Evaluations EvaluationsIn(const Instr& instr, int region) const;
  // WhyNotInternal for a reduce, dot or scan; also for a reduce-window with several results.
  std::string WhyNotInternalReduceDotOrScan(const Instr& instr, int region) const;
  // WhyNotSiblingRoot for an elementwise instruction: the region must have GeneratorKind::kLoop.
  std::string WhyNotSiblingOfLoop(const Instr& instr, int region) const;
  // The expensive elementwise instructions (more than 2 operations per element) with
  // `element_count` elements from which the values in the worklist are computed. Visits at most 256
  // instructions.
  std::vector<const Instr*> ExpensiveProducers(std::vector<const Instr*> worklist,
                                               int64_t element_count) const;
  // Whether the region depends on the instruction, directly or through users in other regions.
  bool HasPathTo(const Instr& from, int region) const;
  // An upper bound on the position of any instruction on which the region depends, directly or
  // through other regions.
  size_t LastDependencyPosition(int region) const;
  // Whether the region would depend on itself if it stored the instruction: a user of the
  // instruction outside the region leads back to it.
  bool WouldMakeCycle(const Instr& instr, int region) const;
  // For a region with a contraction, whether its kernel can compute an operand of the contraction
  // together with the row reductions that the operand depends on (such as a softmax before a dot).
  //
  // Without `is_stored`, false if an instruction outside the kernel uses one of those reductions,
  // or another value that is not cheap to recompute. With `is_stored`, the kernel also stores the
  // operand, and it loads such values instead of computing them.
  bool CanComputeOperandWithRowReductions(const Instr& operand, int region, bool is_stored) const;
  // Why no kernel exists for the region with another root; empty if one does.
  std::string WhyBuildFails(GrowingRegion extended, const Instr& root) const;
  FusedRegion FinishGrowing(const GrowingRegion& growing) const;

  const Machine& machine_;
  KernelFeasibilityCache& feasibility_;
  std::vector<GrowingRegion> regions_;
  // Per region: the largest position of its instructions, which is that of the root with which it
  // started, and the smallest position of its roots.
  struct Bounds {
    size_t last_position, earliest_root_position;
  };
  std::vector<Bounds> bounds_;
  InstrMap<std::vector<int>> regions_of_;  // by instruction: the regions that compute it
  InstrMap<size_t> positions_;             // in the topological order
  // Id of the last walk that visited an instruction or region.
  mutable InstrMap<uint32_t> last_visits_;
  mutable std::vector<uint32_t> last_region_visits_;
  mutable uint32_t walk_id_ = 0;
};

}  // namespace tokamak
