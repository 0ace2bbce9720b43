#include "xla_rules/partition.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "analysis/effects.h"
#include "analysis/running_computations.h"
#include "fusion/instr_predicates.h"
#include "gen/library/dot.h"
#include "gen/library/sorts.h"
#include "gen/region.h"

namespace tokamak {
namespace {

// The instructions of a computation that belong to kernels.
class KernelMembership {
 public:
  KernelMembership(const Computation& computation, const Machine& machine)
      : computation_(computation),
        machine_(machine),
        order_(computation.PostOrder()),
        live_(computation, false) {
    for (auto it = order_.rbegin(); it != order_.rend(); ++it)
      live_[*it] = *it == computation.root() || !IsPlain(**it) ||
                   std::ranges::any_of((*it)->users(), [&](Instr* user) { return live_[user]; });
  }

  const std::vector<Instr*>& order() const { return order_; }

  // Whether a kernel must compute it, alone or with others.
  bool IsKernels(const Instr& instr) const {
    if (!live_[&instr] || IsNeverInKernel(instr) || IsMemoryConstant(instr)) return false;
    if (instr.op() == Op::kGetTupleElement) return false;
    if (UsesLibrary(instr, machine_) || UsesRuntimeFunction(instr, machine_)) return false;
    if (!WhyNoKernel(instr, machine_).empty()) return false;
    return !IsImmediate(instr) ||
           (MustBeStored(instr) && instr.shape().ByteSize() > kMaxStoredSplat);
  }

  // Whether it is not part of a kernel, so that it splits the fusion that contains it.
  bool Divides(const Instr& instr) const {
    return live_[&instr] && !IsKernels(instr) && instr.op() != Op::kConstant &&
           instr.op() != Op::kTuple;
  }

 private:
  bool MustBeStored(const Instr& instr) const {
    return computation_.root() == &instr ||
           std::ranges::any_of(instr.users(), [&](const Instr* user) {
             return (IsPartialUpdate(*user) && user->operand(0) == &instr) ||
                    IsNeverInKernel(*user) || user->op() == Op::kGetTupleElement ||
                    UsesLibrary(*user, machine_) || !WhyNoKernel(*user, machine_).empty();
           });
  }

  const Computation& computation_;
  const Machine& machine_;
  std::vector<Instr*> order_;
  InstrMap<bool> live_;
};

// `tags`: by id of an instruction; empty if the computation has no fusion.
KernelPartition PartitionOf(const Computation& computation, const std::vector<FusionTag>& tags,
                            const Machine& machine) {
  auto tag_of = [&](const Instr& instr) {
    return tags.empty() ? FusionTag{} : tags[static_cast<size_t>(instr.id())];
  };
  KernelPartition partition;
  KernelMembership membership(computation, machine);
  std::unordered_set<int> divided;
  for (const Instr* instr : membership.order()) {
    int fusion = tag_of(*instr).fusion;
    auto is_in = [&](const Instr* other) { return tag_of(*other).fusion == fusion; };
    // An update is done in place: it must be the last instruction of its kernel, and the array that
    // it updates must be in memory.
    bool updates = IsPartialUpdate(*instr) &&
                   (is_in(instr->operand(0)) || std::ranges::any_of(instr->users(), is_in));
    if (fusion >= 0 && (updates || membership.Divides(*instr))) divided.insert(fusion);
  }
  std::map<std::pair<int, int>, size_t>
      region_of;  // by fusion and by FusionTag::part of a horizontal one
  std::map<int, std::vector<int>> regions_of;  // by fusion
  InstrMap<int> numbers(computation, -1);
  for (const Instr* instr : membership.order()) {
    if (!membership.IsKernels(*instr)) continue;
    FusionTag tag = tag_of(*instr);
    bool alone = tag.fusion < 0 || divided.contains(tag.fusion);
    if (alone && IsAlias(*instr) && !IsImmediate(*instr->operand(0))) continue;
    size_t number = partition.regions.size();
    if (!alone) number = region_of.try_emplace({tag.fusion, tag.part}, number).first->second;
    if (number == partition.regions.size()) {
      partition.regions.emplace_back();
      if (!alone) regions_of[tag.fusion].push_back(static_cast<int>(number));
    }
    partition.regions[number].instrs.push_back(instr);
    numbers[instr] = static_cast<int>(number);
  }
  for (PartitionRegion& region : partition.regions) {
    for (const Instr* instr : region.instrs) {
      bool leaves = computation.root() == instr ||
                    std::ranges::any_of(instr->users(), [&](const Instr* user) {
                      return numbers[user] != numbers[instr];
                    });
      if (leaves) region.roots.push_back(instr);
    }
  }
  for (auto& [fusion, regions] : regions_of)
    if (regions.size() > 1) partition.launch_groups.push_back(std::move(regions));
  return partition;
}

}  // namespace

ModulePartition PartitionOfFusions(const Module& module, const FusionTags& tags,
                                   const Machine& machine) {
  std::unordered_map<const Computation*, const std::vector<FusionTag>*> tags_of;
  for (size_t i = 0; i < tags.of.size(); ++i)
    tags_of.emplace(module.computations()[i].get(), &tags.of[i]);
  const std::vector<FusionTag> none;
  ModulePartition partition;
  for (const Computation* computation : RunningComputations(module)) {
    auto found = tags_of.find(computation);
    partition.emplace(
        computation,
        PartitionOf(*computation, found == tags_of.end() ? none : *found->second, machine));
  }
  return partition;
}

}  // namespace tokamak
