#include <algorithm>
#include <cmath>

#include "cost/rates.h"

// PriceOf: microseconds of a kernel from what it does and what the machine was measured to do.

namespace tokamak {
namespace {

constexpr double kNsPerUs = 1000;
// Loads of a thread that go on at a time, at most.
constexpr double kVectorsUnderWay = 8;

// The greater of two, softly: a little more than it when they are near each other.
double Greater(double x, double y, double softness) {
  double most = std::max(x, y), least = std::min(x, y);
  if (most <= 0) return 0;
  if (least == 0) return most;
  return most * std::pow(1 + std::pow(least / most, softness), 1 / softness);
}

// Of what is known for 1, 2, 4, 8 ... threads.
double AtThreads(const std::vector<double>& known, double threads, double otherwise) {
  if (threads <= 1 || known.empty()) return otherwise;
  double at = std::log2(threads);
  auto low = static_cast<size_t>(at);
  size_t last = known.size() - 1;
  if (low >= last) return known[last];
  double share = at - static_cast<double>(low);
  return known[low] * (1 - share) + known[low + 1] * share;
}

// How a grid is shared out (runtime/thread_pool.cc): pieces of the grain at least, twelve a
// thread where there are enough.
struct Shares {
  Shares(double tasks, double grain, double cores) {
    constexpr double kPieces = 12;
    double parts = std::min(cores, std::floor(tasks / grain));
    if (parts < 2) return;
    double piece = std::max(grain, std::floor(tasks / (parts * kPieces)));
    double pieces = std::ceil(tasks / piece);
    threads = std::min(cores, pieces);
    // Of pieces that are over, the last thread takes the last, which may be a short one.
    double each = std::floor(pieces / threads), over = pieces - each * threads;
    double most = over > 1 ? (each + 1) * piece
                           : std::max(each * piece, tasks - (pieces - each - over) * piece);
    imbalance = std::max(1.0, most * threads / tasks);
  }

  double threads = 1;
  double imbalance = 1;  // how much longer the thread with the most tasks takes than the average
};

// Were there no memory. Products keep all units of a core busy; what else threads do leaves room
// for another thread of the same core.
double ComputeUs(const Work& work, const Rates& rates, const Shares& shares) {
  constexpr auto kProducts = static_cast<size_t>(Pipe::kMultiply);
  double ns = NsOfOps(work, rates), products = 0;
  for (size_t i = kProducts; i < kPipes; ++i) products += work.ops[i] * rates.ns[i];
  ns += products * (AtThreads(rates.crowd, shares.threads, 1) - 1);
  double waits = work.chain * rates.latency_ns + work.sums * rates.sum_latency_ns;
  return Greater(ns, waits, rates.softness) * shares.imbalance / shares.threads / kNsPerUs;
}

// Bytes a nanosecond of threads that go over so many bytes each, and so many in all: each at most
// as fast as one alone.
Bandwidth BandwidthOf(const Rates& rates, double each, double together, const Shares& shares) {
  Bandwidth one = BandwidthAt(rates.one, each);
  if (shares.threads <= 1) return one;
  Bandwidth all = BandwidthAt(rates.all, together);
  double times = shares.threads / shares.imbalance;
  return {together, std::min(one.read * times, all.read), std::min(one.write * times, all.write),
          std::min(one.copy * times, all.copy)};
}

// What is read once more, or lies apart.
double AgainNs(const Work& work, const Rates& rates, const Shares& shares) {
  double ns = 0, near = rates.l2_bytes / 2;
  if (work.rereads > 0)
    ns += work.rereads / BandwidthOf(rates, near, near * shares.threads, shares).read;
  if (work.far_rereads > 0) {
    double far =
        std::max(rates.l2_bytes * 2, std::min(work.reads + work.writes, rates.l3_bytes / 2));
    double together = std::max(far, rates.l2_bytes * 2 * shares.threads);
    ns += work.far_rereads / BandwidthOf(rates, far, together, shares).read;
  }
  return ns + work.lines * rates.line_ns * shares.imbalance / shares.threads;
}

double MemoryUs(const Work& work, const Rates& rates, const Shares& shares) {
  double bytes = work.reads + work.writes;
  Bandwidth rate = BandwidthOf(rates, bytes / shares.threads, bytes, shares);
  double ns = 0;
  if (work.reads > 0 && work.writes > 0) {
    // Between reading alone, or writing alone, and a copy.
    double both = 2 * std::min(work.reads, work.writes);
    double rest = bytes - both;
    ns = both / rate.copy + rest / (work.reads > work.writes ? rate.read : rate.write);
  } else if (bytes > 0) {
    ns = work.reads / rate.read + work.writes / rate.write;
  }
  return (ns + AgainNs(work, rates, shares)) / kNsPerUs;
}

std::string_view Binding(const Price& price) {
  if (price.launch >= price.memory && price.launch >= price.compute) return "launch";
  return price.memory >= price.compute ? "memory" : "compute";
}

// What so many threads take.
struct Parts {
  Parts(const Work& work, const Rates& rates, const Shares& shares)
      : memory(MemoryUs(work, rates, shares)),
        compute(ComputeUs(work, rates, shares)),
        both(Greater(memory, compute, rates.softness)) {}

  double memory, compute, both;
};

// Iterations of the grid that are worth a thread's while; `alone`: what one thread takes.
double GrainOf(const Work& work, const Parts& alone, const Rates& rates, double times = 1) {
  double task = alone.both / std::max(work.tasks, 1.0) + rates.task_us;
  return std::clamp(std::ceil(times * rates.grain_us / std::max(task, 1e-6)), 1.0, 1e15);
}

Price PriceOnCpu(const Work& work, const Machine& machine, const Rates& rates) {
  Price price;
  auto cores = static_cast<double>(std::max<int64_t>(machine.cores, 1));
  Shares one(1, 1, 1);
  Parts parts(work, rates, one);
  Shares shares(work.tasks, work.grain > 0 ? work.grain : GrainOf(work, parts, rates), cores);
  if (shares.threads > 1) parts = Parts(work, rates, shares);
  price.threads = shares.threads;
  price.launch = rates.step_us + AtThreads(rates.fork_us, price.threads, 0) +
                 work.tasks * rates.task_us / price.threads;
  price.memory = parts.memory;
  price.compute = parts.compute;
  price.binding = Binding(price);
  price.all = price.launch + parts.both;
  return price;
}

// Teams that a multiprocessor holds at a time.
double TeamsAtATime(const Work& work, const Rates& rates) {
  double threads = std::max(work.threads, 1.0);
  double teams = std::floor(rates.threads / threads);
  if (work.words > 0) teams = std::min(teams, std::floor(rates.registers / (work.words * threads)));
  if (work.team_bytes > 0) teams = std::min(teams, std::floor(rates.team_bytes / work.team_bytes));
  return std::clamp(teams, 1.0, 32.0);
}

// The most bytes a nanosecond that any amount of data reaches.
double MostOf(const Rates& rates) {
  double most = 0;
  for (const Bandwidth& at : rates.all) most = std::max(most, at.read);
  return most > 0 ? most : BandwidthAt(rates.all, 0).read;
}

// Operations of all tasks: what a multiprocessor has to do, or what a thread waits for.
double GpuOpsNs(const Work& work, const Rates& rates, double cores, double waves) {
  double ns = NsOfOps(work, rates), tasks = std::max(work.tasks, 1.0);
  // The last wave is paid for as a whole.
  double tail = waves < 1 ? 1 : std::ceil(waves) / waves;
  double shared = ns / std::min(cores, tasks) * tail;
  double simple = rates.ns[static_cast<size_t>(Pipe::kSimple)];
  if (simple <= 0) return shared;
  // Where threads are few, nothing is done while each waits for its own operations.
  double own = ns / simple / (tasks * std::max(work.threads, 1.0)) * rates.latency_ns;
  return Greater(shared, own * std::ceil(waves), rates.softness);
}

Price PriceOnGpu(const Work& work, const Machine& machine, const Rates& rates) {
  Price price;
  auto cores = static_cast<double>(std::max<int64_t>(machine.cores, 1));
  double teams = TeamsAtATime(work, rates), at_once = teams * cores;
  price.threads = std::min(work.tasks, at_once);
  price.launch = rates.graph_gap_us;
  double waves = std::max(work.tasks, 1.0) / at_once;
  price.compute = (GpuOpsNs(work, rates, cores, waves) +
                   work.barriers * rates.barrier_us * kNsPerUs * std::max(waves, 1.0)) /
                  kNsPerUs;
  double bytes = work.reads + work.writes;
  Bandwidth rate = BandwidthAt(rates.all, bytes);
  double full = work.writes > 0 && work.reads > 0 ? rate.copy
                : work.reads > 0                  ? rate.read
                                                  : rate.write;
  // Few threads have few bytes under way: what each reads and writes, up to some vectors.
  double vector = static_cast<double>(machine.vector_bits) / 8;
  double each = bytes / std::max(work.tasks * work.threads, 1.0);
  double in_flight = std::min(teams, work.tasks / cores) * work.threads *
                     std::clamp(each, vector / 4, vector * kVectorsUnderWay);
  // Of the most that memory gives: what little data reaches is less for the same reason.
  double share = rates.bytes_in_flight > 0 ? std::min(1.0, in_flight / rates.bytes_in_flight) : 1;
  double reached = std::min(full, MostOf(rates) * std::max(share, 1e-3));
  if (bytes > 0) price.memory = bytes / reached / kNsPerUs;
  if (full > 0) price.memory += (work.rereads + work.far_rereads) / (2 * full) / kNsPerUs;
  price.binding = Binding(price);
  price.all = price.launch + Greater(price.memory, price.compute, rates.softness);
  return price;
}

}  // namespace

Price PriceOf(const Work& work, const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  return machine.is_gpu() ? PriceOnGpu(work, machine, rates) : PriceOnCpu(work, machine, rates);
}

int64_t GrainOf(const Work& work, const Machine& machine, int64_t times) {
  const Rates& rates = RatesOf(machine);
  return static_cast<int64_t>(
      GrainOf(work, Parts(work, rates, Shares(1, 1, 1)), rates, static_cast<double>(times)));
}

}  // namespace tokamak
