// Which loops run as one launch. A launch that waits for the one before takes a while to begin and
// to end on the device; a meeting of teams that are there already takes less.

#include "lower/persistent.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "analysis/loops.h"
#include "cost/rates.h"
#include "cost/work.h"
#include "kernel/cluster.h"

namespace tokamak {
namespace {

// Microseconds: a byte read back, where the host decides whether another round follows.
constexpr double kReadBack = 15;
// Of what a phase takes: its teams have registers and memory for the largest of all phases.
constexpr double kCrowded = 0.05;
// A launch may run for so long, so that it can be stopped.
constexpr double kMostMicros = 250000;
// Rounds longer than this have nothing to gain.
constexpr double kLongRound = 2000;
constexpr int64_t kUnknownRounds = 16;
constexpr size_t kMostPhases = 48, kMostPlaces = 480;
constexpr int64_t kMostTeams = INT32_MAX / 4;
constexpr int kWarp = 32;

struct Phases {
  double work_us = 0;
  size_t count = 0, places = 0;
  int64_t threads = 0, uneven = 0;  // of the largest team; of one with barriers and a partial warp
};

class Chooser {
 public:
  Chooser(LoweredProgram& program, const Machine& machine, DecisionLog& log)
      : program_(program), machine_(machine), log_(log) {}

  void Visit(const std::vector<RunStep>& steps) {
    for (const RunStep& step : steps) {
      for (const std::vector<RunStep>& block : step.blocks) Visit(block);
      if (step.kind == StepKind::kWhile) Choose(step);
    }
  }

 private:
  void Choose(const RunStep& step) {
    const Instr& loop = *program_.loops[step.target];
    std::optional<WhileLoop> found = LoopOf(const_cast<Instr*>(&loop));  // looks only
    std::optional<uint64_t> rounds;
    if (found) rounds = TripCount(*found);
    Phases all;
    std::string why_not;
    if (!rounds && step.blocks[0].empty()) why_not = "its condition is a value that it carries";
    if (RunsInChunks(loop)) why_not = "it is launched again and again so that it can be stopped";
    if (!rounds && why_not.empty()) why_not = WhyNot(step.blocks[0], all);
    if (why_not.empty()) why_not = WhyNot(step.blocks[1], all);
    // Copies at the end of a round are for the last round alone: places take turns.
    all.places += 2 * step.blocks[2].size();
    if (why_not.empty() && all.count == 0) why_not = "its rounds do nothing";
    if (why_not.empty() && all.count > kMostPhases)
      why_not = fmt::format("{} steps a round, {} at most", all.count, kMostPhases);
    if (why_not.empty() && 2 * all.places + 2 > kMostPlaces)
      why_not = fmt::format("{} arrays, {} at most", 2 * all.places, kMostPlaces);
    if (why_not.empty() && all.uneven > 0 && all.uneven < all.threads)
      why_not = fmt::format("barriers of {} threads in a team of {}", all.uneven, all.threads);
    const Rates& rates = RatesOf(machine_);
    auto count = static_cast<double>(rounds.value_or(kUnknownRounds));
    auto phases = static_cast<double>(all.count);
    double launched = all.work_us + phases * rates.wait_us + (rounds ? 0 : kReadBack);
    double met = all.work_us * (all.count > 1 ? 1 + kCrowded : 1) + phases * rates.meeting_us;
    if (why_not.empty() && launched > kLongRound)
      why_not = fmt::format("a round takes {:.0f} us: launches are nothing of it", launched);
    if (why_not.empty() && rounds && *rounds < 2) why_not = "it has no second round";
    bool taken = why_not.empty() && met < launched;
    if (taken) {
      program_.persistent[step.target] =
          std::clamp<int64_t>(static_cast<int64_t>(kMostMicros / met), 1, INT64_C(1) << 30);
      program_.persistent_us[step.target] = met;
    }
    Decision record{.pass = "lower",
                    .rule = "lower.persistent",
                    .verdict = taken ? Verdict::kTaken : Verdict::kRejected,
                    .subject = LabelOf(loop),
                    .origins = loop.origins(),
                    .because = why_not};
    if (why_not.empty()) {
      record.before_us = launched * count;
      record.after_us = met * count;
      record.because = fmt::format("{} steps a round, ", all.count);
      record.because += rounds ? fmt::format("{} rounds", *rounds) : "unknown rounds";
    }
    log_.Add(std::move(record));
  }

  std::string WhyNot(const std::vector<RunStep>& steps, Phases& all) const {
    for (const RunStep& step : steps) {
      ++all.count;
      all.places += step.places.size();
      switch (step.kind) {
        case StepKind::kLaunch:
        case StepKind::kPack: {
          const RunStep* first = step.kind == StepKind::kPack ? step.blocks[0].data() : &step;
          size_t parts = step.kind == StepKind::kPack ? step.blocks[0].size() : 1;
          for (size_t i = 0; i < parts; ++i) {
            if (parts > 1) all.places += first[i].places.size();
            if (std::string why = Add(first[i], all); !why.empty()) return why;
          }
          break;
        }
        case StepKind::kCopy:
          // Twice through memory that is near.
          all.work_us += 2 * static_cast<double>(step.bytes) * 1e-6;
          break;
        case StepKind::kLibrary:
          return "a library multiplies in it";
        case StepKind::kCall:
        case StepKind::kHost:
          return "the host does a part of it";
        case StepKind::kWhile:
          return "it has a loop within";
        case StepKind::kConditional:
          return "it has a branch";
        case StepKind::kPoison:
          return "its memory is made poison";
      }
    }
    return "";
  }

  // One kernel of a phase.
  std::string Add(const RunStep& launch, Phases& all) const {
    const Kernel& kernel = program_.kernels[launch.target];
    Work work = WorkOf(kernel, launch.grid, machine_);
    Price price = PriceOf(work, machine_);
    all.work_us += price.total() - price.launch;
    if (ClusterOf(kernel) > 1) return "a step is a loop in one kernel, in clusters";
    if (launch.grid > kMostTeams) return fmt::format("a step has {} teams", launch.grid);
    auto threads = static_cast<int64_t>(work.threads);
    all.threads = std::max(all.threads, threads);
    // A team within one warp meets as its lanes do.
    if (work.barriers > 0 && threads > kWarp && threads % kWarp != 0)
      all.uneven = std::max(all.uneven, threads);
    return "";
  }

  LoweredProgram& program_;
  const Machine& machine_;
  DecisionLog& log_;
};

}  // namespace

void ChoosePersistent(LoweredProgram& program, const Machine& machine, DecisionLog& log) {
  program.persistent.assign(program.loops.size(), 0);
  program.persistent_us.assign(program.loops.size(), 0);
  Chooser(program, machine, log).Visit(program.steps);
}

}  // namespace tokamak
