#include "fusion/draft.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "fusion/regions.h"
#include "fusion/values.h"
#include "gen/library/contraction.h"
#include "gen/library/sorts.h"

namespace tokamak {
namespace {

bool IsDrafted(const std::vector<const Instr*>& list, const Instr* instr) {
  return std::find(list.begin(), list.end(), instr) != list.end();
}

// Costs about nothing where it is read.
bool OnlyMoves(const Instr& instr) {
  return instr.op() == Op::kBroadcast || instr.op() == Op::kIota || instr.op() == Op::kSlice ||
         instr.op() == Op::kGetTupleElement || instr.op() == Op::kReshape;
}

// Values that one neighbour alone computes with, at the same place: put together from the last to
// the first, up to half of what a kernel may be.
class Chains {
 public:
  explicit Chains(const Computation& computation) : chain_of_(computation, -1) {}

  // Whether it is computed where its user is. Each instruction is asked about once, after its
  // users.
  bool Join(const Instr& instr) {
    if (!instr.info().Is(kElementwise) || instr.operand_count() == 0) return false;
    auto flops = instr.info().flops_per_element;
    auto inputs = static_cast<int64_t>(instr.operand_count());
    if (int with = ChainOfUser(instr); with >= 0) {
      Chain& chain = chains_[static_cast<size_t>(with)];
      if (chain.instrs < kMaxChain && chain.flops + flops <= kMaxChainFlops &&
          chain.inputs + inputs - 1 <= kMaxChainInputs) {
        chain = {chain.instrs + 1, chain.flops + flops, chain.inputs + inputs - 1};
        chain_of_[&instr] = with;
        return true;
      }
    }
    chain_of_[&instr] = static_cast<int>(chains_.size());
    chains_.push_back({1, flops, inputs});
    return false;
  }

 private:
  static constexpr int64_t kMaxChain = 100, kMaxChainFlops = 250, kMaxChainInputs = 20;
  struct Chain {
    int64_t instrs, flops, inputs;
  };

  int ChainOfUser(const Instr& instr) const {
    if (instr.users().empty() || IsTied(instr)) return -1;
    const Instr& user = *instr.users()[0];
    bool alone = std::all_of(instr.users().begin(), instr.users().end(),
                             [&](const Instr* other) { return other == &user; });
    bool alike = user.shape().IsArray() && user.shape().dims() == instr.shape().dims();
    return alone && alike ? chain_of_[&user] : -1;
  }

  InstrMap<int> chain_of_;
  std::vector<Chain> chains_;
};

// Calls f for all that must be there before a region runs: what it reads, and what it updates. An
// update is its region's only root.
template <typename F>
void ForNeeds(const Region& region, F&& f) {
  for (const Instr* input : region.inputs) f(input);
  for (const Instr* root : region.roots)
    if (IsUpdate(*root) && !IsDrafted(region.inputs, root->operand(0))) f(root->operand(0));
}

}  // namespace

Draft::Draft(const Computation& computation, RegionHasher& hasher)
    : hasher_(&hasher),
      order_(OrderFromRoot(computation)),
      places_(computation),
      values_(order_.size()),
      readers_(computation),
      computed_(computation) {
  for (size_t place = 0; place < order_.size(); ++place) {
    const Instr& instr = *order_[place];
    places_[&instr] = static_cast<uint32_t>(place);
    Value& value = values_[place];
    value.immediate = IsImmediate(instr);
    value.is_part = instr.op() == Op::kGetTupleElement;
    value.first_read = static_cast<uint32_t>(reads_.size());
    for (size_t i = IsUpdate(instr) ? 1 : 0; i < instr.operand_count(); ++i)
      if (uint32_t read = places_[instr.operand(i)]; !values_[read].immediate)
        reads_.push_back(read);
    value.reads = static_cast<uint32_t>(reads_.size()) - value.first_read;
  }
}

Draft::Draft(const ComputationPlan& plan, RegionHasher& hasher) : Draft(*plan.computation, hasher) {
  for (const Instr* instr : order_) {
    Value& value = Of(*instr);
    value.home = plan.kernel_of[instr];
    value.outside = value.home < 0 && !plan.inside[instr] && !value.immediate;
  }
  for (const Instr* instr : order_) Of(*instr).needed = NeedsArray(*instr);
  for (const PlannedKernel& planned : plan.kernels)
    AddGroup({planned.region.roots, {}}, planned.region, hasher.KeyOf(planned.region));
}

Draft::Draft(const Computation& computation, const Machine& machine, bool contract,
             RegionHasher& hasher)
    : Draft(computation, hasher) {
  std::vector<const Instr*> roots = FirstRoots(machine, contract);
  for (size_t i = 0; i < roots.size(); ++i) Of(*roots[i]).home = static_cast<int>(i);
  for (const Instr* root : roots) {
    Group group{{root}, {}};
    Region region;
    FindRegion(group, static_cast<int>(groups_.size()), region);
    RegionKey key = hasher.KeyOf(region);
    AddGroup(std::move(group), std::move(region), std::move(key));
  }
}

std::vector<const Instr*> Draft::FirstRoots(const Machine& machine, bool contract) {
  std::vector<const Instr*> roots;
  Chains chains(computation());
  for (size_t i = order_.size(); i-- > 0;) {
    const Instr& instr = *order_[i];
    Value& value = values_[i];
    value.needed = NeedsArray(instr);
    if (value.immediate && !value.needed) continue;
    bool no_kernel = IsKernelless(instr) || IsMemoryConstant(instr) ||
                     IsForLibrary(instr, machine) || IsForRuntime(instr, machine);
    bool alias = IsAlias(instr) && instr.operand_count() > 0 && !Of(*instr.operand(0)).immediate;
    value.outside =
        no_kernel || (alias && value.needed) || (!alias && !WhyNoKernel(instr, machine).empty());
    if (value.outside) continue;
    bool inside = OnlyMoves(instr) || alias || (contract && chains.Join(instr));
    if (value.needed || !inside) roots.push_back(&instr);
  }
  std::reverse(roots.begin(), roots.end());
  return roots;
}

bool Draft::NeedsArray(const Instr& value) const {
  if (value.parent()->root() == &value || value.is_control_predecessor()) return true;
  return std::any_of(value.users().begin(), value.users().end(), [&](const Instr* user) {
    return Of(*user).outside || (IsUpdate(*user) && user->operand(0) == &value);
  });
}

void Draft::AddGroup(Group group, Region region, RegionKey key) {
  groups_.push_back({std::move(group), std::move(region), std::move(key)});
  Link(static_cast<int>(groups_.size()) - 1, true);
}

std::vector<RegionKey> Draft::KeysOf(const std::vector<Region>& regions) const {
  std::vector<RegionKey> keys;
  keys.reserve(regions.size());
  for (const Region& region : regions) keys.push_back(hasher_->KeyOf(region));
  return keys;
}

uint32_t Draft::NumberIn(int i, const Instr& instr) const {
  const Entry& entry = groups_[static_cast<size_t>(i)];
  auto at = std::find(entry.region.instrs.begin(), entry.region.instrs.end(), &instr);
  // What it reads under another shape is outside of it.
  if (at == entry.region.instrs.end()) return static_cast<uint32_t>(entry.key.numbers.size());
  return entry.key.numbers[static_cast<size_t>(at - entry.region.instrs.begin())];
}

const Instr* Draft::StoredBehind(const Instr& input) const {
  const Instr* last = &input;
  while (HomeOf(*last) < 0) {
    if (!IsOutside(*last) || !IsAlias(*last) || last->operand_count() != 1) return nullptr;
    last = last->operand(0);
  }
  return last;
}

std::vector<const Instr*> Draft::ChainOf(const Instr& input) const {
  const Instr* stored = StoredBehind(input);
  if (stored == nullptr) return {};
  std::vector<const Instr*> chain = {&input};
  while (chain.back() != stored) chain.push_back(chain.back()->operand(0));
  return chain;
}

bool Draft::IsInput(uint32_t place, const Group& group, int number) const {
  const Value& value = values_[place];
  bool made = value.outside || value.home >= 0;
  return made && value.home != number && !IsDrafted(group.again, order_[place]);
}

void Draft::FindRegion(const Group& group, int number, Region& region) {
  ++walk_;
  found_.clear();
  bool has_parts = false;
  auto find = [&](uint32_t place) {
    values_[place].seen = walk_;
    has_parts = has_parts || values_[place].is_part;
    found_.push_back(place);
  };
  for (const Instr* root : group.roots) find(places_[root]);
  for (size_t next = 0; next < found_.size(); ++next)
    for (uint32_t read : ReadsOf(values_[found_[next]]))
      if (values_[read].seen != walk_ && !IsInput(read, group, number)) find(read);
  if (has_parts) ForgetParts();
  PutInOrder(group.roots, region);
}

// A part of what is made elsewhere is an array to be read.
void Draft::ForgetParts() {
  std::erase_if(found_, [&](uint32_t place) {
    Value& value = values_[place];
    bool elsewhere = value.is_part && !std::ranges::any_of(ReadsOf(value), [&](uint32_t read) {
                       return values_[read].seen == walk_;
                     });
    if (elsewhere) value.seen = 0;
    return elsewhere;
  });
}

void Draft::PutInOrder(const std::vector<const Instr*>& roots, Region& region) {
  std::sort(found_.begin(), found_.end());
  region.computation = &computation();
  region.roots = roots;
  region.instrs.clear();
  region.instrs.reserve(found_.size());
  inputs_.clear();
  for (uint32_t place : found_) {
    region.instrs.push_back(order_[place]);
    for (uint32_t read : ReadsOf(values_[place])) {
      if (values_[read].seen == walk_) continue;
      values_[read].seen = walk_;
      inputs_.push_back(order_[read]);
    }
  }
  region.inputs = inputs_;
  std::sort(region.roots.begin(), region.roots.end(),
            [&](const Instr* x, const Instr* y) { return places_[x] < places_[y]; });
}

void Draft::Rehome(const Change& change, bool forward) {
  auto leave = [&](const Group& group) {
    for (const Instr* root : group.roots) Of(*root).home = -1;
  };
  auto move_in = [&](const Group& group, int number) {
    for (const Instr* root : group.roots) Of(*root).home = number;
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
  std::vector<Region> regions;
  Try(change, regions);
  return regions;
}

void Draft::Try(const Change& change, std::vector<Region>& regions) {
  if (regions.size() < change.added.size()) regions.resize(change.added.size());
  Rehome(change, true);
  auto next = static_cast<int>(groups_.size());
  for (size_t i = 0; i < change.added.size(); ++i)
    FindRegion(change.added[i], next + static_cast<int>(i), regions[i]);
  Rehome(change, false);
}

void Draft::Link(int number, bool add) {
  auto link = [&](std::vector<int>& list) {
    if (add) {
      list.push_back(number);
    } else {
      std::erase(list, number);
    }
  };
  ForNeeds(region(number), [&](const Instr* value) { link(readers_[value]); });
  for (const Instr* instr : region(number).instrs) link(computed_[instr]);
}

void Draft::Apply(const Change& change, std::vector<Region> regions, std::vector<RegionKey> keys) {
  int next = static_cast<int>(groups_.size());
  bool narrows = IsNarrowing(change);
  if (IsMerge(change)) {
    group_order_.Merge(*this, change.removed[0], change.removed[1], next);
  } else if (narrows) {
    for (size_t i = 0; i < change.added.size(); ++i)
      group_order_.Replace(HomeOf(*change.added[i].roots[0]), next + static_cast<int>(i));
  } else {
    group_order_.Forget();
  }
  for (int i : change.removed) Link(i, false);
  Rehome(change, true);
  for (int i : change.removed) groups_[static_cast<size_t>(i)] = {};
  for (size_t i = 0; i < regions.size(); ++i)
    AddGroup(change.added[i], std::move(regions[i]), std::move(keys[i]));
  for (int i = next; narrows && i < static_cast<int>(groups_.size()); ++i)
    if (!group_order_.Fits(*this, region(i), i)) return group_order_.Forget();
}

bool Draft::IsCurrent(const Change& change) const {
  auto is_removed = [&](int group) {
    return std::find(change.removed.begin(), change.removed.end(), group) != change.removed.end();
  };
  auto is_kept = [&](const Instr* root) {
    return std::any_of(change.added.begin(), change.added.end(),
                       [&](const Group& group) { return IsDrafted(group.roots, root); });
  };
  for (int i : change.removed) {
    if (!IsThere(i)) return false;
    for (const Instr* root : group(i).roots)
      if (!is_kept(root) && !std::all_of(readers_[root].begin(), readers_[root].end(), is_removed))
        return false;
  }
  return true;
}

bool Draft::IsMerge(const Change& change) const {
  return change.added.size() == 1 && change.removed.size() == 2 && !IsNarrowing(change);
}

// Groups lose roots, and compute more themselves: each needs what it needed before, at last, unless
// something is computed again.
bool Draft::IsNarrowing(const Change& change) const {
  for (auto group = change.added.begin(); group != change.added.end(); ++group) {
    int home = HomeOf(*group->roots[0]);
    auto is_home = [&](const Instr* root) { return HomeOf(*root) == home; };
    bool again = std::any_of(change.added.begin(), group,
                             [&](const Group& before) { return is_home(before.roots[0]); });
    if (home < 0 || again || !std::ranges::all_of(group->roots, is_home)) return false;
  }
  return true;
}

bool Draft::MakesCycle(const Change& change, const std::vector<Region>& regions) {
  if (IsNarrowing(change)) {
    bool fits = true;
    for (size_t i = 0; fits && i < regions.size(); ++i)
      fits = group_order_.Fits(*this, regions[i], HomeOf(*change.added[i].roots[0]));
    if (fits) return false;
  }
  if (IsMerge(change)) return LiesBetween(change);
  return FindsCycle(change, regions);
}

bool Draft::FindsCycle(const Change& change, const std::vector<Region>& regions) const {
  // From what the new groups make, along those who need it, back to what they need.
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
      for (int reader : readers_[instr])
        if (!gone.contains(reader))
          for (const Instr* root : region(reader).roots) open.push_back(root);
      for (const Instr* user : instr->users())
        if (IsOutside(*user)) open.push_back(user);
    }
  }
  return false;
}

}  // namespace tokamak
