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
        places_(kernels.computation()),
        plan_(kernels.computation()) {
    size_t next = 0;
    for (const Instr* instr : OrderFromRoot(kernels.computation())) places_[instr] = next++;
  }

  ComputationPlan Run(const Cut& cut) {
    std::vector<int> kernel_of_region;
    for (const CutRegion& given : cut.regions) {
      int number = Build(given);
      kernel_of_region.push_back(number);
      if (number < 0) TakeApart(given);
    }
    for (const std::vector<int>& pack : cut.packs) AddPack(pack, kernel_of_region);
    return std::move(plan_);
  }

 private:
  // The number of its kernel, or -1.
  int Build(const CutRegion& given) {
    Region region = OrderedRegion(given.instrs, given.roots, places_);
    RegionKind kind = ShapeOf(region, machine_).kind;
    std::shared_ptr<const MadeKernel> made = kernels_.Make(region, kind);
    if (!made->outcome.built) {
      Refuse(*region.roots[0], given.instrs.size() == 1, made->outcome.why_not);
      return -1;
    }
    BuiltKernel built = KernelFor(region, *made, NameOfKernel(region));
    AddKernel(plan_, {std::move(region), kind, std::move(built)});
    return static_cast<int>(plan_.kernels.size()) - 1;
  }

  void TakeApart(const CutRegion& given) {
    for (const Instr* instr : given.instrs) {
      bool is_root = std::find(given.roots.begin(), given.roots.end(), instr) != given.roots.end();
      if (IsKernelless(*instr) || IsMemoryConstant(*instr) || plan_.kernel_of[instr] >= 0) continue;
      if (!is_root && (IsImmediate(*instr) || IsAlias(*instr))) continue;
      if (IsForLibrary(*instr, machine_) || IsForRuntime(*instr, machine_)) continue;
      plan_.why_host[instr] = WhyNoKernel(*instr, machine_);
      if (plan_.why_host[instr].empty()) Build({{instr}, {instr}});
    }
  }

  void Refuse(const Instr& root, bool single, const std::string& why) {
    log_.Add({.pass = "fuse",
              .rule = single ? "fusion.no-kernel" : "fusion.taken-apart",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(root),
              .origins = root.origins(),
              .because = why});
    if (single) plan_.why_host[&root] = why;
  }

  void AddPack(const std::vector<int>& regions, const std::vector<int>& kernel_of_region) {
    std::vector<int> pack;
    for (int region : regions)
      if (int kernel = kernel_of_region[static_cast<size_t>(region)]; kernel >= 0)
        pack.push_back(kernel);
    if (pack.size() > 1) plan_.packs.push_back(std::move(pack));
  }

  KernelMemo& kernels_;
  const Machine& machine_;
  DecisionLog& log_;
  InstrMap<size_t> places_;
  ComputationPlan plan_;
};

}  // namespace

Cut CutOf(const ComputationPlan& plan) {
  Cut cut;
  for (const PlannedKernel& kernel : plan.kernels)
    cut.regions.push_back(
        {kernel.region.instrs, kernel.region.roots, std::string(NameOf(kernel.kind))});
  cut.packs = plan.packs;
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
