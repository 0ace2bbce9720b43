#pragma once

// A serializable plan: everything a compilation needs to build the same kernels without a search.
// Its JSON form is the only format in which users, tuners and caches exchange plans.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/kernel_partition.h"
#include "fusion/plan.h"
#include "ir/ir.h"
#include "rewrite/pipeline.h"
#include "support/result.h"

namespace tokamak {

struct SerializedPlan {
  // A kernel, as the names of its instructions and of those among them that it stores (roots).
  struct Kernel {
    std::string generator;  // informative only: BuildKernels chooses the generator again
    std::vector<std::string> instrs, roots;
  };
  // A computation that is planned separately: the entry, a loop body or a branch.
  struct ComputationEntry {
    std::string computation;
    std::vector<Kernel> kernels;
    std::vector<std::vector<int>> launch_groups;  // indices into `kernels`; as in ComputationPlan
  };

  std::string target;         // "host", "h200"
  std::string module_digest;  // StructuralDigest of the module, after the passes
  // The options that determine the module after the passes: the pipeline, the passes that are
  // omitted from it and from the target's own pipeline, the fusion mode, and whether passes must
  // keep every bit of the results (CompileOptions::strict). The fusion mode matters because
  // kXlaPasses adds passes, and because some passes run only if a planner follows
  // (PassTarget::is_planned).
  Pipeline passes;
  std::vector<Pass> skip_passes;
  FusionMode fusion_mode = FusionMode::kSearch;
  bool strict = false;
  std::vector<ComputationEntry> computations;
};

// A digest of a module's structure. A plan applies only to a module with the same digest.
std::string StructuralDigest(const Module& module);

// Adds the partitions of a module to the plan, with instructions by name.
void AddPartitions(SerializedPlan& plan, const Module& module, const ModulePartition& partitions);
// The inverse of AddPartitions. Returns an error (TK6107, invalid option value) if the plan belongs
// to another program.
Result<ModulePartition> PartitionsOf(const SerializedPlan& plan, const Module& module);

std::string ToJson(const SerializedPlan& plan);
// Returns an error (TK6107) that names `file` if the text is not a plan.
Result<SerializedPlan> PlanFromJson(std::string_view text, const std::string& file);

}  // namespace tokamak
