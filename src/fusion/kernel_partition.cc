#include "fusion/kernel_partition.h"

#include <algorithm>

#include "fusion/generator_choice.h"
#include "fusion/instr_predicates.h"
#include "fusion/kernel_cache.h"
#include "fusion/make_region.h"
#include "fusion/plan.h"
#include "gen/library/dot.h"
#include "gen/library/sorts.h"
#include "kernel/async.h"

namespace tokamak {
namespace {

class PartitionKernelBuilder {
 public:
  PartitionKernelBuilder(KernelCache& kernel_cache, DecisionLog& log)
      : kernel_cache_(kernel_cache),
        machine_(kernel_cache.machine()),
        log_(log),
        positions_(kernel_cache.computation()),
        plan_(kernel_cache.computation()) {
    size_t next = 0;
    for (const Instr* instr : OrderFromRoot(kernel_cache.computation())) positions_[instr] = next++;
  }

  ComputationPlan Run(const KernelPartition& partition) {
    std::vector<int> kernel_of_region;
    for (const PartitionRegion& partition_region : partition.regions) {
      int number = Build(partition_region);
      kernel_of_region.push_back(number);
      if (number < 0) SplitGroup(partition_region);
    }
    for (const std::vector<int>& group : partition.launch_groups)
      AddHorizontal(group, kernel_of_region);
    return std::move(plan_);
  }

 private:
  // The number of its kernel; -1 if it has none.
  int Build(const PartitionRegion& partition_region) {
    FusedRegion region = MakeRegion(partition_region.instrs, partition_region.roots, positions_);
    GeneratorKind kind = ChooseGenerator(region, machine_).kind;
    std::shared_ptr<const KernelBuildResult> result = kernel_cache_.BuildOrGet(region, kind);
    if (!result->outcome.built) {
      Reject(*region.roots[0], partition_region.instrs.size() == 1, result->outcome.why_not);
      return -1;
    }
    BuiltKernel built = RebindKernel(region, *result, KernelNameOf(region));
    AddKernel(plan_, {std::move(region), kind, std::move(built)});
    return static_cast<int>(plan_.kernels.size()) - 1;
  }

  // One kernel per instruction of a region that no generator supports.
  void SplitGroup(const PartitionRegion& partition_region) {
    for (const Instr* instr : partition_region.instrs) {
      bool is_root = std::find(partition_region.roots.begin(), partition_region.roots.end(),
                               instr) != partition_region.roots.end();
      if (IsNeverInKernel(*instr) || IsMemoryConstant(*instr) || plan_.kernel_of[instr] >= 0)
        continue;
      if (!is_root && (IsImmediate(*instr) || IsAlias(*instr))) continue;
      if (UsesLibrary(*instr, machine_) || UsesRuntimeFunction(*instr, machine_)) continue;
      plan_.host_step_reason[instr] = WhyNoKernel(*instr, machine_);
      if (plan_.host_step_reason[instr].empty()) Build({{instr}, {instr}});
    }
  }

  void Reject(const Instr& root, bool single, const std::string& why) {
    log_.Add({.pass = "fuse",
              .rule = single ? "fusion.no-kernel" : "fusion.unsupported",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(root),
              .origins = root.origins(),
              .because = why});
    if (single) plan_.host_step_reason[&root] = why;
  }

  void AddHorizontal(const std::vector<int>& regions, const std::vector<int>& kernel_of_region) {
    std::vector<int> group;
    for (int region : regions)
      if (int kernel = kernel_of_region[static_cast<size_t>(region)];
          kernel >= 0 && !UsesAsync(plan_.kernels[static_cast<size_t>(kernel)].built.kernel))
        group.push_back(kernel);
    if (group.size() > 1) plan_.launch_groups.push_back(std::move(group));
  }

  KernelCache& kernel_cache_;
  const Machine& machine_;
  DecisionLog& log_;
  InstrMap<size_t> positions_;
  ComputationPlan plan_;
};

}  // namespace

KernelPartition PartitionOf(const ComputationPlan& plan) {
  KernelPartition partition;
  for (const PlannedKernel& kernel : plan.kernels)
    partition.regions.push_back(
        {kernel.region.instrs, kernel.region.roots, std::string(NameOf(kernel.kind))});
  partition.launch_groups = plan.launch_groups;
  return partition;
}

ComputationPlan BuildKernels(const KernelPartition& partition, KernelCache& kernel_cache,
                             DecisionLog& log) {
  return PartitionKernelBuilder(kernel_cache, log).Run(partition);
}

}  // namespace tokamak
