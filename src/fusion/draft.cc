#include "fusion/draft.h"

#include <algorithm>
#include <unordered_set>

#include "fusion/contraction.h"
#include "fusion/region_hash.h"
#include "fusion/regions.h"
#include "fusion/sorts.h"
#include "fusion/values.h"

namespace tokamak {
namespace {

bool Contains(const std::vector<const Instr*>& list, const Instr* instr) {
  return std::find(list.begin(), list.end(), instr) != list.end();
}

// Costs about nothing where it is read.
bool OnlyMoves(const Instr& instr) {
  return instr.op() == Op::kBroadcast || instr.op() == Op::kIota || instr.op() == Op::kSlice ||
         instr.op() == Op::kGetTupleElement || instr.op() == Op::kReshape;
}

// What must be there before a region runs: what it reads, and what it updates.
std::vector<const Instr*> NeedsOf(const Region& region) {
  std::vector<const Instr*> needs = region.inputs;
  for (const Instr* root : region.roots)
    if (IsUpdate(*root) && !Contains(needs, root->operand(0))) needs.push_back(root->operand(0));
  return needs;
}

}  // namespace

Draft::Draft(const Computation& computation)
    : order_(computation.PostOrder()),
      places_(computation),
      homes_(computation, -1),
      outside_(computation, false),
      needed_(computation, false),
      readers_(computation),
      computed_(computation),
      seen_(computation, 0) {
  for (size_t i = 0; i < order_.size(); ++i) places_[order_[i]] = i;
}

Draft::Draft(const ComputationPlan& plan) : Draft(*plan.computation) {
  for (const Instr* instr : order_) {
    homes_[instr] = plan.kernel_of[instr];
    outside_[instr] = plan.kernel_of[instr] < 0 && !plan.inside[instr] && !IsImmediate(*instr);
  }
  for (const Instr* instr : order_) needed_[instr] = NeedsArray(*instr);
  for (const PlannedKernel& planned : plan.kernels)
    AddGroup({planned.region.roots, {}}, planned.region);
}

Draft::Draft(const Computation& computation, const Machine& machine) : Draft(computation) {
  std::vector<const Instr*> roots;
  for (size_t i = order_.size(); i-- > 0;) {
    const Instr& instr = *order_[i];
    needed_[&instr] = NeedsArray(instr);
    if (IsImmediate(instr) && !needed_[&instr]) continue;
    bool no_kernel = IsKernelless(instr) || IsMemoryConstant(instr) ||
                     IsForLibrary(instr, machine) || IsForRuntime(instr, machine);
    bool alias = IsAlias(instr) && instr.operand_count() > 0 && !IsImmediate(*instr.operand(0));
    outside_[&instr] =
        no_kernel || (alias && needed_[&instr]) || (!alias && !WhyNoKernel(instr, machine).empty());
    if (outside_[&instr]) continue;
    if (needed_[&instr] || (!OnlyMoves(instr) && !alias)) roots.push_back(&instr);
  }
  std::reverse(roots.begin(), roots.end());
  for (size_t i = 0; i < roots.size(); ++i) homes_[roots[i]] = static_cast<int>(i);
  for (const Instr* root : roots) {
    Group group{{root}, {}};
    Region region = RegionOf(group, static_cast<int>(groups_.size()));
    AddGroup(std::move(group), std::move(region));
  }
}

bool Draft::NeedsArray(const Instr& value) const {
  if (value.parent()->root() == &value || value.is_control_predecessor()) return true;
  return std::any_of(value.users().begin(), value.users().end(), [&](const Instr* user) {
    return outside_[user] || (IsUpdate(*user) && user->operand(0) == &value);
  });
}

void Draft::AddGroup(Group group, Region region) {
  uint64_t hash = StructuralHash(region);
  groups_.push_back({std::move(group), std::move(region), hash});
  Link(static_cast<int>(groups_.size()) - 1, true);
}

std::vector<const Instr*> Draft::ChainOf(const Instr& input) const {
  std::vector<const Instr*> chain = {&input};
  while (homes_[chain.back()] < 0) {
    const Instr& last = *chain.back();
    if (!outside_[&last] || !IsAlias(last) || last.operand_count() != 1) return {};
    chain.push_back(last.operand(0));
  }
  return chain;
}

// What the group reads rather than computes.
bool Draft::IsInput(const Instr& operand, const Group& group, int number) const {
  bool made = outside_[&operand] || homes_[&operand] >= 0;
  return made && homes_[&operand] != number && !Contains(group.again, &operand);
}

Region Draft::RegionOf(const Group& group, int number) const {
  std::vector<const Instr*> open = group.roots, instrs;
  ++walk_;
  for (const Instr* root : group.roots) seen_[root] = walk_;
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    instrs.push_back(instr);
    for (size_t i = 0; i < instr->operand_count(); ++i) {
      const Instr* operand = instr->operand(i);
      if (IsImmediate(*operand) || (IsUpdate(*instr) && i == 0)) continue;
      if (seen_[operand] == walk_ || IsInput(*operand, group, number)) continue;
      seen_[operand] = walk_;
      open.push_back(operand);
    }
  }
  return OrderedRegion(instrs, group.roots, places_);
}

void Draft::Rehome(const Change& change, bool forward) {
  auto leave = [&](const Group& group) {
    for (const Instr* root : group.roots) homes_[root] = -1;
  };
  auto move_in = [&](const Group& group, int number) {
    for (const Instr* root : group.roots) homes_[root] = number;
  };
  int next = static_cast<int>(groups_.size());
  if (forward) {
    for (int i : change.removed) leave(group(i));
    for (const Group& group : change.added) move_in(group, next++);
  } else {
    for (const Group& group : change.added) leave(group);
    for (int i : change.removed) move_in(group(i), i);
  }
}

std::vector<Region> Draft::Try(const Change& change) {
  Rehome(change, true);
  std::vector<Region> regions;
  int next = static_cast<int>(groups_.size());
  for (const Group& group : change.added) regions.push_back(RegionOf(group, next++));
  Rehome(change, false);
  return regions;
}

void Draft::Link(int number, bool add) {
  auto link = [&](std::vector<int>& list) {
    if (add) {
      list.push_back(number);
    } else {
      std::erase(list, number);
    }
  };
  for (const Instr* value : NeedsOf(region(number))) link(readers_[value]);
  for (const Instr* instr : region(number).instrs) link(computed_[instr]);
}

void Draft::Apply(const Change& change) {
  for (int i : change.removed) Link(i, false);
  Rehome(change, true);
  for (int i : change.removed) groups_[static_cast<size_t>(i)] = {};
  for (const Group& group : change.added) {
    int number = static_cast<int>(groups_.size());
    Region region = RegionOf(group, number);
    AddGroup(group, std::move(region));
  }
}

bool Draft::MakesCycle(const Change& change, const std::vector<Region>& regions) {
  // From what the new groups make, along those who need it, back to what they need.
  std::unordered_set<int> gone(change.removed.begin(), change.removed.end());
  for (size_t target = 0; target < regions.size(); ++target) {
    std::unordered_set<const Instr*> seen;
    std::vector<const Instr*> open = regions[target].roots;
    while (!open.empty()) {
      const Instr* instr = open.back();
      open.pop_back();
      if (!seen.insert(instr).second) continue;
      for (size_t i = 0; i < regions.size(); ++i) {
        if (!Contains(NeedsOf(regions[i]), instr)) continue;
        if (i == target) return true;
        for (const Instr* root : regions[i].roots) open.push_back(root);
      }
      for (int reader : readers_[instr])
        if (!gone.contains(reader))
          for (const Instr* root : region(reader).roots) open.push_back(root);
      for (const Instr* user : instr->users())
        if (outside_[user]) open.push_back(user);
    }
  }
  return false;
}

}  // namespace tokamak
