#include "fusion/cut.h"

#include <algorithm>

#include "fusion/contraction.h"
#include "fusion/regions.h"
#include "fusion/sorts.h"
#include "fusion/values.h"

namespace tokamak {
namespace {

class CutBuilder {
 public:
  CutBuilder(const Computation& computation, const Machine& machine, DecisionLog& log)
      : machine_(machine), log_(log), places_(computation), plan_(computation) {
    size_t next = 0;
    for (const Instr* instr : OrderFromRoot(computation)) places_[instr] = next++;
  }

  ComputationPlan Run(const Cut& cut) {
    std::vector<int> kernel_of_region;
    for (const CutRegion& given : cut.regions) {
      int number = Build(given);
      kernel_of_region.push_back(number);
      if (number < 0) TakeApart(given);
    }
    for (const std::vector<int>& pack : cut.packs) AddPack(pack, kernel_of_region);
    for (const PlannedKernel& planned : plan_.kernels)
      for (const Instr* instr : planned.region.instrs)
        plan_.inside[instr] = plan_.kernel_of[instr] < 0;
    return std::move(plan_);
  }

 private:
  // The number of its kernel, or -1.
  int Build(const CutRegion& given) {
    Region region = OrderedRegion(given.instrs, given.roots, places_);
    RegionKind kind = ShapeOf(region, machine_).kind;
    BuildOutcome outcome = BuildRegion(region, kind, machine_, NameOfKernel(region));
    if (!outcome.built) {
      Refuse(*region.roots[0], given.instrs.size() == 1, outcome.why_not);
      return -1;
    }
    int number = static_cast<int>(plan_.kernels.size());
    for (const Instr* root : region.roots) plan_.kernel_of[root] = number;
    plan_.kernels.push_back({std::move(region), kind, std::move(*outcome.built)});
    return number;
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

  const Machine& machine_;
  DecisionLog& log_;
  InstrMap<size_t> places_;
  ComputationPlan plan_;
};

}  // namespace

ComputationPlan BuildCut(const Computation& computation, const Cut& cut, const Machine& machine,
                         DecisionLog& log) {
  return CutBuilder(computation, machine, log).Run(cut);
}

}  // namespace tokamak
