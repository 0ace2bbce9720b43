// Kernels go through levels: one level after all kernels that it needs, one before all that need
// it. What has to run at a level takes along whatever else is ready by then. So edges lead from
// lower levels to higher ones, and packs, each of one level, do not wait for each other.

#include "fusion/packs.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_set>

#include "cost/rates.h"
#include "cost/work.h"
#include "fusion/unit_graph.h"
#include "kernel/hash.h"

namespace tokamak {
namespace {

// A kernel that takes this many launches' time gains nothing worth mentioning; elementwise loops
// lose nothing either, however long they are.
constexpr double kPackLong = 16;
// Temporary memory that nobody minds.
constexpr int64_t kSmallPeak = int64_t{1} << 20;
// Blocks of a kernel that keep each multiprocessor of a GPU busy.
constexpr int64_t kBlocksToFill = 2;
constexpr int kMaxTrims = 100;
// Values of the code of one launch on a GPU; beyond it compiling takes longer than launches save.
// Kernels that become one function (backend/cuda/part_form.h) are all counted here.
constexpr int64_t kMaxNodes = 60000;

class Packer {
 public:
  Packer(ComputationPlan& plan, const Machine& machine, DecisionLog& log)
      : plan_(plan), machine_(machine), log_(log), graph_(plan), pack_of_(KernelCount(), -1) {}

  void Form() {
    if (plan_.kernels.size() < 2) return;
    PriceAll();
    Schedule();
    KeepMemory();
    Finish(true);
  }

  void All() {
    packable_.assign(KernelCount(), true);
    Schedule();
    Finish(false);
  }

 private:
  size_t KernelCount() const { return plan_.kernels.size(); }
  const PlannedKernel& Kernel(int k) const { return plan_.kernels[static_cast<size_t>(k)]; }
  // What the kernel takes, its launch apart; on a CPU on one core.
  double MicrosOf(int k) const {
    const PlannedKernel& planned = Kernel(k);
    Work work;
    work.tasks = static_cast<double>(planned.built.grid);
    if (machine_.is_gpu()) work.threads = 256;
    for (const KernelArgument& argument : planned.built.arguments)
      (argument.is_output ? work.writes : work.reads) +=
          static_cast<double>(PartsOf(argument.instr->shape())[argument.part].ByteSize());
    for (const Instr* instr : planned.region.instrs)
      AddElementOp(work, *instr, FoldedBy(*instr), machine_);
    Machine one = machine_;
    if (!machine_.is_gpu()) one.cores = 1;
    Price price = PriceOf(work, one);
    return price.total() - price.launch;
  }

  // Whether a GPU has multiprocessors left for others while it runs.
  bool LeavesIdle(int k) const {
    return machine_.is_gpu() && Kernel(k).built.grid < kBlocksToFill * machine_.cores;
  }

  static double FoldedBy(const Instr& instr) {
    bool folds = instr.op() == Op::kReduce || instr.op() == Op::kScan;
    double elements = 0;
    for (const Shape& part : PartsOf(folds ? instr.operand(0)->shape() : instr.shape()))
      elements = std::max(elements, static_cast<double>(part.ElementCount()));
    return elements;
  }

  void PriceAll() {
    const Rates& rates = RatesOf(machine_);
    launch_us_ = machine_.is_gpu()
                     ? rates.graph_gap_us
                     : rates.step_us + (rates.fork_us.empty() ? 0 : rates.fork_us.back());
    // On a CPU, what is not worth two threads is done by the thread that calls: nothing is
    // launched.
    short_us_ = machine_.is_gpu() ? 0 : 2 * rates.grain_us;
    for (int k = 0; k < graph_.kernels(); ++k) {
      micros_.push_back(MicrosOf(k));
      packable_.push_back(Kernel(k).kind == RegionKind::kLoop || LeavesIdle(k) ||
                          micros_.back() <= kPackLong * launch_us_);
    }
  }

  // ---- levels

  // The last level at which each unit may run, so that the others come after it.
  std::vector<int> LatestLevels(const std::vector<int>& order) const {
    std::vector<int> depth(order.size() == 0 ? 0 : static_cast<size_t>(graph_.size()), 0);
    int deepest = 0;
    for (int unit : order) {
      int& own = depth[static_cast<size_t>(unit)];
      for (int need : graph_.needs(unit))
        own = std::max(own, depth[static_cast<size_t>(need)] + (need < graph_.kernels() ? 1 : 0));
      deepest = std::max(deepest, own);
    }
    std::vector<int> latest(depth.size(), deepest);
    for (size_t i = order.size(); i-- > 0;) {
      for (int need : graph_.needs(order[i])) {
        int by = latest[static_cast<size_t>(order[i])] - (need < graph_.kernels() ? 1 : 0);
        latest[static_cast<size_t>(need)] = std::min(latest[static_cast<size_t>(need)], by);
      }
    }
    return latest;
  }

  // What runs, in an order in which needs come first.
  std::vector<int> OrderOf(const std::vector<int>& places) const {
    std::vector<int> order;
    for (int unit = 0; unit < graph_.size(); ++unit)
      if (places[static_cast<size_t>(unit)] >= 0) order.push_back(unit);
    std::sort(order.begin(), order.end(), [&](int x, int y) {
      return places[static_cast<size_t>(x)] < places[static_cast<size_t>(y)];
    });
    return order;
  }

  void Schedule() {
    places_ = graph_.Places(pack_of_);
    if (places_.empty()) return;  // a cyclic plan: no matter of ours
    std::vector<int> order = OrderOf(places_), latest = LatestLevels(order);
    users_.resize(static_cast<size_t>(graph_.size()));
    open_.assign(static_cast<size_t>(graph_.size()), 0);
    ready_.assign(static_cast<size_t>(graph_.size()), 0);
    for (int unit : order) {
      for (int need : graph_.needs(unit)) users_[static_cast<size_t>(need)].push_back(unit);
      open_[static_cast<size_t>(unit)] = graph_.needs(unit).size();
    }
    for (int unit : order)
      if (graph_.needs(unit).empty()) MakeReady(unit);
    std::vector<int> waiting;
    for (size_t level = 0; level < levels_.size() || !waiting.empty(); ++level) {
      if (level < levels_.size()) TakeReady(level, waiting);
      bool forced = std::any_of(waiting.begin(), waiting.end(), [&](int k) {
        return latest[static_cast<size_t>(k)] <= static_cast<int>(level);
      });
      if (!forced) continue;
      std::sort(waiting.begin(), waiting.end());
      BeginPack();
      for (int k : waiting) {
        if (!Fits(k)) {
          BeginPack();
          Fits(k);
        }
        pack_of_[static_cast<size_t>(k)] = packs_ - 1;
        Run(k, static_cast<int>(level) + 1);
      }
      waiting.clear();
    }
  }

  void BeginPack() {
    ++packs_;
    code_.clear();
    nodes_ = 0;
  }

  // Whether the code of all kernels of the pack may be one function, and this one's with it. On a
  // CPU they stay apart.
  bool Fits(int k) {
    if (!machine_.is_gpu() || !code_.insert(HashOf(Kernel(k).built.kernel)).second) return true;
    auto own = static_cast<int64_t>(Kernel(k).built.kernel.nodes.size());
    bool fits = nodes_ == 0 || nodes_ + own <= kMaxNodes;
    if (fits) nodes_ += own;
    return fits;
  }

  // Kernels that may run from this level on: long ones do.
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

  // All that the unit needs has run.
  void MakeReady(int first) {
    std::vector<int> open = {first};
    while (!open.empty()) {
      int unit = open.back();
      open.pop_back();
      auto level = static_cast<size_t>(ready_[static_cast<size_t>(unit)]);
      if (unit < graph_.kernels()) {
        if (level >= levels_.size()) levels_.resize(level + 1);
        levels_[level].push_back(unit);
        continue;
      }
      Tell(unit, static_cast<int>(level), open);
    }
  }

  void Run(int kernel, int after) {
    std::vector<int> ready;
    Tell(kernel, after, ready);
    for (int unit : ready) MakeReady(unit);
  }

  // Users of what has run may run at level `after`, once nothing else is missing.
  void Tell(int unit, int after, std::vector<int>& ready) {
    for (int user : users_[static_cast<size_t>(unit)]) {
      int& level = ready_[static_cast<size_t>(user)];
      level = std::max(level, after);
      if (--open_[static_cast<size_t>(user)] == 0) ready.push_back(user);
    }
  }

  // ---- memory

  // Leaves kernels out until the temporary memory is as small as without packs.
  void KeepMemory() {
    if (places_.empty()) return;
    // On a GPU what its second cache holds is little.
    int64_t small =
        machine_.is_gpu() ? static_cast<int64_t>(RatesOf(machine_).l2_bytes) : kSmallPeak;
    int64_t bound = std::max(graph_.MemoryOf(places_).peak, small);
    for (int trim = 0;; ++trim) {
      std::vector<int> places = graph_.Places(pack_of_);
      if (places.empty() || trim == kMaxTrims) break;
      UnitGraph::Memory memory = graph_.MemoryOf(places);
      if (memory.peak <= bound) return;
      if (!LeaveOut(memory, memory.peak - bound)) break;
    }
    for (int k = 0; k < graph_.kernels(); ++k)
      if (pack_of_[static_cast<size_t>(k)] >= 0) Refuse(k, "memory would grow");
    pack_of_.assign(KernelCount(), -1);
  }

  // Those that hold the most where there is most of all.
  bool LeaveOut(const UnitGraph::Memory& memory, int64_t bytes) {
    std::vector<int> parts;
    for (int k = 0; k < graph_.kernels(); ++k)
      if (pack_of_[static_cast<size_t>(k)] >= 0 && memory.held[static_cast<size_t>(k)] > 0)
        parts.push_back(k);
    std::stable_sort(parts.begin(), parts.end(), [&](int x, int y) {
      return memory.held[static_cast<size_t>(x)] > memory.held[static_cast<size_t>(y)];
    });
    for (size_t i = 0; i < parts.size() && bytes > 0; ++i) {
      auto k = static_cast<size_t>(parts[i]);
      bytes -= memory.held[k];
      pack_of_[k] = -1;
      Refuse(parts[i], "it would keep " + std::to_string(memory.held[k]) + " bytes alive");
    }
    return !parts.empty();
  }

  // ---- what comes of it

  void Refuse(int k, std::string why) {
    const Instr& root = *Kernel(k).region.roots[0];
    log_.Add({.pass = "fuse",
              .rule = "fusion.horizontal",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(root),
              .origins = root.origins(),
              .because = std::move(why)});
  }

  void Finish(bool says) {
    std::vector<std::vector<int>> packs;
    for (int k = 0; k < graph_.kernels(); ++k) {
      int pack = pack_of_[static_cast<size_t>(k)];
      if (pack < 0) continue;
      if (static_cast<size_t>(pack) >= packs.size()) packs.resize(static_cast<size_t>(pack) + 1);
      packs[static_cast<size_t>(pack)].push_back(k);
    }
    plan_.packs.clear();
    for (std::vector<int>& pack : packs) {
      if (says && machine_.is_gpu()) LeaveOutSlowed(pack);
      if (pack.size() < 2 || (says && !Pays(pack))) continue;
      // What a few teams do begins first, and the others go on beside it: behind them it would be
      // waited for.
      if (says)
        std::stable_partition(pack.begin(), pack.end(), [&](int k) { return LeavesIdle(k); });
      plan_.packs.push_back(std::move(pack));
    }
  }

  // All teams of a launch have the registers, threads and memory of the largest: long kernels of
  // which less than half as many teams would run at a time stay apart.
  void LeaveOutSlowed(std::vector<int>& pack) {
    auto is_long = [&](int k) { return micros_[static_cast<size_t>(k)] > kPackLong * launch_us_; };
    if (pack.size() < 2 || std::ranges::none_of(pack, is_long)) return;
    std::vector<Work> works;
    Work most;
    for (int k : pack) {
      const BuiltKernel& built = Kernel(k).built;
      works.push_back(WorkOf(built.kernel, built.grid, machine_));
      most.words = std::max(most.words, works.back().words);
      most.threads = std::max(most.threads, works.back().threads);
      most.team_bytes = std::max(most.team_bytes, works.back().team_bytes);
    }
    std::vector<int> kept;
    for (size_t i = 0; i < pack.size(); ++i) {
      Work together = works[i];
      together.words = most.words * most.threads / std::max(works[i].threads, 1.0);
      together.team_bytes = most.team_bytes;
      double teams = PriceOf(together, machine_).threads,
             alone = PriceOf(works[i], machine_).threads;
      if (is_long(pack[i]) && 2 * teams < alone) {
        Refuse(pack[i], "fewer of its teams would run at a time");
      } else {
        kept.push_back(pack[i]);
      }
    }
    pack = std::move(kept);
  }

  bool Pays(const std::vector<int>& pack) {
    double micros = 0, serial = 0, forks = 0;
    for (int k : pack) {
      double own = micros_[static_cast<size_t>(k)];
      micros += own;
      (own < short_us_ ? serial : forks) += own < short_us_ ? own : 1;
    }
    // On a CPU short kernels are no launches, but may be shared out together.
    double cores = static_cast<double>(std::max<int64_t>(machine_.cores, 1));
    double saved = launch_us_ * std::max(forks - 1, 0.0);
    if (micros >= short_us_) saved += serial * (1 - 1 / cores);
    if (machine_.is_gpu()) saved = launch_us_ * static_cast<double>(pack.size() - 1);
    if (saved < launch_us_) {
      Refuse(pack[0], std::to_string(pack.size()) + " kernels are too short for several threads");
      return false;
    }
    const Instr& root = *Kernel(pack[0]).region.roots[0];
    double alone = micros + launch_us_ * static_cast<double>(pack.size());
    log_.Add({.pass = "fuse",
              .rule = "fusion.horizontal",
              .subject = LabelOf(root),
              .other = LabelOf(*Kernel(pack.back()).region.roots[0]),
              .origins = root.origins(),
              .before_us = alone,
              .after_us = alone - saved,
              .because = std::to_string(pack.size()) + " kernels in one launch"});
    return true;
  }

  ComputationPlan& plan_;
  const Machine& machine_;
  DecisionLog& log_;
  UnitGraph graph_;
  std::vector<int> pack_of_;  // by kernel, or -1
  int packs_ = 0;
  std::unordered_set<uint64_t> code_;  // of the last pack, by hash
  int64_t nodes_ = 0;                  // and how large it is
  std::vector<bool> packable_;
  std::vector<double> micros_;
  double launch_us_ = 0, short_us_ = 0;
  std::vector<int> places_;               // without packs
  std::vector<std::vector<int>> users_;   // by unit
  std::vector<size_t> open_;              // by unit: needs that have not run
  std::vector<int> ready_;                // by unit: the first level at which it may run
  std::vector<std::vector<int>> levels_;  // kernels that are ready from a level on
};

}  // namespace

void FormPacks(ComputationPlan& plan, const Machine& machine, DecisionLog& log) {
  Packer(plan, machine, log).Form();
}

void PackAll(ComputationPlan& plan) {
  DecisionLog log;
  Machine machine;
  Packer(plan, machine, log).All();
}

}  // namespace tokamak
