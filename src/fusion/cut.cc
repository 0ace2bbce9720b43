#include "fusion/cut.h"

#include <algorithm>

#include "fusion/regions.h"
#include "fusion/values.h"
#include "gen/library/contraction.h"
#include "gen/library/sorts.h"

namespace tokamak {
namespace {

class CutBuilder {
 public:
  CutBuilder(KernelMemo& kernels, DecisionLog& log)
      : kernels_(kernels),
        machine_(kernels.machine()),
        log_(log),
        positions_(kernels.computation()),
        plan_(kernels.computation()) {
    size_t next = 0;
    for (const Instr* instr : OrderFromRoot(kernels.computation())) positions_[instr] = next++;
  }

  ComputationPlan Run(const Cut& cut) {
    std::vector<int> kernel_of_region;
    for (const CutRegion& cut_region : cut.regions) {
      int number = Build(cut_region);
      kernel_of_region.push_back(number);
      if (number < 0) SplitGroup(cut_region);
    }
    for (const std::vector<int>& group : cut.launch_groups) AddHorizontal(group, kernel_of_region);
    return std::move(plan_);
  }

 private:
  // The number of its kernel; -1 if it has none.
  int Build(const CutRegion& cut_region) {
    FusedRegion region = OrderedRegion(cut_region.instrs, cut_region.roots, positions_);
    GeneratorKind kind = ShapeOf(region, machine_).kind;
    std::shared_ptr<const MadeKernel> made = kernels_.Make(region, kind);
    if (!made->outcome.built) {
      Reject(*region.roots[0], cut_region.instrs.size() == 1, made->outcome.why_not);
      return -1;
    }
    BuiltKernel built = KernelFor(region, *made, NameOfKernel(region));
    AddKernel(plan_, {std::move(region), kind, std::move(built)});
    return static_cast<int>(plan_.kernels.size()) - 1;
  }

  // One kernel per instruction of a region that no generator supports.
  void SplitGroup(const CutRegion& cut_region) {
    for (const Instr* instr : cut_region.instrs) {
      bool is_root = std::find(cut_region.roots.begin(), cut_region.roots.end(), instr) !=
                     cut_region.roots.end();
      if (IsKernelless(*instr) || IsMemoryConstant(*instr) || plan_.kernel_of[instr] >= 0) continue;
      if (!is_root && (IsImmediate(*instr) || IsAlias(*instr))) continue;
      if (IsForLibrary(*instr, machine_) || IsForRuntime(*instr, machine_)) continue;
      plan_.why_host[instr] = WhyNoKernel(*instr, machine_);
      if (plan_.why_host[instr].empty()) Build({{instr}, {instr}});
    }
  }

  void Reject(const Instr& root, bool single, const std::string& why) {
    log_.Add({.pass = "fuse",
              .rule = single ? "fusion.no-kernel" : "fusion.unsupported",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(root),
              .origins = root.origins(),
              .because = why});
    if (single) plan_.why_host[&root] = why;
  }

  void AddHorizontal(const std::vector<int>& regions, const std::vector<int>& kernel_of_region) {
    std::vector<int> group;
    for (int region : regions)
      if (int kernel = kernel_of_region[static_cast<size_t>(region)]; kernel >= 0)
        group.push_back(kernel);
    if (group.size() > 1) plan_.launch_groups.push_back(std::move(group));
  }

  KernelMemo& kernels_;
  const Machine& machine_;
  DecisionLog& log_;
  InstrMap<size_t> positions_;
  ComputationPlan plan_;
};

}  // namespace

Cut CutOf(const ComputationPlan& plan) {
  Cut cut;
  for (const PlannedKernel& kernel : plan.kernels)
    cut.regions.push_back(
        {kernel.region.instrs, kernel.region.roots, std::string(NameOf(kernel.kind))});
  cut.launch_groups = plan.launch_groups;
  return cut;
}

void AddKernel(ComputationPlan& plan, PlannedKernel planned) {
  auto number = static_cast<int>(plan.kernels.size());
  for (const Instr* instr : planned.region.instrs)
    if (plan.kernel_of[instr] < 0) plan.inside[instr] = true;
  for (const Instr* root : planned.region.roots) {
    plan.kernel_of[root] = number;
    plan.inside[root] = false;
  }
  plan.kernels.push_back(std::move(planned));
}

ComputationPlan BuildCut(const Cut& cut, KernelMemo& kernels, DecisionLog& log) {
  return CutBuilder(kernels, log).Run(cut);
}

}  // namespace tokamak
