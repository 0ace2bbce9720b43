#include "fusion/given.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_set>

#include "analysis/effects.h"
#include "fusion/values.h"
#include "gen/library/contraction.h"
#include "gen/library/sorts.h"
#include "rewrite/bodies.h"
#include "rewrite/fuse/facts.h"

namespace tokamak {
namespace {

// A larger array of one value is written when it is needed, not kept.
constexpr int64_t kGivenMaxStoredSplat = 4096;

// Numbers the parts of a pasted body that have no array in common.
std::unordered_map<const Instr*, int> PartsOfBody(const std::vector<Instr*>& made) {
  std::unordered_map<const Instr*, size_t> places;
  for (size_t i = 0; i < made.size(); ++i) places[made[i]] = i;
  std::vector<size_t> above(made.size());
  std::iota(above.begin(), above.end(), size_t{0});
  auto first_of = [&](size_t i) {
    while (above[i] != i) i = above[i] = above[above[i]];
    return i;
  };
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i]->op() == Op::kTuple) continue;
    for (const Instr* operand : made[i]->operands()) {
      if (operand->shape().IsScalar() && !places.contains(operand)) continue;
      // Of an array that is read, the first reader: siblings stay together.
      size_t other = places.try_emplace(operand, i).first->second;
      above[first_of(i)] = first_of(other);
    }
  }
  std::map<size_t, int> numbers;
  std::unordered_map<const Instr*, int> parts;
  for (size_t i = 0; i < made.size(); ++i)
    parts[made[i]] =
        numbers.try_emplace(first_of(i), static_cast<int>(numbers.size())).first->second;
  return parts;
}

// Whoever takes a result out of the tuple uses the result itself. Gives what became of no use.
std::vector<Instr*> Bypass(Instr* tuple) {
  std::vector<Instr*> unused;
  Computation* parent = tuple->parent();
  for (Instr* user : fuse::DistinctUsers(*tuple)) {
    if (user->op() != Op::kGetTupleElement || user == parent->root()) continue;
    if (IsPinned(*user)) continue;
    parent->ReplaceUses(user,
                        tuple->operand(static_cast<size_t>(user->attrs<TupleIndexAttrs>().index)));
    unused.push_back(user);
  }
  return unused;
}

}  // namespace

GivenFusions GivenFusions::Dissolve(Module& module) {
  GivenFusions given;
  for (Computation* computation : fuse::RunningComputations(module)) given.DissolveIn(*computation);
  return given;
}

void GivenFusions::DissolveIn(Computation& computation) {
  std::vector<Instr*> order, removed;
  std::vector<Tag> tags;
  auto place = [&](Instr* instr, Tag tag) {
    order.push_back(instr);
    tags.push_back(tag);
  };
  for (Instr* instr : computation.PostOrder()) {
    if (instr->op() != Op::kFusion) {
      place(instr, {});
      continue;
    }
    std::vector<Instr*> made;
    Instr* root = PasteBody(*instr->called(0), instr->operands(), computation, made);
    std::unordered_map<const Instr*, int> parts;
    if (fuse::IsHorizontal(*instr)) parts = PartsOfBody(made);
    for (Instr* copy : made) {
      auto part = parts.find(copy);
      place(copy, {count_, part == parts.end() ? 0 : part->second});
    }
    ++count_;
    computation.ReplaceUses(instr, root);
    removed.push_back(instr);
    if (root->op() != Op::kTuple) continue;
    for (Instr* unused : Bypass(root)) removed.push_back(unused);
    if (root->users().empty() && computation.root() != root) removed.push_back(root);
  }
  // Users before operands: a tuple goes after what took it apart.
  std::unordered_set<const Instr*> gone(removed.begin(), removed.end());
  for (size_t left = removed.size(); !removed.empty(); left = removed.size()) {
    std::erase_if(removed, [&](Instr* instr) {
      if (!instr->users().empty()) return false;
      computation.Remove(instr);
      return true;
    });
    if (removed.size() == left) break;
  }
  std::vector<Instr*> kept;
  std::vector<Tag> kept_tags;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i]->is_removed()) continue;
    kept.push_back(order[i]);
    kept_tags.push_back(tags[i]);
  }
  computation.SetOrder(kept);  // ids are the places
  tags_[&computation] = std::move(kept_tags);
}

GivenFusions::Tag GivenFusions::TagOf(const Instr& instr) const {
  auto it = tags_.find(instr.parent());
  return it == tags_.end() ? Tag{} : it->second[static_cast<size_t>(instr.id())];
}

namespace {

// What is to be cut of a computation.
class Cutter {
 public:
  Cutter(const Computation& computation, const Machine& machine)
      : computation_(computation),
        machine_(machine),
        order_(computation.PostOrder()),
        live_(computation, false) {
    for (auto it = order_.rbegin(); it != order_.rend(); ++it)
      live_[*it] = *it == computation.root() || !IsPlain(**it) ||
                   std::ranges::any_of((*it)->users(), [&](Instr* user) { return live_[user]; });
  }

  const std::vector<Instr*>& order() const { return order_; }

  // A kernel has to make it, by itself or with others.
  bool IsKernels(const Instr& instr) const {
    if (!live_[&instr] || IsKernelless(instr) || IsMemoryConstant(instr)) return false;
    if (instr.op() == Op::kGetTupleElement) return false;
    if (IsForLibrary(instr, machine_) || IsForRuntime(instr, machine_)) return false;
    if (!WhyNoKernel(instr, machine_).empty()) return false;
    return !IsImmediate(instr) ||
           (NeedsArray(instr) && instr.shape().ByteSize() > kGivenMaxStoredSplat);
  }

  // It makes a step between two parts of the fusion that it is in.
  bool Divides(const Instr& instr) const {
    return live_[&instr] && !IsKernels(instr) && instr.op() != Op::kConstant &&
           instr.op() != Op::kTuple;
  }

 private:
  bool NeedsArray(const Instr& instr) const {
    return computation_.root() == &instr ||
           std::ranges::any_of(instr.users(), [&](const Instr* user) {
             return (IsUpdate(*user) && user->operand(0) == &instr) || IsKernelless(*user) ||
                    user->op() == Op::kGetTupleElement || IsForLibrary(*user, machine_) ||
                    !WhyNoKernel(*user, machine_).empty();
           });
  }

  const Computation& computation_;
  const Machine& machine_;
  std::vector<Instr*> order_;
  InstrMap<bool> live_;
};

}  // namespace

Cut GivenFusions::CutOf(const Computation& computation, const Machine& machine) const {
  Cut cut;
  Cutter cutter(computation, machine);
  std::unordered_set<int> divided;
  for (const Instr* instr : cutter.order()) {
    int fusion = TagOf(*instr).fusion;
    auto is_in = [&](const Instr* other) { return TagOf(*other).fusion == fusion; };
    // An update is made in place: it is the last of its kernel, and what it updates is in memory.
    bool updates = IsUpdate(*instr) &&
                   (is_in(instr->operand(0)) || std::ranges::any_of(instr->users(), is_in));
    if (fusion >= 0 && (updates || cutter.Divides(*instr))) divided.insert(fusion);
  }
  std::map<std::pair<int, int>, size_t> region_of;  // by fusion and part
  std::map<int, std::vector<int>> regions_of;       // by fusion
  InstrMap<int> numbers(computation, -1);
  for (const Instr* instr : cutter.order()) {
    if (!cutter.IsKernels(*instr)) continue;
    Tag tag = TagOf(*instr);
    bool alone = tag.fusion < 0 || divided.contains(tag.fusion);
    if (alone && IsAlias(*instr) && !IsImmediate(*instr->operand(0))) continue;
    size_t number = cut.regions.size();
    if (!alone) number = region_of.try_emplace({tag.fusion, tag.part}, number).first->second;
    if (number == cut.regions.size()) {
      cut.regions.emplace_back();
      if (!alone) regions_of[tag.fusion].push_back(static_cast<int>(number));
    }
    cut.regions[number].instrs.push_back(instr);
    numbers[instr] = static_cast<int>(number);
  }
  for (CutRegion& region : cut.regions) {
    for (const Instr* instr : region.instrs) {
      bool leaves = computation.root() == instr ||
                    std::ranges::any_of(instr->users(), [&](const Instr* user) {
                      return numbers[user] != numbers[instr];
                    });
      if (leaves) region.roots.push_back(instr);
    }
  }
  for (auto& [fusion, regions] : regions_of)
    if (regions.size() > 1) cut.packs.push_back(std::move(regions));
  return cut;
}

}  // namespace tokamak
