#include "fusion/fit_memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "fusion/cut.h"
#include "fusion/moves.h"
#include "fusion/priced_move.h"
#include "fusion/search.h"
#include "fusion/unit_graph.h"
#include "fusion/values.h"

namespace tokamak {
namespace {

// Moves that are made, and groups whose moves are tried for one of them, at most.
constexpr int kMemoryMaxMoves = 64;
constexpr size_t kMaxGroups = 8, kMaxTries = 32;

// The draft as a plan whose kernels nobody has made; and which group each kernel is.
struct Sketch {
  ComputationPlan plan;
  std::vector<int> groups;

  explicit Sketch(const Draft& draft) : plan(draft.computation()) {
    for (size_t i = 0; i < draft.size(); ++i) {
      auto group = static_cast<int>(i);
      if (!draft.IsThere(group)) continue;
      AddKernel(plan, {.region = draft.region(group), .kind = {}, .built = {}});
      groups.push_back(group);
    }
  }

  UnitGraph::Memory Memory() const {
    UnitGraph graph(plan);
    return graph.MemoryOf(graph.Places(std::vector<int>(plan.kernels.size(), -1)));
  }
};

// All that is stored, as if nothing were ever dead.
int64_t StoredBytes(const Draft& draft) {
  int64_t bytes = 0;
  for (const Instr* instr : draft.order())
    if (instr->op() != Op::kParameter && instr->op() != Op::kConstant &&
        (draft.HomeOf(*instr) >= 0 || (draft.IsOutside(*instr) && !IsAlias(*instr))))
      bytes += BytesOfParts(*instr);
  return bytes;
}

class Fitter {
 public:
  Fitter(Draft& draft, Pricer& pricer, int64_t limit, DecisionLog& log)
      : draft_(draft), pricer_(pricer), limit_(limit), log_(log) {}

  void Run() {
    int64_t peak = PeakOf(draft_);
    for (int made = 0; peak > limit_ && made < kMemoryMaxMoves; ++made) {
      int64_t less = MakeBest(peak);
      if (less >= peak) break;
      peak = less;
    }
    if (peak > limit_)
      log_.Add({.pass = "fuse",
                .rule = "fusion.memory",
                .verdict = Verdict::kRejected,
                .subject = draft_.computation().name(),
                .because = fmt::format("{} bytes of temporary arrays: {} at most", peak, limit_)});
  }

 private:
  // Makes the move after which the least is alive at a time; gives how much that is.
  int64_t MakeBest(int64_t peak) {
    int64_t least = peak;
    PricedMove best;
    size_t tries = 0;
    for (int group : GroupsAtPeak())
      for (Move& move : MovesOf(draft_, group)) {
        if (tries >= kMaxTries) break;
        std::vector<Region> regions = draft_.Try(move.change);
        if (!IsLegal(move.change, regions, draft_, pricer_)) continue;
        ++tries;
        Draft changed = draft_;
        changed.Apply(move.change);
        int64_t after = PeakOf(changed);
        if (after >= least) continue;
        least = after;
        best = {.move = std::move(move), .hash = 0, .before = 0, .after = 0};
        for (int removed : best.move.change.removed)
          best.before += pricer_.Estimate(draft_.region(removed), draft_.HashOf(removed));
        for (const Region& region : regions)
          best.after += pricer_.Estimate(region, draft_.HashOf(region));
      }
    if (least >= peak) return peak;
    draft_.Apply(best.move.change);
    Decision record = RecordOf(best, Verdict::kTaken);
    record.because =
        fmt::format("{} bytes of temporary arrays, before {}: {} at most", least, peak, limit_);
    log_.Add(std::move(record));
    return least;
  }

  // Those that hold most of what is alive where that is most of all.
  std::vector<int> GroupsAtPeak() const {
    Sketch sketch(draft_);
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
    // What is stored concerns those that read it: moves begin there.
    for (size_t kernel : kernels) {
      add(sketch.groups[kernel]);
      for (const Instr* root : draft_.group(sketch.groups[kernel]).roots)
        for (int reader : draft_.ReadersOf(*root)) add(reader);
    }
    return groups;
  }

  Draft& draft_;
  Pricer& pricer_;
  int64_t limit_;
  DecisionLog& log_;
};

}  // namespace

int64_t PeakOf(const Draft& draft) {
  return Sketch(draft).Memory().peak;
}

bool FitsMemory(const Draft& draft, int64_t limit) {
  // Few arrays fit, whenever they are dead.
  return StoredBytes(draft) <= limit || PeakOf(draft) <= limit;
}

void FitMemory(Draft& draft, Pricer& pricer, int64_t limit, DecisionLog& log) {
  if (!FitsMemory(draft, limit)) Fitter(draft, pricer, limit, log).Run();
}

}  // namespace tokamak
