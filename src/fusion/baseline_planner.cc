// The baseline planner: fuses producers into consumers, from the last instruction to the first.
//
// An instruction whose users are all in one region joins it if a generator supports that. One with
// users in several regions joins all of them if recomputing it is cheaper than storing it. One that
// must be in memory joins a region of its users as another root; a reduction also joins a region
// that reduces the same arrays. Any other instruction starts a region. If a region turns out to
// have no kernel, its instructions are marked to stay alone and the computation is planned again.

#include "fusion/baseline_planner.h"

#include <algorithm>

#include "fusion/baseline_regions.h"
#include "fusion/instr_predicates.h"
#include "fusion/make_region.h"
#include "gen/library/dot.h"
#include "gen/library/sorts.h"

namespace tokamak {
namespace {

// Attempts (iterations) at a plan in which all regions have kernels. Chosen: each isolates the
// instructions of regions that failed, and the last one runs what still fails on the host.
constexpr int kBaselineMaxIterations = 20;
// How many recent regions are searched for one that reads the same arrays. Chosen: siblings are
// close to each other, and a search of all regions would take quadratic time.
constexpr size_t kLookBack = 16;

class BaselinePlanner {
 public:
  BaselinePlanner(KernelCache& kernel_cache, bool fuse, DecisionLog& log)
      : kernel_cache_(kernel_cache),
        computation_(kernel_cache.computation()),
        machine_(kernel_cache.machine()),
        fuse_(fuse),
        log_(log),
        feasibility_(computation_, machine_),
        order_(OrderFromRoot(computation_)),
        alone_(computation_, false),
        sealed_(computation_, false),
        host_step_reasons_(computation_) {}

  ComputationPlan Run() {
    for (int iteration = 0;; ++iteration) {
      BaselineRegions table(computation_, order_, machine_, feasibility_);
      records_.clear();
      for (auto it = order_.rbegin(); it != order_.rend(); ++it) Assign(**it, table);
      ComputationPlan plan(computation_);
      if (Build(table, plan, iteration) || iteration == kBaselineMaxIterations) {
        for (Decision& record : records_) log_.Add(std::move(record));
        return plan;
      }
    }
  }

 private:
  // Why no kernel can contain the instruction; empty if one may.
  std::string WhyHostStep(const Instr& instr) {
    if (!host_step_reasons_[&instr].empty()) return host_step_reasons_[&instr];
    host_step_reasons_[&instr] = WhyNoKernel(instr, machine_);
    return host_step_reasons_[&instr];
  }

  void Assign(const Instr& instr, BaselineRegions& table) {
    if (IsNeverInKernel(instr) || IsMemoryConstant(instr)) return;
    // Elements of a tuple-shaped reduce follow it.
    if (instr.op() == Op::kGetTupleElement) return AssignTupleElement(instr, table);
    if (UsesLibrary(instr, machine_) || UsesRuntimeFunction(instr, machine_)) return;
    if (!WhyHostStep(instr).empty()) return;
    bool must_be_stored = table.MustBeStored(instr);
    std::vector<int> users = table.ConsumerRegions(instr);
    if (!must_be_stored && users.empty()) return;  // dead
    if (IsImmediate(instr) && (!must_be_stored || instr.shape().ByteSize() <= kMaxStoredSplat))
      return;
    if (fuse_ && !alone_[&instr] && !users.empty() && Join(instr, must_be_stored, users, table))
      return;
    if (IsAlias(instr) && CanBeAlias(instr)) return;
    if (fuse_ && !alone_[&instr] && JoinSibling(instr, table)) return;
    table.StartRegion(instr);
  }

  bool AnySealed(const std::vector<int>& regions, const BaselineRegions& table) const {
    return std::any_of(regions.begin(), regions.end(),
                       [&](int region) { return sealed_[table.region(region).roots[0]]; });
  }

  // Reductions that read the same arrays share a kernel: the arrays are loaded once.
  bool JoinSibling(const Instr& instr, BaselineRegions& table) {
    if (instr.op() != Op::kReduce && !instr.info().Is(kElementwise)) return false;
    for (size_t i = table.size(); i-- > 0 && i + kLookBack > table.size();) {
      int region = static_cast<int>(i);
      if (AnySealed({region}, table) || !table.WhyNotSiblingRoot(instr, region).empty()) continue;
      table.AddRoot(instr, region);
      Record(instr, table, region, Verdict::kAccepted, "fusion.shared-input",
             "it shares inputs or a subexpression");
      return true;
    }
    return false;
  }

  static bool CanBeAlias(const Instr& instr) { return !IsImmediate(*instr.operand(0)); }

  void AssignTupleElement(const Instr& element, BaselineRegions& table) {
    const Instr& whole = *element.operand(0);
    if (!IsMultiResultOp(whole) || !WhyHostStep(whole).empty() || alone_[&whole]) return;
    std::vector<int> users = table.ConsumerRegions(element);
    if (fuse_ && users.size() == 1 && !table.MustBeStored(element)) table.Add(element, users[0]);
  }

  bool Join(const Instr& instr, bool must_be_stored, const std::vector<int>& users,
            BaselineRegions& table) {
    std::string why;
    if (!must_be_stored) {
      bool all = true;
      for (int region : users) {
        why = table.WhyNotInternal(instr, region, users.size());
        all = all && why.empty();
        if (!why.empty()) break;
      }
      if (all) {
        for (int region : users) {
          table.Add(instr, region);
          Record(instr, table, region, Verdict::kAccepted, "fusion.into-users",
                 std::to_string(ResultBytes(instr)) + " bytes are not stored");
        }
        return true;
      }
    }
    // The value must be stored, or several regions need it: one of them may get it as another root.
    if (must_be_stored || users.size() > 1) {
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

  void Record(const Instr& instr, const BaselineRegions& table, int region, Verdict verdict,
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
  bool Build(const BaselineRegions& table, ComputationPlan& plan, int iteration) {
    bool all = true;
    std::vector<FusedRegion> regions;
    std::vector<std::shared_ptr<const KernelBuildResult>> results;
    for (int i = 0; i < static_cast<int>(table.size()); ++i) {
      regions.push_back(table.Finish(i));
      results.push_back(kernel_cache_.BuildOrGet(regions.back(), table.region(i).choice.kind));
      const BuildOutcome& outcome = results.back()->outcome;
      if (!outcome.built) MarkRejected(regions.back(), outcome.why_not, iteration);
      all = all && outcome.built;
    }
    if (!all && iteration < kBaselineMaxIterations) return false;
    for (size_t i = 0; i < regions.size(); ++i) {
      if (!results[i]->outcome.built) continue;
      for (const Instr* root : regions[i].roots)
        plan.kernel_of[root] = static_cast<int>(plan.kernels.size());
      BuiltKernel built = RebindKernel(regions[i], *results[i], KernelNameOf(regions[i]));
      plan.kernels.push_back({std::move(regions[i]), results[i]->kind, std::move(built)});
    }
    for (const Instr* instr : order_) {
      plan.is_internal[instr] = table.IsInAnyRegion(*instr) && plan.kernel_of[instr] < 0;
      plan.host_step_reason[instr] = host_step_reasons_[instr];
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
      if (single || iteration + 1 >= kBaselineMaxIterations) host_step_reasons_[instr] = why;
      sealed_[instr] = alone_[instr];
      alone_[instr] = true;
    }
  }

  KernelCache& kernel_cache_;
  const Computation& computation_;
  const Machine& machine_;
  bool fuse_;
  DecisionLog& log_;
  KernelFeasibilityCache feasibility_;
  std::vector<Instr*> order_;
  std::vector<Decision> records_;  // of this iteration
  InstrMap<bool> alone_;           // may not join a region
  InstrMap<bool> sealed_;          // no instruction may join the region that it started
  InstrMap<std::string> host_step_reasons_;
};

}  // namespace

ComputationPlan PlanBaseline(KernelCache& kernel_cache, DecisionLog& log) {
  return BaselinePlanner(kernel_cache, true, log).Run();
}

ComputationPlan PlanUnfused(KernelCache& kernel_cache, DecisionLog& log) {
  return BaselinePlanner(kernel_cache, false, log).Run();
}

}  // namespace tokamak
