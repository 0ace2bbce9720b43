#pragma once

// A kernel partition says which instructions form one region and which regions share a launch. It
// is the common in-memory form of finished decisions: of plans that are read from disk
// (serialized_plan.h), of fusions that passes have formed (xla_rules/partition.h) and of the
// planners. BuildKernels turns it into a plan with kernels.
//
// It is not a partition in the strict sense: regions may overlap, and instructions outside kernels
// are in no region.
//
// A CandidatePlan (candidate_plan.h), in contrast, is a plan under construction: it holds groups of
// roots and derives the regions, so that moves can change it.

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

class DecisionLog;
class KernelCache;
struct ComputationPlan;

// Instructions that should run as one kernel. An instruction may be in several regions.
struct PartitionRegion {
  std::vector<const Instr*> instrs;  // in any order, each once
  std::vector<const Instr*> roots;   // the values that the kernel stores
  // Name of the kernel generator; empty if unknown. Informative only: BuildKernels chooses the
  // generator.
  std::string generator = {};
};

// The regions of one computation. An instruction in no region is outside kernels, or an
// immediate (plan.h).
struct KernelPartition {
  std::vector<PartitionRegion> regions;
  // Indices into `regions` of those that share one launch; as in ComputationPlan.
  std::vector<std::vector<int>> launch_groups;
};

// The partitions of the computations of a module.
using ModulePartition = std::unordered_map<const Computation*, KernelPartition>;

// The partition that corresponds to a plan.
KernelPartition PartitionOf(const ComputationPlan& plan);

// Builds the kernels of a partition of `cache.computation()`. If no generator supports a region, it
// is split into one kernel per instruction; an instruction without a kernel becomes a host step.
// Both are logged.
ComputationPlan BuildKernels(const KernelPartition& partition, KernelCache& cache,
                             DecisionLog& log);

}  // namespace tokamak
