#include "fusion/fit_memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "fusion/evaluated_move.h"
#include "fusion/instr_predicates.h"
#include "fusion/moves.h"
#include "fusion/search.h"
#include "fusion/unit_graph.h"

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
      bytes += ResultBytes(*instr);
  return bytes;
}

class MemoryFitter {
 public:
  MemoryFitter(CandidatePlan& candidate, RegionCosts& costs, int64_t limit_bytes, DecisionLog& log)
      : candidate_(candidate), costs_(costs), limit_bytes_(limit_bytes), log_(log) {}

  void Run() {
    int64_t peak = PeakTemporaryBytes(candidate_);
    for (int made = 0; peak > limit_bytes_ && made < kMemoryMaxMoves; ++made) {
      int64_t less = MakeBest(peak);
      if (less >= peak) break;
      peak = less;
    }
    if (peak > limit_bytes_)
      log_.Add(
          {.pass = "fuse",
           .rule = "fusion.memory",
           .verdict = Verdict::kRejected,
           .subject = candidate_.computation().name(),
           .because = fmt::format("{} bytes of temporary arrays, {} at most", peak, limit_bytes_)});
  }

 private:
  // Applies the move that leads to the smallest peak. Returns the new peak.
  int64_t MakeBest(int64_t peak) {
    int64_t least = peak;
    EvaluatedMove best;
    size_t tries = 0;
    for (int group : GroupsAtPeak())
      for (Move& move : MovesOf(candidate_, group, costs_.chain_slices())) {
        if (tries >= kMaxTries) break;
        std::vector<FusedRegion> regions = candidate_.RegionsAfter(move.change);
        if (!IsLegal(move.change, regions, candidate_, costs_)) continue;
        ++tries;
        CandidatePlan changed = candidate_;
        changed.Apply(move.change);
        int64_t after = PeakTemporaryBytes(changed);
        if (after >= least) continue;
        least = after;
        best = {.move = std::move(move), .hash = 0, .before_us = 0, .after_us = 0};
        for (int removed : best.move.change.removed)
          best.before_us +=
              costs_.Estimate(candidate_.region(removed), candidate_.GroupHash(removed));
        for (const FusedRegion& region : regions)
          best.after_us += costs_.Estimate(region, candidate_.RegionHash(region));
      }
    if (least >= peak) return peak;
    candidate_.Apply(best.move.change);
    Decision record = DecisionOf(best, Verdict::kAccepted);
    record.because =
        fmt::format("{} bytes of temporary arrays, was {}, {} at most", least, peak, limit_bytes_);
    log_.Add(std::move(record));
    return least;
  }

  // The groups that keep most bytes alive at the peak, and their consumers.
  std::vector<int> GroupsAtPeak() const {
    Sketch sketch(candidate_);
    UnitGraph::Memory memory = sketch.Memory();
    std::vector<size_t> kernels;
    for (size_t i = 0; i < sketch.groups.size(); ++i)
      if (i < memory.bytes_at_peak.size() && memory.bytes_at_peak[i] > 0) kernels.push_back(i);
    std::stable_sort(kernels.begin(), kernels.end(), [&](size_t x, size_t y) {
      return memory.bytes_at_peak[x] > memory.bytes_at_peak[y];
    });
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
  int64_t limit_bytes_;
  DecisionLog& log_;
};

}  // namespace

int64_t PeakTemporaryBytes(const CandidatePlan& candidate) {
  return Sketch(candidate).Memory().peak_bytes;
}

bool FitsMemory(const CandidatePlan& candidate, int64_t limit_bytes) {
  // The cheap upper bound first.
  return StoredBytes(candidate) <= limit_bytes || PeakTemporaryBytes(candidate) <= limit_bytes;
}

void FitMemory(CandidatePlan& candidate, RegionCosts& costs, int64_t limit_bytes,
               DecisionLog& log) {
  if (!FitsMemory(candidate, limit_bytes)) MemoryFitter(candidate, costs, limit_bytes, log).Run();
}

}  // namespace tokamak
