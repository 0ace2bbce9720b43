// Kernels are scheduled by levels: a kernel's level is greater than the levels of all kernels that
// it depends on and less than those of all kernels that depend on it. When a kernel cannot be
// delayed beyond a level, it is launched there, together with all other kernels that are ready by
// then. Dependences lead from lower to higher levels, and all kernels of a launch group have the
// same level, so launch groups cannot depend on each other cyclically.

#include "fusion/horizontal.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_set>

#include "cost/rates.h"
#include "cost/work.h"
#include "fusion/region_work.h"
#include "fusion/unit_graph.h"
#include "kernel/async.h"
#include "kernel/hash.h"

namespace tokamak {
namespace {

// A multiple of the launch overhead. Chosen: a longer kernel gains at most 6 % from sharing a
// launch, less than delaying it may cost. Elementwise loops are exempt: sharing does not slow them
// down.
constexpr double kHorizontalMaxUs = 16;
// Bytes; temporary memory below this peak may grow freely (CPU). Chosen: a MiB fits in the L2
// cache.
constexpr int64_t kSmallPeak = int64_t{1} << 20;
// Blocks per SM from which a kernel counts as filling the GPU. Chosen: one computes while the other
// waits for memory or at a barrier.
constexpr int64_t kBlocksToFill = 2;
// Chunks from which a CPU kernel is distributed over threads: those of two threads (structure of
// the runtime's loop).
constexpr double kLeastChunks = 2;
// Factor by which a launch's largest registers and shared memory may lower the occupancy of a long
// kernel. Chosen: with fewer loads in flight, it would lose more than a launch costs.
constexpr double kMaxOccupancyLoss = 2;
// Attempts to reduce the memory peak before horizontal fusion is given up. Chosen: it bounds
// planning time; each attempt takes a kernel out of its launch.
constexpr int kMaxTrims = 100;
// After this many attempts, each takes out kernels for twice the bytes. Chosen: layers that are
// alike have peaks of their own, one attempt each, and with few bytes an attempt the limit is
// reached before the last layer.
constexpr int kTrimsUntilDoubled = 8;
// Kernel IR values of one GPU launch at most. Chosen: beyond it, compiling takes longer than
// launches save. Identical kernels count once; kernels that will share a device function after
// parameterization (backend/cuda/device_function_form.h) are counted each.
constexpr int64_t kMaxLaunchValues = 60000;

class HorizontalPacker {
 public:
  HorizontalPacker(ComputationPlan& plan, const Machine& machine, DecisionLog& log)
      : plan_(plan),
        machine_(machine),
        log_(log),
        graph_(plan),
        launch_group_of_(KernelCount(), -1) {}

  void Form() {
    if (plan_.kernels.size() < 2) return;
    EstimateAll();
    Schedule();
    KeepMemory();
    Finish(true);
  }

  void All() {
    for (int k = 0; k < graph_.num_kernels(); ++k) packable_.push_back(MayShareLaunch(k));
    Schedule();
    Finish(false);
  }

 private:
  size_t KernelCount() const { return plan_.kernels.size(); }
  const PlannedKernel& Kernel(int k) const { return plan_.kernels[static_cast<size_t>(k)]; }
  // Microseconds of the kernel without launch overhead; on a CPU, on one core.
  double MicrosOf(int k) const {
    const PlannedKernel& planned = Kernel(k);
    Work work;
    work.tasks = static_cast<double>(planned.built.grid);
    if (machine_.is_gpu()) work.threads = kTypicalThreads;
    for (const KernelArgument& argument : planned.built.arguments)
      (argument.is_output ? work.writes : work.reads) += static_cast<double>(
          ResultShapesOf(argument.instr->shape())[argument.result_index].ByteSize());
    for (const Instr* instr : planned.region.instrs)
      AddElementOp(work, *instr, OperandsReducedBy(*instr), machine_);
    Machine one = machine_;
    if (!machine_.is_gpu()) one.cores = 1;
    CostEstimate estimate = EstimateCost(work, one);
    return estimate.total() - estimate.launch;
  }

  bool MayShareLaunch(int k) const { return !UsesAsync(Kernel(k).built.kernel); }
  // Whether the kernel leaves SMs of a GPU idle.
  bool LeavesIdle(int k) const {
    return machine_.is_gpu() && Kernel(k).built.grid < kBlocksToFill * machine_.cores;
  }

  static double OperandsReducedBy(const Instr& instr) {
    bool reduces = instr.op() == Op::kReduce || instr.op() == Op::kScan;
    double elements = 0;
    for (const Shape& part : ResultShapesOf(reduces ? instr.operand(0)->shape() : instr.shape()))
      elements = std::max(elements, static_cast<double>(part.ElementCount()));
    return elements;
  }

  void EstimateAll() {
    const Rates& rates = RatesOf(machine_);
    launch_us_ = machine_.is_gpu()
                     ? rates.graph_gap_us
                     : rates.step_us + (rates.fork_us.empty() ? 0 : rates.fork_us.back());
    // On a CPU, work too small for two threads runs on the calling thread: there is no launch.
    short_us_ = machine_.is_gpu() ? 0 : kLeastChunks * rates.min_chunk_us;
    for (int k = 0; k < graph_.num_kernels(); ++k) {
      micros_.push_back(MicrosOf(k));
      packable_.push_back(MayShareLaunch(k) &&
                          (Kernel(k).kind == GeneratorKind::kLoop || LeavesIdle(k) ||
                           micros_.back() <= kHorizontalMaxUs * launch_us_));
    }
  }

  // ---- levels

  // The last level at which each unit may run without delaying those that depend on it.
  std::vector<int> LatestLevels(const std::vector<int>& order) const {
    std::vector<int> depth(order.size() == 0 ? 0 : static_cast<size_t>(graph_.size()), 0);
    int deepest = 0;
    for (int unit : order) {
      int& own = depth[static_cast<size_t>(unit)];
      for (int need : graph_.dependencies(unit))
        own =
            std::max(own, depth[static_cast<size_t>(need)] + (need < graph_.num_kernels() ? 1 : 0));
      deepest = std::max(deepest, own);
    }
    std::vector<int> latest(depth.size(), deepest);
    for (size_t i = order.size(); i-- > 0;) {
      for (int need : graph_.dependencies(order[i])) {
        int by = latest[static_cast<size_t>(order[i])] - (need < graph_.num_kernels() ? 1 : 0);
        latest[static_cast<size_t>(need)] = std::min(latest[static_cast<size_t>(need)], by);
      }
    }
    return latest;
  }

  // The units that run, dependences first.
  std::vector<int> OrderOf(const std::vector<int>& positions) const {
    std::vector<int> order;
    for (int unit = 0; unit < graph_.size(); ++unit)
      if (positions[static_cast<size_t>(unit)] >= 0) order.push_back(unit);
    std::sort(order.begin(), order.end(), [&](int x, int y) {
      return positions[static_cast<size_t>(x)] < positions[static_cast<size_t>(y)];
    });
    return order;
  }

  void Schedule() {
    positions_ = graph_.ScheduleOf(launch_group_of_);
    if (positions_.empty()) return;  // cyclic plan: lowering rejects it
    std::vector<int> order = OrderOf(positions_), latest = LatestLevels(order);
    users_.resize(static_cast<size_t>(graph_.size()));
    open_.assign(static_cast<size_t>(graph_.size()), 0);
    ready_.assign(static_cast<size_t>(graph_.size()), 0);
    for (int unit : order) {
      for (int need : graph_.dependencies(unit)) users_[static_cast<size_t>(need)].push_back(unit);
      open_[static_cast<size_t>(unit)] = graph_.dependencies(unit).size();
    }
    for (int unit : order)
      if (graph_.dependencies(unit).empty()) MakeReady(unit);
    std::vector<int> waiting;
    for (size_t level = 0; level < levels_.size() || !waiting.empty(); ++level) {
      if (level < levels_.size()) TakeReady(level, waiting);
      bool forced = std::any_of(waiting.begin(), waiting.end(), [&](int k) {
        return latest[static_cast<size_t>(k)] <= static_cast<int>(level);
      });
      if (!forced) continue;
      std::sort(waiting.begin(), waiting.end());
      BeginGroup();
      for (int k : waiting) {
        if (!Fits(k)) {
          BeginGroup();
          Fits(k);
        }
        launch_group_of_[static_cast<size_t>(k)] = launch_groups_ - 1;
        Run(k, static_cast<int>(level) + 1);
      }
      waiting.clear();
    }
  }

  void BeginGroup() {
    ++launch_groups_;
    code_.clear();
    nodes_ = 0;
  }

  // Whether the kernel's code still fits into the launch group, given the size limit; adds it if
  // so. CPU kernels remain separate functions.
  bool Fits(int k) {
    if (!machine_.is_gpu() || !code_.insert(HashOf(Kernel(k).built.kernel)).second) return true;
    auto own = static_cast<int64_t>(Kernel(k).built.kernel.nodes.size());
    bool fits = nodes_ == 0 || nodes_ + own <= kMaxLaunchValues;
    if (fits) nodes_ += own;
    return fits;
  }

  // Kernels that are ready at this level. Those that are not packable run at once.
  void TakeReady(size_t level, std::vector<int>& waiting) {
    std::vector<int> ready = std::move(levels_[level]);
    for (int k : ready) {
      if (packable_[static_cast<size_t>(k)]) {
        waiting.push_back(k);
      } else {
        Run(k, static_cast<int>(level) + 1);
      }
    }
  }

  // Call when everything that the unit depends on has run.
  void MakeReady(int first) {
    std::vector<int> open = {first};
    while (!open.empty()) {
      int unit = open.back();
      open.pop_back();
      auto level = static_cast<size_t>(ready_[static_cast<size_t>(unit)]);
      if (unit < graph_.num_kernels()) {
        if (level >= levels_.size()) levels_.resize(level + 1);
        levels_[level].push_back(unit);
        continue;
      }
      NotifyUsers(unit, static_cast<int>(level), open);
    }
  }

  void Run(int kernel, int after) {
    std::vector<int> ready;
    NotifyUsers(kernel, after, ready);
    for (int unit : ready) MakeReady(unit);
  }

  // Users of a unit that has run may run at level `after` once all their other dependences have
  // run.
  void NotifyUsers(int unit, int after, std::vector<int>& ready) {
    for (int user : users_[static_cast<size_t>(unit)]) {
      int& level = ready_[static_cast<size_t>(user)];
      level = std::max(level, after);
      if (--open_[static_cast<size_t>(user)] == 0) ready.push_back(user);
    }
  }

  // ---- memory

  // Removes kernels from launch groups until peak temporary memory is no larger than without them.
  void KeepMemory() {
    if (positions_.empty()) return;
    // On a GPU, temporary memory that fits into L2 is small.
    int64_t small =
        machine_.is_gpu() ? static_cast<int64_t>(RatesOf(machine_).l2_bytes) : kSmallPeak;
    int64_t bound = std::max(graph_.MemoryOf(positions_).peak_bytes, small);
    for (int trim = 0;; ++trim) {
      std::vector<int> positions = graph_.ScheduleOf(launch_group_of_);
      if (positions.empty() || trim == kMaxTrims) break;
      UnitGraph::Memory memory = graph_.MemoryOf(positions);
      if (memory.peak_bytes <= bound) return;
      if (!LeaveOut(memory, (memory.peak_bytes - bound) << (trim / kTrimsUntilDoubled))) break;
    }
    for (int k = 0; k < graph_.num_kernels(); ++k)
      if (launch_group_of_[static_cast<size_t>(k)] >= 0)
        Reject(k, "peak temporary memory would grow");
    launch_group_of_.assign(KernelCount(), -1);
  }

  // Removes the kernels that keep most bytes alive at the peak.
  bool LeaveOut(const UnitGraph::Memory& memory, int64_t bytes) {
    std::vector<int> parts;
    for (int k = 0; k < graph_.num_kernels(); ++k)
      if (launch_group_of_[static_cast<size_t>(k)] >= 0 &&
          memory.bytes_at_peak[static_cast<size_t>(k)] > 0)
        parts.push_back(k);
    std::stable_sort(parts.begin(), parts.end(), [&](int x, int y) {
      return memory.bytes_at_peak[static_cast<size_t>(x)] >
             memory.bytes_at_peak[static_cast<size_t>(y)];
    });
    for (size_t i = 0; i < parts.size() && bytes > 0; ++i) {
      auto k = static_cast<size_t>(parts[i]);
      bytes -= memory.bytes_at_peak[k];
      launch_group_of_[k] = -1;
      Reject(parts[i], "it would keep " + std::to_string(memory.bytes_at_peak[k]) + " bytes alive");
    }
    return !parts.empty();
  }

  // ---- results

  void Reject(int k, std::string why) {
    const Instr& root = *Kernel(k).region.roots[0];
    log_.Add({.pass = "fuse",
              .rule = "fusion.horizontal",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(root),
              .origins = root.origins(),
              .because = std::move(why)});
  }

  void Finish(bool says) {
    std::vector<std::vector<int>> launch_groups;
    for (int k = 0; k < graph_.num_kernels(); ++k) {
      int group = launch_group_of_[static_cast<size_t>(k)];
      if (group < 0) continue;
      if (static_cast<size_t>(group) >= launch_groups.size())
        launch_groups.resize(static_cast<size_t>(group) + 1);
      launch_groups[static_cast<size_t>(group)].push_back(k);
    }
    plan_.launch_groups.clear();
    for (std::vector<int>& group : launch_groups) {
      if (says && machine_.is_gpu()) LeaveOutSlowed(group);
      if (group.size() < 2 || (says && !Pays(group))) continue;
      // Kernels with few blocks come first in the grid and overlap with the others; at the end of
      // the grid they would extend the launch.
      if (says)
        std::stable_partition(group.begin(), group.end(), [&](int k) { return LeavesIdle(k); });
      plan_.launch_groups.push_back(std::move(group));
    }
  }

  // All blocks of a launch get the registers, threads and shared memory of the largest kernel. Long
  // kernels whose occupancy would fall below half are left out.
  void LeaveOutSlowed(std::vector<int>& group) {
    auto is_long = [&](int k) {
      return micros_[static_cast<size_t>(k)] > kHorizontalMaxUs * launch_us_;
    };
    if (group.size() < 2 || std::ranges::none_of(group, is_long)) return;
    std::vector<Work> works;
    Work most;
    for (int k : group) {
      const BuiltKernel& built = Kernel(k).built;
      works.push_back(WorkOf(built.kernel, built.grid, machine_));
      most.thread_registers = std::max(most.thread_registers, works.back().thread_registers);
      most.threads = std::max(most.threads, works.back().threads);
      most.shared_bytes = std::max(most.shared_bytes, works.back().shared_bytes);
    }
    std::vector<int> kept;
    for (size_t i = 0; i < group.size(); ++i) {
      Work together = works[i];
      together.thread_registers =
          most.thread_registers * most.threads / std::max(works[i].threads, 1.0);
      together.shared_bytes = most.shared_bytes;
      double blocks = EstimateCost(together, machine_).threads,
             alone = EstimateCost(works[i], machine_).threads;
      if (is_long(group[i]) && kMaxOccupancyLoss * blocks < alone) {
        Reject(group[i], "its occupancy would fall below half");
      } else {
        kept.push_back(group[i]);
      }
    }
    group = std::move(kept);
  }

  bool Pays(const std::vector<int>& group) {
    double micros = 0, serial = 0, forks = 0;
    for (int k : group) {
      double own = micros_[static_cast<size_t>(k)];
      micros += own;
      (own < short_us_ ? serial : forks) += own < short_us_ ? own : 1;
    }
    // On a CPU short kernels cause no launch, but together they can be distributed over the
    // threads.
    double cores = static_cast<double>(std::max<int64_t>(machine_.cores, 1));
    double saved = launch_us_ * std::max(forks - 1, 0.0);
    if (micros >= short_us_) saved += serial * (1 - 1 / cores);
    if (machine_.is_gpu()) saved = launch_us_ * static_cast<double>(group.size() - 1);
    if (saved < launch_us_) {
      Reject(group[0], std::to_string(group.size()) + " kernels are too short for several threads");
      return false;
    }
    const Instr& root = *Kernel(group[0]).region.roots[0];
    double alone = micros + launch_us_ * static_cast<double>(group.size());
    log_.Add({.pass = "fuse",
              .rule = "fusion.horizontal",
              .subject = LabelOf(root),
              .other = LabelOf(*Kernel(group.back()).region.roots[0]),
              .origins = root.origins(),
              .before_us = alone,
              .after_us = alone - saved,
              .because = std::to_string(group.size()) + " kernels in one launch"});
    return true;
  }

  ComputationPlan& plan_;
  const Machine& machine_;
  DecisionLog& log_;
  UnitGraph graph_;
  std::vector<int> launch_group_of_;  // by kernel; -1 if in none
  int launch_groups_ = 0;
  std::unordered_set<uint64_t> code_;  // distinct kernels of the current launch group, by hash
  int64_t nodes_ = 0;                  // their IR values
  std::vector<bool> packable_;
  std::vector<double> micros_;
  double launch_us_ = 0, short_us_ = 0;
  std::vector<int> positions_;            // schedule without launch groups
  std::vector<std::vector<int>> users_;   // by unit
  std::vector<size_t> open_;              // by unit: dependences that have not run
  std::vector<int> ready_;                // by unit: the first level at which it may run
  std::vector<std::vector<int>> levels_;  // by level: kernels that become ready there
};

}  // namespace

void FuseHorizontally(ComputationPlan& plan, const Machine& machine, DecisionLog& log) {
  HorizontalPacker(plan, machine, log).Form();
}

void FuseAllHorizontally(ComputationPlan& plan) {
  DecisionLog log;
  Machine machine;
  HorizontalPacker(plan, machine, log).All();
}

}  // namespace tokamak
