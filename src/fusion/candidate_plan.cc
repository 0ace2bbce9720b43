#include "fusion/candidate_plan.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "fusion/instr_predicates.h"
#include "gen/library/dot.h"
#include "gen/library/sorts.h"

namespace tokamak {
namespace {

// Practically free to recompute in each consumer.
bool OnlyMoves(const Instr& instr) {
  return instr.op() == Op::kBroadcast || instr.op() == Op::kIota || instr.op() == Op::kSlice ||
         instr.op() == Op::kGetTupleElement || instr.op() == Op::kReshape;
}

// Chains of elementwise values, each with a single consumer of the same shape: grown from the last
// instruction to the first, up to half of the limits of one kernel (region_limits.h).
class Chains {
 public:
  explicit Chains(const Computation& computation) : chain_of_(computation, -1) {}

  // Whether the instruction joins the chain of its user. Call it once per instruction, users before
  // operands.
  bool Join(const Instr& instr) {
    if (!instr.info().Is(kElementwise) || instr.operand_count() == 0) return false;
    auto ops = instr.info().flops_per_element;
    auto inputs = static_cast<int64_t>(instr.operand_count());
    if (int with = ChainOfUser(instr); with >= 0) {
      Chain& chain = chains_[static_cast<size_t>(with)];
      if (chain.instrs < kMaxChainInstrs && chain.ops + ops <= kMaxChainOps &&
          chain.inputs + inputs - 1 <= kMaxChainInputs) {
        chain = {chain.instrs + 1, chain.ops + ops, chain.inputs + inputs - 1};
        chain_of_[&instr] = with;
        return true;
      }
    }
    chain_of_[&instr] = static_cast<int>(chains_.size());
    chains_.push_back({1, ops, inputs});
    return false;
  }

 private:
  // Half of kMaxInstrs, kMaxOpsPerElement and kMaxInputs. Chosen: leaves room for moves that grow
  // the kernel.
  static constexpr int64_t kMaxChainInstrs = 100, kMaxChainOps = 250, kMaxChainInputs = 20;
  struct Chain {
    int64_t instrs, ops, inputs;
  };

  int ChainOfUser(const Instr& instr) const {
    if (instr.users().empty() || HasControlDependencies(instr)) return -1;
    const Instr& user = *instr.users()[0];
    bool alone = std::all_of(instr.users().begin(), instr.users().end(),
                             [&](const Instr* other) { return other == &user; });
    bool same_shape = user.shape().IsArray() && user.shape().dims() == instr.shape().dims();
    return alone && same_shape ? chain_of_[&user] : -1;
  }

  InstrMap<int> chain_of_;
  std::vector<Chain> chains_;
};

// Calls f for all values that must exist before a region runs: those that it reads and those that
// it updates. An update is the only root of its region.
template <typename F>
void ForNeeds(const FusedRegion& region, F&& f) {
  for (const Instr* input : region.inputs) f(input);
  for (const Instr* root : region.roots)
    if (IsPartialUpdate(*root) && !ContainsInstr(region.inputs, root->operand(0)))
      f(root->operand(0));
}

}  // namespace

CandidatePlan::CandidatePlan(const Computation& computation, FusedRegionHasher& hasher)
    : hasher_(&hasher),
      order_(OrderFromRoot(computation)),
      positions_(computation),
      states_(order_.size()),
      consumers_(computation),
      computed_(computation) {
  for (size_t position = 0; position < order_.size(); ++position) {
    const Instr& instr = *order_[position];
    positions_[&instr] = static_cast<uint32_t>(position);
    InstrState& state = states_[position];
    state.is_immediate = IsImmediate(instr);
    state.is_get_tuple_element = instr.op() == Op::kGetTupleElement;
    state.reads_begin = static_cast<uint32_t>(reads_.size());
    for (size_t i = IsPartialUpdate(instr) ? 1 : 0; i < instr.operand_count(); ++i)
      if (uint32_t read = positions_[instr.operand(i)]; !states_[read].is_immediate)
        reads_.push_back(read);
    state.reads_count = static_cast<uint32_t>(reads_.size()) - state.reads_begin;
  }
}

CandidatePlan::CandidatePlan(const ComputationPlan& plan, FusedRegionHasher& hasher)
    : CandidatePlan(*plan.computation, hasher) {
  for (const Instr* instr : order_) {
    InstrState& state = StateOf(*instr);
    state.group_number = plan.kernel_of[instr];
    state.outside_kernels =
        state.group_number < 0 && !plan.is_internal[instr] && !state.is_immediate;
  }
  for (const Instr* instr : order_) StateOf(*instr).must_be_stored = ComputeMustBeStored(*instr);
  for (const PlannedKernel& planned : plan.kernels)
    AddGroup({planned.region.roots, {}}, planned.region, hasher.KeyOf(planned.region));
}

CandidatePlan::CandidatePlan(const Computation& computation, const Machine& machine,
                             bool inline_single_use, FusedRegionHasher& hasher)
    : CandidatePlan(computation, hasher) {
  std::vector<const Instr*> roots = InitialRoots(machine, inline_single_use);
  for (size_t i = 0; i < roots.size(); ++i) StateOf(*roots[i]).group_number = static_cast<int>(i);
  for (const Instr* root : roots) {
    FusionGroup group{{root}, {}};
    FusedRegion region;
    FindRegion(group, static_cast<int>(groups_.size()), region);
    FusedRegionKey key = hasher.KeyOf(region);
    AddGroup(std::move(group), std::move(region), std::move(key));
  }
}

std::vector<const Instr*> CandidatePlan::InitialRoots(const Machine& machine,
                                                      bool inline_single_use) {
  std::vector<const Instr*> roots;
  Chains chains(computation());
  for (size_t i = order_.size(); i-- > 0;) {
    const Instr& instr = *order_[i];
    InstrState& state = states_[i];
    state.must_be_stored = ComputeMustBeStored(instr);
    if (state.is_immediate && !state.must_be_stored) continue;
    bool no_kernel = IsNeverInKernel(instr) || IsMemoryConstant(instr) ||
                     UsesLibrary(instr, machine) || UsesRuntimeFunction(instr, machine);
    bool alias =
        IsAlias(instr) && instr.operand_count() > 0 && !StateOf(*instr.operand(0)).is_immediate;
    state.outside_kernels = no_kernel || (alias && state.must_be_stored) ||
                            (!alias && !WhyNoKernel(instr, machine).empty());
    if (state.outside_kernels) continue;
    bool inside = OnlyMoves(instr) || alias || (inline_single_use && chains.Join(instr));
    if (state.must_be_stored || !inside) roots.push_back(&instr);
  }
  std::reverse(roots.begin(), roots.end());
  return roots;
}

bool CandidatePlan::ComputeMustBeStored(const Instr& value) const {
  if (value.parent()->root() == &value || value.is_control_predecessor()) return true;
  return std::any_of(value.users().begin(), value.users().end(), [&](const Instr* user) {
    return StateOf(*user).outside_kernels || (IsPartialUpdate(*user) && user->operand(0) == &value);
  });
}

void CandidatePlan::AddGroup(FusionGroup group, FusedRegion region, FusedRegionKey key) {
  groups_.push_back({std::move(group), std::move(region), std::move(key)});
  UpdateConsumerIndex(static_cast<int>(groups_.size()) - 1, true);
}

std::vector<FusedRegionKey> CandidatePlan::KeysOf(const std::vector<FusedRegion>& regions) const {
  std::vector<FusedRegionKey> keys;
  keys.reserve(regions.size());
  for (const FusedRegion& region : regions) keys.push_back(hasher_->KeyOf(region));
  return keys;
}

uint32_t CandidatePlan::CanonicalNumberIn(int i, const Instr& instr) const {
  const Entry& entry = groups_[static_cast<size_t>(i)];
  auto at = std::find(entry.region.instrs.begin(), entry.region.instrs.end(), &instr);
  // An alias of an input is outside of the region.
  if (at == entry.region.instrs.end()) return static_cast<uint32_t>(entry.key.numbers.size());
  return entry.key.numbers[static_cast<size_t>(at - entry.region.instrs.begin())];
}

const Instr* CandidatePlan::StoredValueOf(const Instr& input) const {
  const Instr* last = &input;
  while (GroupOf(*last) < 0) {
    if (!IsOutsideKernels(*last) || !IsAlias(*last) || last->operand_count() != 1) return nullptr;
    last = last->operand(0);
  }
  return last;
}

std::vector<const Instr*> CandidatePlan::AliasChainOf(const Instr& input) const {
  const Instr* stored = StoredValueOf(input);
  if (stored == nullptr) return {};
  std::vector<const Instr*> chain = {&input};
  while (chain.back() != stored) chain.push_back(chain.back()->operand(0));
  return chain;
}

bool CandidatePlan::IsInput(uint32_t position, const FusionGroup& group, int number) const {
  const InstrState& state = states_[position];
  bool made = state.outside_kernels || state.group_number >= 0;
  return made && state.group_number != number && !ContainsInstr(group.recomputed, order_[position]);
}

void CandidatePlan::FindRegion(const FusionGroup& group, int number, FusedRegion& region) {
  ++walk_id_;
  visited_.clear();
  bool has_tuple_elements = false;
  auto find = [&](uint32_t position) {
    states_[position].last_walk = walk_id_;
    has_tuple_elements = has_tuple_elements || states_[position].is_get_tuple_element;
    visited_.push_back(position);
  };
  for (const Instr* root : group.roots) find(positions_[root]);
  for (size_t next = 0; next < visited_.size(); ++next)
    for (uint32_t read : ReadsOf(states_[visited_[next]]))
      if (states_[read].last_walk != walk_id_ && !IsInput(read, group, number)) find(read);
  if (has_tuple_elements) DropForeignTupleElements();
  FillRegion(group.roots, region);
}

void CandidatePlan::DropForeignTupleElements() {
  std::erase_if(visited_, [&](uint32_t position) {
    InstrState& state = states_[position];
    bool elsewhere =
        state.is_get_tuple_element && !std::ranges::any_of(ReadsOf(state), [&](uint32_t read) {
          return states_[read].last_walk == walk_id_;
        });
    if (elsewhere) state.last_walk = 0;
    return elsewhere;
  });
}

void CandidatePlan::FillRegion(const std::vector<const Instr*>& roots, FusedRegion& region) {
  std::sort(visited_.begin(), visited_.end());
  region.computation = &computation();
  region.roots = roots;
  region.instrs.clear();
  region.instrs.reserve(visited_.size());
  inputs_.clear();
  for (uint32_t position : visited_) {
    region.instrs.push_back(order_[position]);
    for (uint32_t read : ReadsOf(states_[position])) {
      if (states_[read].last_walk == walk_id_) continue;
      states_[read].last_walk = walk_id_;
      inputs_.push_back(order_[read]);
    }
  }
  region.inputs = inputs_;
  std::sort(region.roots.begin(), region.roots.end(),
            [&](const Instr* x, const Instr* y) { return positions_[x] < positions_[y]; });
}

void CandidatePlan::SetGroupOfRoots(const FusionGroup& group, int number) {
  for (const Instr* root : group.roots) StateOf(*root).group_number = number;
}

void CandidatePlan::AssignRoots(const Change& change) {
  int next = static_cast<int>(groups_.size());
  for (int i : change.removed) SetGroupOfRoots(group(i), -1);
  for (const FusionGroup& group : change.added) SetGroupOfRoots(group, next++);
}

void CandidatePlan::RevertRoots(const Change& change) {
  for (const FusionGroup& group : change.added) SetGroupOfRoots(group, -1);
  for (int i : change.removed) SetGroupOfRoots(group(i), i);
}

std::vector<FusedRegion> CandidatePlan::RegionsAfter(const Change& change) {
  std::vector<FusedRegion> regions;
  RegionsAfter(change, regions);
  return regions;
}

void CandidatePlan::RegionsAfter(const Change& change, std::vector<FusedRegion>& regions) {
  if (regions.size() < change.added.size()) regions.resize(change.added.size());
  AssignRoots(change);
  auto next = static_cast<int>(groups_.size());
  for (size_t i = 0; i < change.added.size(); ++i)
    FindRegion(change.added[i], next + static_cast<int>(i), regions[i]);
  RevertRoots(change);
}

void CandidatePlan::UpdateConsumerIndex(int number, bool add) {
  auto link = [&](std::vector<int>& list) {
    if (add) {
      list.push_back(number);
    } else {
      std::erase(list, number);
    }
  };
  ForNeeds(region(number), [&](const Instr* value) { link(consumers_[value]); });
  for (const Instr* instr : region(number).instrs) link(computed_[instr]);
}

void CandidatePlan::Apply(const Change& change, std::vector<FusedRegion> regions,
                          std::vector<FusedRegionKey> keys) {
  int next = static_cast<int>(groups_.size());
  bool only_shrinks = OnlyShrinksGroups(change);
  if (IsMerge(change)) {
    group_order_.Merge(*this, change.removed[0], change.removed[1], next);
  } else if (only_shrinks) {
    for (size_t i = 0; i < change.added.size(); ++i)
      group_order_.Replace(GroupOf(*change.added[i].roots[0]), next + static_cast<int>(i));
  } else {
    group_order_.Invalidate();
  }
  for (int i : change.removed) UpdateConsumerIndex(i, false);
  AssignRoots(change);
  for (int i : change.removed) groups_[static_cast<size_t>(i)] = {};
  for (size_t i = 0; i < regions.size(); ++i)
    AddGroup(change.added[i], std::move(regions[i]), std::move(keys[i]));
  for (int i = next; only_shrinks && i < static_cast<int>(groups_.size()); ++i)
    if (!group_order_.DependenciesRankBefore(*this, region(i), i)) return group_order_.Invalidate();
}

bool CandidatePlan::IsStillApplicable(const Change& change) const {
  auto is_removed = [&](int group) {
    return std::find(change.removed.begin(), change.removed.end(), group) != change.removed.end();
  };
  auto is_kept = [&](const Instr* root) {
    return std::any_of(change.added.begin(), change.added.end(),
                       [&](const FusionGroup& group) { return ContainsInstr(group.roots, root); });
  };
  for (int i : change.removed) {
    if (!IsLive(i)) return false;
    for (const Instr* root : group(i).roots)
      if (!is_kept(root) &&
          !std::all_of(consumers_[root].begin(), consumers_[root].end(), is_removed))
        return false;
  }
  return true;
}

bool CandidatePlan::IsMerge(const Change& change) const {
  return change.added.size() == 1 && change.removed.size() == 2 && !OnlyShrinksGroups(change);
}

// Groups lose roots and compute more themselves. Their transitive dependences stay the same, except
// those of recomputed values, which GroupOrder::DependenciesRankBefore checks.
bool CandidatePlan::OnlyShrinksGroups(const Change& change) const {
  for (auto group = change.added.begin(); group != change.added.end(); ++group) {
    int group_number = GroupOf(*group->roots[0]);
    auto is_home = [&](const Instr* root) { return GroupOf(*root) == group_number; };
    bool recomputed = std::any_of(change.added.begin(), group, [&](const FusionGroup& before) {
      return is_home(before.roots[0]);
    });
    if (group_number < 0 || recomputed || !std::ranges::all_of(group->roots, is_home)) return false;
  }
  return true;
}

bool CandidatePlan::MakesCycle(const Change& change, const std::vector<FusedRegion>& regions) {
  if (OnlyShrinksGroups(change)) {
    bool fits = true;
    for (size_t i = 0; fits && i < regions.size(); ++i)
      fits = group_order_.DependenciesRankBefore(*this, regions[i],
                                                 GroupOf(*change.added[i].roots[0]));
    if (fits) return false;
  }
  if (IsMerge(change)) return MergeMakesCycle(change);
  return MakesCycleByFullWalk(change, regions);
}

bool CandidatePlan::MakesCycleByFullWalk(const Change& change,
                                         const std::vector<FusedRegion>& regions) const {
  // Walks from the roots of each new group through all transitive consumers. A cycle exists if the
  // walk arrives at a value that the group needs.
  std::unordered_set<int> gone(change.removed.begin(), change.removed.end());
  std::unordered_map<const Instr*, std::vector<size_t>> needed_by;
  for (size_t i = 0; i < regions.size(); ++i)
    ForNeeds(regions[i], [&](const Instr* value) { needed_by[value].push_back(i); });
  for (size_t target = 0; target < regions.size(); ++target) {
    std::unordered_set<const Instr*> seen;
    std::vector<const Instr*> open = regions[target].roots;
    while (!open.empty()) {
      const Instr* instr = open.back();
      open.pop_back();
      if (!seen.insert(instr).second) continue;
      if (auto it = needed_by.find(instr); it != needed_by.end())
        for (size_t i : it->second) {
          if (i == target) return true;
          for (const Instr* root : regions[i].roots) open.push_back(root);
        }
      for (int consumer : consumers_[instr])
        if (!gone.contains(consumer))
          for (const Instr* root : region(consumer).roots) open.push_back(root);
      for (const Instr* user : instr->users())
        if (IsOutsideKernels(*user)) open.push_back(user);
    }
  }
  return false;
}

}  // namespace tokamak
