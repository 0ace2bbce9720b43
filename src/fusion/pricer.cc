#include "fusion/pricer.h"

#include <algorithm>

#include "fusion/regions.h"
#include "fusion/values.h"
#include "gen/folds.h"
#include "gen/gpu/gpu.h"
#include "gen/roots.h"

namespace tokamak {
namespace {

// An update writes over what others must not read in the same kernel, but for the very slice that
// is written again.
std::string WhyNotUpdate(const Region& region, RegionKind kind, const Machine& machine) {
  bool on_cpu = !machine.is_gpu();
  bool by_element = kind == RegionKind::kLoop || (kind == RegionKind::kContract && on_cpu);
  for (const Instr* instr : region.instrs) {
    if (!IsUpdate(*instr)) continue;
    bool others = on_cpu && by_element && IsSliceUpdate(*instr);  // roots, beside it
    if ((region.roots.size() != 1 && !others) || std::ranges::count(region.roots, instr) == 0)
      return "an update is made in place";
    for (const Instr* reader : region.instrs) {
      bool same_slice = instr->op() == Op::kDynamicUpdateSlice && reader->op() == Op::kDynamicSlice;
      if (reader == instr || same_slice) continue;
      if (!by_element && kind != RegionKind::kScatter) return "an update in place folds nothing";
      for (const Instr* operand : reader->operands())
        if (operand == instr->operand(0)) return "it reads what the region overwrites";
    }
  }
  return "";
}

bool HasSeveralSizes(const Region& region) {
  if (region.roots.size() == 1) return false;
  return std::any_of(region.roots.begin(), region.roots.end(), [&](const Instr* root) {
    return ElementsOf(*root) != ElementsOf(*region.roots[0]);
  });
}

std::string WhyNotRoots(const Region& region, RegionKind kind, const Machine& machine) {
  if (region.roots.size() == 1) return "";
  for (const Instr* root : region.roots)
    if (root->shape().IsTuple()) return "what has several results stands alone";
  bool folds = std::all_of(region.roots.begin(), region.roots.end(),
                           [](const Instr* root) { return root->op() == Op::kReduce; });
  switch (kind) {
    case RegionKind::kLoop:
      if (!HasSeveralSizes(region)) return "";
      return machine.is_gpu() ? gpu::WhyNotStacked(region)
                              : "its roots have different numbers of elements";
    case RegionKind::kRows:
      return "";  // the generator knows
    case RegionKind::kContract:
      return machine.is_gpu() ? "it has one root" : "";  // on a CPU, the generator knows
    case RegionKind::kColumns:
      return folds ? "" : "only folds of the same places go together";
    default:
      return "it has one root";
  }
}

// Rows of a few elements each are no vectors, and a processor waits for each.
bool HasTinyRows(const Region& region) {
  constexpr int64_t kTiny = 4;
  return std::ranges::any_of(region.instrs, [](const Instr* instr) {
    return instr->op() == Op::kReduce && CountOf(*instr) > 1 &&
           CountOf(*instr->operand(0)) / CountOf(*instr) < kTiny;
  });
}

std::string WhyNotFolds(const Region& region, RegionKind kind, const Machine& machine) {
  Folds folds;
  if (kind == RegionKind::kColumns) return FindFolds(region, folds);
  bool contracts = std::any_of(region.instrs.begin(), region.instrs.end(),
                               [](const Instr* instr) { return instr->op() == Op::kDot; });
  if (kind != RegionKind::kRows) return "";
  if (!machine.is_gpu() && HasTinyRows(region)) return "its rows are folded sooner side by side";
  return contracts ? "a contraction and rows do not go together" : "";
}

// What no generator takes, as far as is known without asking one.
std::string WhyNot(const Region& region, RegionKind kind, const Machine& machine) {
  if (std::string why = WhyNotSize(region); !why.empty()) return why;
  if (region.instrs.size() > 1)
    for (const Instr* instr : region.instrs)
      if (instr->op() == Op::kSort && !(machine.is_gpu() && gpu::TakesProducers(region)))
        return "a sort stands alone";
  if (std::string why = WhyNotUpdate(region, kind, machine); !why.empty()) return why;
  if (std::string why = WhyNotFolds(region, kind, machine); !why.empty()) return why;
  return WhyNotRoots(region, kind, machine);
}

}  // namespace

const RegionPrice& Pricer::Of(const Region& region, uint64_t hash) {
  Known& known = Find(region, hash);
  if (known.built) {
    known.price.price = PriceOf(WorkOf(known.built->kernel, known.built->grid, machine_), machine_);
    known.built.reset();
  }
  return known.price;
}

void Pricer::Learn(uint64_t hash, RegionKind kind, const BuiltKernel& built) {
  auto [it, is_new] = known_.try_emplace(hash);
  if (!is_new) return;
  it->second.price.kind = kind;
  it->second.price.price = PriceOf(WorkOf(built.kernel, built.grid, machine_), machine_);
}

bool Pricer::HaveKernels(const std::vector<Region>& regions) {
  return std::all_of(regions.begin(), regions.end(), [&](const Region& region) {
    return HasKernel(region, hasher_.Of(region), ShapeOf(region, machine_).kind);
  });
}

bool Pricer::HaveSimpleKernels(const std::vector<Region>& regions,
                               const std::vector<RegionKey>& keys) {
  bool all = true;
  for (size_t i = 0; all && i < regions.size(); ++i) {
    RegionKind kind = ShapeOf(regions[i], machine_).kind;
    bool simple = regions[i].roots.size() == 1 || kind != RegionKind::kContract;
    all = simple && HasKernel(regions[i], keys[i].hash, kind);
  }
  return all;
}

bool Pricer::HasKernel(const Region& region, uint64_t hash, RegionKind kind) {
  if (auto it = known_.find(hash); it != known_.end()) return it->second.price.IsLegal();
  if (!WhyNot(region, kind, machine_).empty()) return false;
  // Elements of single values have code, and so have loops over them.
  bool simple =
      (kind == RegionKind::kLoop && !HasSeveralSizes(region)) || region.instrs.size() == 1;
  if (simple) return true;
  bool contracts = kind == RegionKind::kContract;
  if ((kind == RegionKind::kRows || contracts) && !machine_.is_gpu()) {
    auto [accepts, is_new] = accepts_.try_emplace(hash);
    if (is_new)
      accepts->second = contracts ? AcceptsContract(region, machine_) : AcceptsRows(region);
    if (accepts->second != Accepts::kAskByBuilding) return accepts->second == Accepts::kYes;
  }
  return Find(region, hash).price.IsLegal();
}

double Pricer::Estimate(const Region& region, uint64_t hash) {
  auto [it, is_new] = estimates_.try_emplace(hash);
  if (is_new) it->second = Estimate(region);
  return it->second;
}

Pricer::Known& Pricer::Find(const Region& region, uint64_t hash) {
  auto [it, is_new] = known_.try_emplace(hash);
  if (!is_new) return it->second;
  RegionPrice& priced = it->second.price;
  priced.kind = ShapeOf(region, machine_).kind;
  priced.why_not = WhyNot(region, priced.kind, machine_);
  if (!priced.IsLegal()) return it->second;
  ++built_;
  BuildOutcome outcome = BuildRegion(region, priced.kind, machine_, "probe");
  if (!outcome.built)
    priced.why_not = outcome.why_not.empty() ? "no generator takes it" : outcome.why_not;
  work_ += outcome.built ? outcome.built->kernel.nodes.size() : region.instrs.size();
  it->second.built = std::move(outcome.built);
  return it->second;
}

}  // namespace tokamak
