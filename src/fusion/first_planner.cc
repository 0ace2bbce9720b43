// The first planner: producers into consumers, from the last instruction to the first.
//
// An instruction whose users all sit in one region joins it, if a generator takes it; one with
// users in several joins all of them when it costs less to compute again than to store. One that
// others need as an array joins a region of its users as another root; a reduction also one that
// folds the same arrays. What is left begins a region of its own. A region that turns out to have
// no kernel is taken apart and the computation is planned again.

#include "fusion/first_planner.h"

#include <algorithm>

#include "fusion/regions.h"
#include "fusion/values.h"
#include "gen/library/contraction.h"
#include "gen/library/sorts.h"

namespace tokamak {
namespace {

constexpr int kFirstMaxRounds = 20;
// Regions among which one is looked for that reads the same arrays.
constexpr size_t kLookBack = 16;
// A larger array of one value is written when it is needed, not kept.
constexpr int64_t kFirstMaxStoredSplat = 4096;

class Planner {
 public:
  Planner(KernelMemo& kernels, bool fuse, DecisionLog& log)
      : kernels_(kernels),
        computation_(kernels.computation()),
        machine_(kernels.machine()),
        fuse_(fuse),
        log_(log),
        probes_(computation_, machine_),
        order_(OrderFromRoot(computation_)),
        alone_(computation_, false),
        sealed_(computation_, false),
        host_(computation_) {}

  ComputationPlan Run() {
    for (int round = 0;; ++round) {
      RegionTable table(computation_, order_, machine_, probes_);
      records_.clear();
      for (auto it = order_.rbegin(); it != order_.rend(); ++it) Place(**it, table);
      ComputationPlan plan(computation_);
      if (Build(table, plan, round) || round == kFirstMaxRounds) {
        for (Decision& record : records_) log_.Add(std::move(record));
        return plan;
      }
    }
  }

 private:
  // Why the instruction is no part of any kernel; "" when it may be.
  std::string WhyHost(const Instr& instr) {
    if (!host_[&instr].empty()) return host_[&instr];
    host_[&instr] = WhyNoKernel(instr, machine_);
    return host_[&instr];
  }

  void Place(const Instr& instr, RegionTable& table) {
    if (IsKernelless(instr) || IsMemoryConstant(instr)) return;
    // Parts of a reduce with several results follow it.
    if (instr.op() == Op::kGetTupleElement) return PlacePart(instr, table);
    if (IsForLibrary(instr, machine_) || IsForRuntime(instr, machine_)) return;
    if (!WhyHost(instr).empty()) return;
    bool wanted = table.IsNeededAsArray(instr);
    std::vector<int> users = table.RegionsOfUsers(instr);
    if (!wanted && users.empty()) return;  // dead
    if (IsImmediate(instr) && (!wanted || instr.shape().ByteSize() <= kFirstMaxStoredSplat)) return;
    if (fuse_ && !alone_[&instr] && !users.empty() && Join(instr, wanted, users, table)) return;
    if (IsAlias(instr) && CanBeAlias(instr)) return;
    if (fuse_ && !alone_[&instr] && JoinBeside(instr, table)) return;
    table.Begin(instr);
  }

  bool AnySealed(const std::vector<int>& regions, const RegionTable& table) const {
    return std::any_of(regions.begin(), regions.end(),
                       [&](int region) { return sealed_[table.region(region).roots[0]]; });
  }

  // Reductions that read the same arrays go together: what they read is read once.
  bool JoinBeside(const Instr& instr, RegionTable& table) {
    if (instr.op() != Op::kReduce && !instr.info().Is(kElementwise)) return false;
    for (size_t i = table.size(); i-- > 0 && i + kLookBack > table.size();) {
      int region = static_cast<int>(i);
      if (AnySealed({region}, table) || !table.WhyNotBeside(instr, region).empty()) continue;
      table.AddRoot(instr, region);
      Record(instr, table, region, Verdict::kTaken, "fusion.beside",
             "it reads or computes the same");
      return true;
    }
    return false;
  }

  static bool CanBeAlias(const Instr& instr) { return !IsImmediate(*instr.operand(0)); }

  void PlacePart(const Instr& part, RegionTable& table) {
    const Instr& whole = *part.operand(0);
    if (!HasParts(whole) || !WhyHost(whole).empty() || alone_[&whole]) return;
    std::vector<int> users = table.RegionsOfUsers(part);
    if (fuse_ && users.size() == 1 && !table.IsNeededAsArray(part)) table.Add(part, users[0]);
  }

  bool Join(const Instr& instr, bool wanted, const std::vector<int>& users, RegionTable& table) {
    std::string why;
    if (!wanted) {
      bool all = true;
      for (int region : users) {
        why = table.WhyNot(instr, region, users.size());
        all = all && why.empty();
        if (!why.empty()) break;
      }
      if (all) {
        for (int region : users) {
          table.Add(instr, region);
          Record(instr, table, region, Verdict::kTaken, "fusion.not-stored",
                 std::to_string(BytesOfParts(instr)) + " bytes are not stored");
        }
        return true;
      }
    }
    // Kept and consumed, or needed by several: one region may have it as another root.
    if (wanted || users.size() > 1) {
      for (int region : users) {
        why = table.WhyNotRoot(instr, region);
        if (why.empty()) {
          table.AddRoot(instr, region);
          Record(instr, table, region, Verdict::kTaken, "fusion.kept-and-used", "");
          return true;
        }
      }
    }
    Record(instr, table, users[0], Verdict::kRejected, "fusion.refused", why);
    return false;
  }

  void Record(const Instr& instr, const RegionTable& table, int region, Verdict verdict,
              std::string_view rule, std::string because) {
    records_.push_back({.pass = "fuse",
                        .rule = rule,
                        .verdict = verdict,
                        .subject = LabelOf(instr),
                        .other = LabelOf(*table.region(region).roots[0]),
                        .origins = instr.origins(),
                        .because = std::move(because)});
  }

  // Makes the kernels. Of a region that has none, the instructions are marked, and false is the
  // answer.
  bool Build(const RegionTable& table, ComputationPlan& plan, int round) {
    bool all = true;
    std::vector<Region> regions;
    std::vector<std::shared_ptr<const MadeKernel>> made;
    for (int i = 0; i < static_cast<int>(table.size()); ++i) {
      regions.push_back(table.Finish(i));
      made.push_back(kernels_.Make(regions.back(), table.region(i).shape.kind));
      const BuildOutcome& outcome = made.back()->outcome;
      if (!outcome.built) MarkRefused(regions.back(), outcome.why_not, round);
      all = all && outcome.built;
    }
    if (!all && round < kFirstMaxRounds) return false;
    for (size_t i = 0; i < regions.size(); ++i) {
      if (!made[i]->outcome.built) continue;
      for (const Instr* root : regions[i].roots)
        plan.kernel_of[root] = static_cast<int>(plan.kernels.size());
      BuiltKernel built = KernelFor(regions[i], *made[i], NameOfKernel(regions[i]));
      plan.kernels.push_back({std::move(regions[i]), made[i]->kind, std::move(built)});
    }
    for (const Instr* instr : order_) {
      plan.inside[instr] = table.IsInside(*instr) && plan.kernel_of[instr] < 0;
      plan.why_host[instr] = host_[instr];
    }
    return all;
  }

  void MarkRefused(const Region& region, const std::string& why, int round) {
    bool single = region.instrs.size() == 1;
    log_.Add({.pass = "fuse",
              .rule = single ? "fusion.no-kernel" : "fusion.taken-apart",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(*region.roots[0]),
              .origins = region.roots[0]->origins(),
              .because = why});
    for (const Instr* instr : region.instrs) {
      // One that was by itself, and all of the last round, have no kernel. What began a region to
      // which others came is tried without them.
      if (single || round + 1 >= kFirstMaxRounds) host_[instr] = why;
      sealed_[instr] = alone_[instr];
      alone_[instr] = true;
    }
  }

  KernelMemo& kernels_;
  const Computation& computation_;
  const Machine& machine_;
  bool fuse_;
  DecisionLog& log_;
  KernelProbes probes_;
  std::vector<Instr*> order_;
  std::vector<Decision> records_;  // of this round
  InstrMap<bool> alone_;           // joins no region
  InstrMap<bool> sealed_;          // nothing joins the region that it began
  InstrMap<std::string> host_;
};

}  // namespace

ComputationPlan PlanFirst(KernelMemo& kernels, bool fuse, DecisionLog& log) {
  return Planner(kernels, fuse, log).Run();
}

}  // namespace tokamak
