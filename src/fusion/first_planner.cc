// The baseline planner: fuses producers into consumers, from the last instruction to the first.
//
// An instruction whose users are all in one region joins it if a generator supports that. One with
// users in several regions joins all of them if recomputing it is cheaper than storing it. One that
// must be in memory joins a region of its users as another root; a reduction also joins a region
// that reduces the same arrays. Any other instruction starts a region. If a region turns out to
// have no kernel, its instructions are marked to stay alone and the computation is planned again.

#include "fusion/first_planner.h"

#include <algorithm>

#include "fusion/regions.h"
#include "fusion/values.h"
#include "gen/library/contraction.h"
#include "gen/library/sorts.h"

namespace tokamak {
namespace {

// Attempts at a plan in which all regions have kernels. Chosen.
constexpr int kFirstMaxIterations = 20;
// How many recent regions are searched for one that reads the same arrays. Chosen.
constexpr size_t kLookBack = 16;
// Bytes; a larger splat constant is filled by a kernel when it is needed instead of being kept in
// memory. Chosen.
constexpr int64_t kFirstMaxStoredSplat = 4096;

class FirstPlanner {
 public:
  FirstPlanner(KernelMemo& kernels, bool fuse, DecisionLog& log)
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
    for (int iteration = 0;; ++iteration) {
      OpenRegions table(computation_, order_, machine_, probes_);
      records_.clear();
      for (auto it = order_.rbegin(); it != order_.rend(); ++it) Assign(**it, table);
      ComputationPlan plan(computation_);
      if (Build(table, plan, iteration) || iteration == kFirstMaxIterations) {
        for (Decision& record : records_) log_.Add(std::move(record));
        return plan;
      }
    }
  }

 private:
  // Why no kernel can contain the instruction; empty if one may.
  std::string WhyHost(const Instr& instr) {
    if (!host_[&instr].empty()) return host_[&instr];
    host_[&instr] = WhyNoKernel(instr, machine_);
    return host_[&instr];
  }

  void Assign(const Instr& instr, OpenRegions& table) {
    if (IsKernelless(instr) || IsMemoryConstant(instr)) return;
    // Elements of a tuple-shaped reduce follow it.
    if (instr.op() == Op::kGetTupleElement) return AssignTupleElement(instr, table);
    if (IsForLibrary(instr, machine_) || IsForRuntime(instr, machine_)) return;
    if (!WhyHost(instr).empty()) return;
    bool wanted = table.IsNeededAsArray(instr);
    std::vector<int> users = table.ConsumerRegions(instr);
    if (!wanted && users.empty()) return;  // dead
    if (IsImmediate(instr) && (!wanted || instr.shape().ByteSize() <= kFirstMaxStoredSplat)) return;
    if (fuse_ && !alone_[&instr] && !users.empty() && Join(instr, wanted, users, table)) return;
    if (IsAlias(instr) && CanBeAlias(instr)) return;
    if (fuse_ && !alone_[&instr] && JoinBeside(instr, table)) return;
    table.Begin(instr);
  }

  bool AnySealed(const std::vector<int>& regions, const OpenRegions& table) const {
    return std::any_of(regions.begin(), regions.end(),
                       [&](int region) { return sealed_[table.region(region).roots[0]]; });
  }

  // Reductions that read the same arrays share a kernel: the arrays are loaded once.
  bool JoinBeside(const Instr& instr, OpenRegions& table) {
    if (instr.op() != Op::kReduce && !instr.info().Is(kElementwise)) return false;
    for (size_t i = table.size(); i-- > 0 && i + kLookBack > table.size();) {
      int region = static_cast<int>(i);
      if (AnySealed({region}, table) || !table.WhyNotBeside(instr, region).empty()) continue;
      table.AddRoot(instr, region);
      Record(instr, table, region, Verdict::kAccepted, "fusion.shared-input",
             "it shares inputs or a subexpression");
      return true;
    }
    return false;
  }

  static bool CanBeAlias(const Instr& instr) { return !IsImmediate(*instr.operand(0)); }

  void AssignTupleElement(const Instr& part, OpenRegions& table) {
    const Instr& whole = *part.operand(0);
    if (!HasParts(whole) || !WhyHost(whole).empty() || alone_[&whole]) return;
    std::vector<int> users = table.ConsumerRegions(part);
    if (fuse_ && users.size() == 1 && !table.IsNeededAsArray(part)) table.Add(part, users[0]);
  }

  bool Join(const Instr& instr, bool wanted, const std::vector<int>& users, OpenRegions& table) {
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
          Record(instr, table, region, Verdict::kAccepted, "fusion.into-users",
                 std::to_string(BytesOfParts(instr)) + " bytes are not stored");
        }
        return true;
      }
    }
    // The value must be stored, or several regions need it: one of them may get it as another root.
    if (wanted || users.size() > 1) {
      for (int region : users) {
        why = table.WhyNotRoot(instr, region);
        if (why.empty()) {
          table.AddRoot(instr, region);
          Record(instr, table, region, Verdict::kAccepted, "fusion.multi-output", "");
          return true;
        }
      }
    }
    Record(instr, table, users[0], Verdict::kRejected, "fusion.rejected", why);
    return false;
  }

  void Record(const Instr& instr, const OpenRegions& table, int region, Verdict verdict,
              std::string_view rule, std::string because) {
    records_.push_back({.pass = "fuse",
                        .rule = rule,
                        .verdict = verdict,
                        .subject = LabelOf(instr),
                        .other = LabelOf(*table.region(region).roots[0]),
                        .origins = instr.origins(),
                        .because = std::move(because)});
  }

  // Builds the kernels. If a region has none, marks its instructions and returns false.
  bool Build(const OpenRegions& table, ComputationPlan& plan, int iteration) {
    bool all = true;
    std::vector<FusedRegion> regions;
    std::vector<std::shared_ptr<const MadeKernel>> made;
    for (int i = 0; i < static_cast<int>(table.size()); ++i) {
      regions.push_back(table.Finish(i));
      made.push_back(kernels_.Make(regions.back(), table.region(i).shape.kind));
      const BuildOutcome& outcome = made.back()->outcome;
      if (!outcome.built) MarkRejected(regions.back(), outcome.why_not, iteration);
      all = all && outcome.built;
    }
    if (!all && iteration < kFirstMaxIterations) return false;
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

  void MarkRejected(const FusedRegion& region, const std::string& why, int iteration) {
    bool single = region.instrs.size() == 1;
    log_.Add({.pass = "fuse",
              .rule = single ? "fusion.no-kernel" : "fusion.unsupported",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(*region.roots[0]),
              .origins = region.roots[0]->origins(),
              .because = why});
    for (const Instr* instr : region.instrs) {
      // A single instruction without a kernel becomes a host step, and so does everything that
      // fails in the last iteration. An instruction that failed with others is retried without
      // them.
      if (single || iteration + 1 >= kFirstMaxIterations) host_[instr] = why;
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
  std::vector<Decision> records_;  // of this iteration
  InstrMap<bool> alone_;           // may not join a region
  InstrMap<bool> sealed_;          // no instruction may join the region that it started
  InstrMap<std::string> host_;
};

}  // namespace

ComputationPlan PlanFirst(KernelMemo& kernels, bool fuse, DecisionLog& log) {
  return FirstPlanner(kernels, fuse, log).Run();
}

}  // namespace tokamak
