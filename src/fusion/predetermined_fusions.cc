#include "fusion/predetermined_fusions.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "analysis/effects.h"
#include "fusion/values.h"
#include "gen/library/contraction.h"
#include "gen/library/sorts.h"

namespace tokamak {
namespace {

// Bytes; a larger splat constant is filled by a kernel when it is needed instead of being kept in
// memory. Chosen, as in first_planner.cc.
constexpr int64_t kMaxStoredSplat = 4096;

}  // namespace

PredeterminedFusions::PredeterminedFusions(const Module& module, const FusionTags& tags) {
  for (size_t i = 0; i < tags.of.size(); ++i)
    if (!tags.of[i].empty()) tags_[module.computations()[i].get()] = &tags.of[i];
}

FusionTag PredeterminedFusions::TagOf(const Instr& instr) const {
  auto it = tags_.find(instr.parent());
  return it == tags_.end() ? FusionTag{} : (*it->second)[static_cast<size_t>(instr.id())];
}

namespace {

// The instructions of a computation that belong to kernels.
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

  // Whether a kernel must compute it, alone or with others.
  bool IsKernels(const Instr& instr) const {
    if (!live_[&instr] || IsKernelless(instr) || IsMemoryConstant(instr)) return false;
    if (instr.op() == Op::kGetTupleElement) return false;
    if (IsForLibrary(instr, machine_) || IsForRuntime(instr, machine_)) return false;
    if (!WhyNoKernel(instr, machine_).empty()) return false;
    return !IsImmediate(instr) || (NeedsArray(instr) && instr.shape().ByteSize() > kMaxStoredSplat);
  }

  // Whether it is not part of a kernel, so that it splits the fusion that contains it.
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

Cut PredeterminedFusions::CutOf(const Computation& computation, const Machine& machine) const {
  Cut cut;
  Cutter cutter(computation, machine);
  std::unordered_set<int> divided;
  for (const Instr* instr : cutter.order()) {
    int fusion = TagOf(*instr).fusion;
    auto is_in = [&](const Instr* other) { return TagOf(*other).fusion == fusion; };
    // An update is done in place: it must be the last instruction of its kernel, and the array that
    // it updates must be in memory.
    bool updates = IsUpdate(*instr) &&
                   (is_in(instr->operand(0)) || std::ranges::any_of(instr->users(), is_in));
    if (fusion >= 0 && (updates || cutter.Divides(*instr))) divided.insert(fusion);
  }
  std::map<std::pair<int, int>, size_t> region_of;  // by fusion and part of a horizontal fusion
  std::map<int, std::vector<int>> regions_of;       // by fusion
  InstrMap<int> numbers(computation, -1);
  for (const Instr* instr : cutter.order()) {
    if (!cutter.IsKernels(*instr)) continue;
    FusionTag tag = TagOf(*instr);
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
    if (regions.size() > 1) cut.launch_groups.push_back(std::move(regions));
  return cut;
}

}  // namespace tokamak
