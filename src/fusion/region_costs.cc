#include "fusion/region_costs.h"

#include <algorithm>

#include "fusion/generator_choice.h"
#include "fusion/instr_predicates.h"
#include "fusion/region_limits.h"
#include "gen/column_reductions.h"
#include "gen/gpu/gpu.h"
#include "gen/roots.h"
#include "gen/sort_schedule.h"

namespace tokamak {
namespace {

// No other instruction of the kernel may read the array that an update overwrites, except for the
// very slice that is overwritten.
std::string WhyNotUpdate(const FusedRegion& region, GeneratorKind kind, const Machine& machine) {
  bool on_cpu = !machine.is_gpu();
  bool by_element = kind == GeneratorKind::kLoop || (kind == GeneratorKind::kContract && on_cpu);
  for (const Instr* instr : region.instrs) {
    if (!IsPartialUpdate(*instr)) continue;
    bool others = on_cpu && by_element && IsSliceUpdate(*instr);  // may have other roots
    if ((region.roots.size() != 1 && !others) || std::ranges::count(region.roots, instr) == 0)
      return "an in-place update must be the root of its kernel";
    for (const Instr* consumer : region.instrs) {
      bool same_slice =
          instr->op() == Op::kDynamicUpdateSlice && consumer->op() == Op::kDynamicSlice;
      if (consumer == instr || same_slice) continue;
      if (!by_element && kind != GeneratorKind::kScatter)
        return "an in-place update cannot share a kernel with a reduction";
      for (const Instr* operand : consumer->operands())
        if (operand == instr->operand(0)) return "it reads the array that the region overwrites";
    }
  }
  return "";
}

bool HasSeveralSizes(const FusedRegion& region) {
  if (region.roots.size() == 1) return false;
  return std::any_of(region.roots.begin(), region.roots.end(), [&](const Instr* root) {
    return ComputedElementCount(*root) != ComputedElementCount(*region.roots[0]);
  });
}

std::string WhyNotRoots(const FusedRegion& region, GeneratorKind kind, const Machine& machine) {
  if (region.roots.size() == 1) return "";
  for (const Instr* root : region.roots)
    if (root->shape().IsTuple()) return "a tuple-shaped op needs its own kernel";
  bool reduces = std::all_of(region.roots.begin(), region.roots.end(),
                             [](const Instr* root) { return root->op() == Op::kReduce; });
  switch (kind) {
    case GeneratorKind::kLoop:
      if (!HasSeveralSizes(region)) return "";
      return machine.is_gpu() ? gpu::WhyNotMultiSize(region)
                              : "its roots have different numbers of elements";
    case GeneratorKind::kRows:
    case GeneratorKind::kContract:
      return "";  // the generator decides
    case GeneratorKind::kColumns:
      return reduces || machine.is_gpu()  // the generator decides
                 ? ""
                 : "a column kernel has only reductions of the same dimensions as roots";
    default:
      return "this generator supports a single root";
  }
}

// Rows too short for vectors: the reduction of each would run at latency.
bool HasTinyRows(const FusedRegion& region) {
  // Elements per row; chosen: less than a vector.
  constexpr int64_t kTiny = 4;
  return std::ranges::any_of(region.instrs, [](const Instr* instr) {
    return instr->op() == Op::kReduce && ResultElementCount(*instr) > 1 &&
           ResultElementCount(*instr->operand(0)) / ResultElementCount(*instr) < kTiny;
  });
}

std::string WhyNotColumnReductions(const FusedRegion& region, GeneratorKind kind,
                                   const Machine& machine) {
  ColumnReductions column_reductions;
  if (kind == GeneratorKind::kColumns) return AnalyzeColumnReductions(region, column_reductions);
  bool contracts = std::any_of(region.instrs.begin(), region.instrs.end(),
                               [](const Instr* instr) { return instr->op() == Op::kDot; });
  if (kind != GeneratorKind::kRows) return "";
  if (!machine.is_gpu() && HasTinyRows(region))
    return "rows this short are faster as a column reduction";
  return contracts ? "a contraction cannot share a kernel with row reductions" : "";
}

// Why no generator supports the region, as far as shapes tell; empty if one may.
std::string WhyNot(const FusedRegion& region, GeneratorKind kind, const Machine& machine) {
  if (std::string why = WhyTooLarge(region); !why.empty()) return why;
  if (region.instrs.size() > 1)
    for (const Instr* instr : region.instrs)
      if (instr->op() == Op::kSort && !IsSortWithProducers(region, machine))
        return "a sort needs its own kernel";
  if (std::string why = WhyNotUpdate(region, kind, machine); !why.empty()) return why;
  if (std::string why = WhyNotColumnReductions(region, kind, machine); !why.empty()) return why;
  return WhyNotRoots(region, kind, machine);
}

}  // namespace

size_t BuildEffortOf(const BuildOutcome& outcome, const FusedRegion& region) {
  return outcome.built ? outcome.built->kernel.nodes.size() : region.instrs.size();
}

const RegionCost& RegionCosts::ModeledCostOf(const FusedRegion& region, uint64_t hash) {
  CacheEntry& entry = FindOrBuild(region, hash);
  if (entry.not_yet_costed) {
    SetCost(region, *entry.not_yet_costed, entry.cost);
    entry.not_yet_costed.reset();
  }
  return entry.cost;
}

const RegionCost* RegionCosts::FindCost(const FusedRegion& region, uint64_t hash) {
  const CacheEntry& entry = FindOrCheck(region, hash);
  bool is_known = !entry.cost.HasKernel() || (entry.is_built && !entry.not_yet_costed);
  return is_known ? &entry.cost : nullptr;
}

void RegionCosts::AddBuilt(const FusedRegion& region, uint64_t hash, GeneratorKind kind,
                           const BuiltKernel& built) {
  CacheEntry& entry = modeled_[hash];
  if (entry.is_built) return;
  entry.is_built = true;
  entry.cost.kind = kind;
  entry.cost.values = built.kernel.nodes.size();
  SetCost(region, built, entry.cost);
}

double RegionCosts::EstimatedRegisters(const FusedRegion& region) {
  const RegionCost* cost = FindCost(region, hasher_.HashOf(region));
  return cost == nullptr ? 0 : cost->registers;
}

void RegionCosts::SetCost(const FusedRegion& region, const BuiltKernel& built,
                          RegionCost& cost) const {
  Work work = WorkOf(built.kernel, built.grid, machine_);
  cost.registers = machine_.is_gpu() ? work.thread_registers : work.registers;
  cost.modeled = EstimateCost(work, machine_);
  if (extensions_ != nullptr && extensions_->HasCostHook())
    cost.modeled =
        extensions_->Corrected(cost.modeled, work, built.kernel, region, cost.kind, nullptr);
}

void RegionCosts::AskPlugins(const FusedRegion& region, CacheEntry& entry) {
  const BuiltKernel* own = entry.not_yet_costed ? &*entry.not_yet_costed : nullptr;
  std::optional<BuiltKernel> offered = extensions_->Generate(region, own, entry.cost.kind);
  if (!offered) return;
  entry.is_built = true;
  entry.cost.why_not.clear();
  entry.cost.values = offered->kernel.nodes.size();
  entry.not_yet_costed = std::move(offered);
}

bool RegionCosts::AllHaveKernels(const std::vector<FusedRegion>& regions) {
  return std::all_of(regions.begin(), regions.end(), [&](const FusedRegion& region) {
    return HasKernel(region, hasher_.HashOf(region));
  });
}

bool RegionCosts::AllHaveReliablyEstimatedKernels(const std::vector<FusedRegion>& regions,
                                                  const std::vector<FusedRegionKey>& keys) {
  bool all = true;
  for (size_t i = 0; all && i < regions.size(); ++i) {
    GeneratorKind kind = FindOrCheck(regions[i], keys[i].hash).cost.kind;
    bool simple = regions[i].roots.size() == 1 || kind != GeneratorKind::kContract;
    all = simple && HasKernel(regions[i], keys[i].hash);
  }
  return all;
}

bool RegionCosts::HasKernel(const FusedRegion& region, uint64_t hash) {
  CacheEntry& entry = FindOrCheck(region, hash);
  GeneratorKind kind = entry.cost.kind;
  if (entry.is_built || !entry.cost.HasKernel()) return entry.cost.HasKernel();
  // Elementwise loops over a single domain, and single instructions, are always supported.
  bool simple =
      (kind == GeneratorKind::kLoop && !HasSeveralSizes(region)) || region.instrs.size() == 1;
  if (simple) return true;
  bool contracts = kind == GeneratorKind::kContract;
  if ((kind == GeneratorKind::kRows || contracts) && !machine_.is_gpu()) {
    if (!entry.accepts)
      entry.accepts = contracts ? AcceptsContract(region, machine_) : AcceptsRows(region);
    if (entry.accepts != Accepts::kUnknown) return entry.accepts == Accepts::kYes;
  }
  return FindOrBuild(region, hash).cost.HasKernel();
}

double RegionCosts::Estimate(const FusedRegion& region, uint64_t hash) {
  auto [it, is_new] = estimates_.try_emplace(hash);
  if (is_new) it->second = Estimate(region);
  return it->second;
}

RegionCosts::CacheEntry& RegionCosts::FindOrCheck(const FusedRegion& region, uint64_t hash) {
  auto [it, is_new] = modeled_.try_emplace(hash);
  if (is_new) {
    RegionCost& cost = it->second.cost;
    cost.kind = ChooseGenerator(region, machine_).kind;
    cost.why_not = WhyNot(region, cost.kind, machine_);
    if (!cost.HasKernel() && extensions_ != nullptr && extensions_->HasGenerator())
      AskPlugins(region, it->second);
  }
  return it->second;
}

RegionCosts::CacheEntry& RegionCosts::FindOrBuild(const FusedRegion& region, uint64_t hash) {
  CacheEntry& entry = FindOrCheck(region, hash);
  if (entry.is_built || !entry.cost.HasKernel()) return entry;
  entry.is_built = true;
  ++kernels_built_;
  BuildOutcome outcome = BuildRegion(region, entry.cost.kind, machine_, "probe");
  build_effort_ += BuildEffortOf(outcome, region);
  if (outcome.built)
    entry.cost.values = outcome.built->kernel.nodes.size();
  else
    entry.cost.why_not = outcome.why_not.empty() ? "no generator supports it" : outcome.why_not;
  entry.not_yet_costed = std::move(outcome.built);
  if (extensions_ != nullptr && extensions_->HasGenerator()) AskPlugins(region, entry);
  return entry;
}

}  // namespace tokamak
