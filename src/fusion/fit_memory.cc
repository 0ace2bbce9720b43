#include "fusion/fit_memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "fusion/cut.h"
#include "fusion/evaluated_move.h"
#include "fusion/moves.h"
#include "fusion/search.h"
#include "fusion/unit_graph.h"
#include "fusion/values.h"

namespace tokamak {
namespace {

// Moves applied; groups at the peak whose moves are tried per move, and tries per move. Chosen:
// bound planning time.
constexpr int kMemoryMaxMoves = 64;
constexpr size_t kMaxGroups = 8, kMaxTries = 32;

// The candidate as a plan without built kernels, and the group of each kernel.
struct Sketch {
  ComputationPlan plan;
  std::vector<int> groups;

  explicit Sketch(const CandidatePlan& candidate) : plan(candidate.computation()) {
    for (size_t i = 0; i < candidate.size(); ++i) {
      auto group = static_cast<int>(i);
      if (!candidate.IsLive(group)) continue;
      AddKernel(plan, {.region = candidate.region(group), .kind = {}, .built = {}});
      groups.push_back(group);
    }
  }

  UnitGraph::Memory Memory() const {
    UnitGraph graph(plan);
    return graph.MemoryOf(graph.ScheduleOf(std::vector<int>(plan.kernels.size(), -1)));
  }
};

// Total stored bytes, as if nothing were ever freed: an upper bound of the peak.
int64_t StoredBytes(const CandidatePlan& candidate) {
  int64_t bytes = 0;
  for (const Instr* instr : candidate.order())
    if (instr->op() != Op::kParameter && instr->op() != Op::kConstant &&
        (candidate.GroupOf(*instr) >= 0 ||
         (candidate.IsOutsideKernels(*instr) && !IsAlias(*instr))))
      bytes += BytesOfParts(*instr);
  return bytes;
}

class Fitter {
 public:
  Fitter(CandidatePlan& candidate, RegionCosts& costs, int64_t limit, DecisionLog& log)
      : candidate_(candidate), costs_(costs), limit_(limit), log_(log) {}

  void Run() {
    int64_t peak = PeakOf(candidate_);
    for (int made = 0; peak > limit_ && made < kMemoryMaxMoves; ++made) {
      int64_t less = MakeBest(peak);
      if (less >= peak) break;
      peak = less;
    }
    if (peak > limit_)
      log_.Add({.pass = "fuse",
                .rule = "fusion.memory",
                .verdict = Verdict::kRejected,
                .subject = candidate_.computation().name(),
                .because = fmt::format("{} bytes of temporary arrays, {} at most", peak, limit_)});
  }

 private:
  // Applies the move that leads to the smallest peak. Returns the new peak.
  int64_t MakeBest(int64_t peak) {
    int64_t least = peak;
    EvaluatedMove best;
    size_t tries = 0;
    for (int group : GroupsAtPeak())
      for (Move& move : MovesOf(candidate_, group)) {
        if (tries >= kMaxTries) break;
        std::vector<FusedRegion> regions = candidate_.Try(move.change);
        if (!IsLegal(move.change, regions, candidate_, costs_)) continue;
        ++tries;
        CandidatePlan changed = candidate_;
        changed.Apply(move.change);
        int64_t after = PeakOf(changed);
        if (after >= least) continue;
        least = after;
        best = {.move = std::move(move), .hash = 0, .before = 0, .after = 0};
        for (int removed : best.move.change.removed)
          best.before += costs_.Estimate(candidate_.region(removed), candidate_.HashOf(removed));
        for (const FusedRegion& region : regions)
          best.after += costs_.Estimate(region, candidate_.HashOf(region));
      }
    if (least >= peak) return peak;
    candidate_.Apply(best.move.change);
    Decision record = RecordOf(best, Verdict::kAccepted);
    record.because =
        fmt::format("{} bytes of temporary arrays, was {}, {} at most", least, peak, limit_);
    log_.Add(std::move(record));
    return least;
  }

  // The groups that keep most bytes alive at the peak, and their consumers.
  std::vector<int> GroupsAtPeak() const {
    Sketch sketch(candidate_);
    UnitGraph::Memory memory = sketch.Memory();
    std::vector<size_t> kernels;
    for (size_t i = 0; i < sketch.groups.size(); ++i)
      if (i < memory.held.size() && memory.held[i] > 0) kernels.push_back(i);
    std::stable_sort(kernels.begin(), kernels.end(),
                     [&](size_t x, size_t y) { return memory.held[x] > memory.held[y]; });
    if (kernels.size() > kMaxGroups) kernels.resize(kMaxGroups);
    std::vector<int> groups;
    auto add = [&](int group) {
      if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
    };
    // Moves of a stored value start at its consumers.
    for (size_t kernel : kernels) {
      add(sketch.groups[kernel]);
      for (const Instr* root : candidate_.group(sketch.groups[kernel]).roots)
        for (int consumer : candidate_.ConsumersOf(*root)) add(consumer);
    }
    return groups;
  }

  CandidatePlan& candidate_;
  RegionCosts& costs_;
  int64_t limit_;
  DecisionLog& log_;
};

}  // namespace

int64_t PeakOf(const CandidatePlan& candidate) {
  return Sketch(candidate).Memory().peak;
}

bool FitsMemory(const CandidatePlan& candidate, int64_t limit) {
  // The cheap upper bound first.
  return StoredBytes(candidate) <= limit || PeakOf(candidate) <= limit;
}

void FitMemory(CandidatePlan& candidate, RegionCosts& costs, int64_t limit, DecisionLog& log) {
  if (!FitsMemory(candidate, limit)) Fitter(candidate, costs, limit, log).Run();
}

}  // namespace tokamak
