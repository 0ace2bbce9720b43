// Decides which loops become persistent kernels. A dependent launch has a latency at its start and
// end on the device; a grid barrier between resident blocks is cheaper.

#include "lower/persistent.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "analysis/loops.h"
#include "cost/numbers.h"
#include "cost/rates.h"
#include "cost/units.h"
#include "cost/work.h"
#include "kernel/async.h"
#include "kernel/cluster.h"
#include "kernel/gpu_limits.h"

namespace tokamak {
namespace {

// Microseconds: the host reads the condition back after each iteration. Chosen: typical latency of
// a copy from device to host, not calibrated.
constexpr double kReadBack = 15;
// Slowdown of each phase, as a fraction: all phases run with the registers and shared memory of the
// largest one. Chosen: a guess, so that a persistent kernel must save more than launches' noise.
constexpr double kSharedLaunchSlowdown = 0.05;
// Microseconds: launch latency is negligible for longer iterations. Chosen: a launch of 2 us is a
// thousandth of it.
constexpr double kLongIterationUs = 2000;
// Iterations per launch. Chosen: they are counted in an s32, with room for the increment.
constexpr int64_t kMaxIterations = 1 << 30;
// Microseconds per byte that a copy reads or writes: 1 TB/s. Chosen: less than the bandwidth of the
// L2 cache (machines/h200.json), because a copy in a persistent kernel is short.
constexpr double kCopyUsPerByte = 1e-6;
// Limits of one persistent kernel. kMostPhases: steps of an iteration. Chosen: it bounds code size.
// kMaxSlices: pointers among the kernel parameters, 3,840 bytes of the 4,096 that CUDA allows (CUDA
// programming guide).
constexpr size_t kMostPhases = 48, kMaxSlices = 480;
// Thread blocks of a phase. Chosen: block indices fit int32 with room for the grid-stride loop.
constexpr int64_t kMaxPersistentBlocks = INT32_MAX / 4;

struct Phases {
  double work_us = 0;
  size_t count = 0, slices = 0;
  int64_t threads = 0, uneven = 0;  // of the largest block; of one with barriers and a partial warp
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
    std::optional<uint64_t> trip_count;
    if (found) trip_count = TripCount(*found);
    Phases all;
    std::string why_not;
    if (!trip_count && step.blocks[0].empty()) why_not = "its condition is a value that it carries";
    if (RunsInChunks(loop)) why_not = "it runs in chunks so that it can be cancelled";
    if (!trip_count && why_not.empty()) why_not = WhyNot(step.blocks[0], all);
    if (why_not.empty()) why_not = WhyNot(step.blocks[1], all);
    // The closing copies run after the last iteration only (alternate.h).
    all.slices += 2 * step.blocks[2].size();
    if (why_not.empty() && all.count == 0) why_not = "its body has no steps";
    if (why_not.empty() && all.count > kMostPhases)
      why_not = fmt::format("{} steps per iteration, {} at most", all.count, kMostPhases);
    if (why_not.empty() && 2 * all.slices + 2 > kMaxSlices)
      why_not = fmt::format("{} arrays, {} at most", 2 * all.slices, kMaxSlices);
    if (why_not.empty() && all.uneven > 0 && all.uneven < all.threads)
      why_not = fmt::format("barriers of {} threads in a block of {}", all.uneven, all.threads);
    const Rates& rates = RatesOf(machine_);
    auto count = static_cast<double>(trip_count.value_or(kUnknownTripCount));
    auto phases = static_cast<double>(all.count);
    double launched = all.work_us + phases * rates.wait_us + (trip_count ? 0 : kReadBack);
    double one_launch_us = all.work_us * (all.count > 1 ? 1 + kSharedLaunchSlowdown : 1) +
                           phases * rates.grid_barrier_us;
    if (why_not.empty() && launched > kLongIterationUs)
      why_not = fmt::format("an iteration takes {:.0f} us: launch latency is negligible", launched);
    if (why_not.empty() && trip_count && *trip_count < 2) why_not = "its trip count is 1";
    bool accepted = why_not.empty() && one_launch_us < launched;
    if (accepted) {
      program_.persistent[step.target] = std::clamp<int64_t>(
          static_cast<int64_t>(kLaunchChunkUs / one_launch_us), 1, kMaxIterations);
      program_.persistent_us[step.target] = one_launch_us;
    }
    Decision record{.pass = "lower",
                    .rule = "loop.persistent",
                    .verdict = accepted ? Verdict::kAccepted : Verdict::kRejected,
                    .subject = LabelOf(loop),
                    .origins = loop.origins(),
                    .because = why_not};
    if (why_not.empty()) {
      record.before_us = launched * count;
      record.after_us = one_launch_us * count;
      record.because = fmt::format("{} steps per iteration, ", all.count);
      record.because +=
          trip_count ? fmt::format("{} iterations", *trip_count) : "unknown iterations";
    }
    log_.Add(std::move(record));
  }

  std::string WhyNot(const std::vector<RunStep>& steps, Phases& all) const {
    for (const RunStep& step : steps) {
      ++all.count;
      all.slices += step.slices.size();
      switch (step.kind) {
        case StepKind::kLaunch:
        case StepKind::kHorizontal: {
          const RunStep* first = step.kind == StepKind::kHorizontal ? step.blocks[0].data() : &step;
          size_t entries = step.kind == StepKind::kHorizontal ? step.blocks[0].size() : 1;
          for (size_t i = 0; i < entries; ++i) {
            if (entries > 1) all.slices += first[i].slices.size();
            if (std::string why = Add(first[i], all); !why.empty()) return why;
          }
          break;
        }
        case StepKind::kCopy:
          all.work_us += 2 * static_cast<double>(step.bytes) * kCopyUsPerByte;
          break;
        case StepKind::kLibrary:
          return "its body has a library call";
        case StepKind::kCall:
        case StepKind::kHost:
          return "its body has a host step";
        case StepKind::kWhile:
          return "its body has a nested loop";
        case StepKind::kConditional:
          return "its body has a branch";
        case StepKind::kPoison:
          return "its body fills dead buffers (TOKAMAK_CHECK=memory)";
      }
    }
    return "";
  }

  // One kernel of a phase.
  std::string Add(const RunStep& launch, Phases& all) const {
    const Kernel& kernel = program_.kernels[launch.target];
    Work work = WorkOf(kernel, launch.grid, machine_);
    CostEstimate estimate = EstimateCost(work, machine_);
    all.work_us += estimate.total() - estimate.launch;
    if (ClusterSizeOf(kernel) > 1) return "a step is a loop in one kernel, in clusters";
    if (UsesAsync(kernel)) return "a step has asynchronous copies or multiplies";
    if (launch.grid > kMaxPersistentBlocks) return fmt::format("a step has {} blocks", launch.grid);
    auto threads = static_cast<int64_t>(work.threads);
    all.threads = std::max(all.threads, threads);
    // A block of at most one warp synchronizes as a warp.
    if (work.barriers > 0 && threads > kWarpSize && threads % kWarpSize != 0)
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
