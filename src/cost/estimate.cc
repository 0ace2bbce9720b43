// EstimateCost: microseconds of a kernel, from its work and the machine's rates.
//
//   total   = launch + smooth_max(memory, compute)
//   memory  = bytes / bandwidth(working set, threads) + rereads + non-contiguous cache lines
//   compute = smooth_max(sum over pipes of count * ns, chain latency) * imbalance / threads
//
// On a CPU, threads and imbalance follow the thread pool's own partition of the grid, and `memory`
// interpolates the measured bandwidth by the bytes that each thread traverses. On a GPU, occupancy
// (registers, shared memory, threads) gives the resident blocks and so the number of waves.
// Bandwidth is limited by the bytes in flight, which few threads cannot reach.
// docs/cost_model.md derives the terms.

#include <algorithm>
#include <cmath>

#include "cost/occupancy.h"
#include "cost/panel_rates.h"
#include "cost/rates.h"
#include "cost/units.h"
#include "kernel/kernel.h"

namespace tokamak {
namespace {

// Outstanding vector loads per thread. Chosen: typical of unrolled kernels; bytes_in_flight is
// fitted with it.
constexpr double kVectorsInFlight = 8;
// Least fraction of the peak bandwidth that a kernel reaches. Chosen: keeps estimates finite.
constexpr double kMinBandwidth = 1e-3;

// Smooth maximum (p-norm): exceeds the maximum slightly if the two are about equal.
double SmoothMax(double x, double y, double overlap_exponent) {
  double most = std::max(x, y), least = std::min(x, y);
  if (most <= 0) return 0;
  if (least == 0) return most;
  return most * std::pow(1 + std::pow(least / most, overlap_exponent), 1 / overlap_exponent);
}

// Interpolates a table for 1, 2, 4, 8 ... threads.
double AtThreads(const std::vector<double>& known, double threads, double otherwise) {
  if (threads <= 1 || known.empty()) return otherwise;
  double at = std::log2(threads);
  auto low = static_cast<size_t>(at);
  size_t last = known.size() - 1;
  if (low >= last) return known[last];
  double fraction = at - static_cast<double>(low);
  return known[low] * (1 - fraction) + known[low + 1] * fraction;
}

// The distribution of a grid over threads, as in runtime/thread_pool.cc: chunks of at least
// min_chunk tasks, and up to twelve per thread.
struct ThreadSplit {
  ThreadSplit(double tasks, double min_chunk, double cores) {
    // Chunks per thread: kChunksPerThread, structure of runtime/thread_pool.cc.
    constexpr double kPricedChunksPerThread = 12;
    double threads_used = std::min(cores, std::floor(tasks / min_chunk));
    if (threads_used < 2) return;
    double chunk = std::max(min_chunk, std::floor(tasks / (threads_used * kPricedChunksPerThread)));
    double chunks = std::ceil(tasks / chunk);
    threads = std::min(cores, chunks);
    // With at most one remaining chunk, the last thread takes it, and it may be a short one.
    double each = std::floor(chunks / threads), over = chunks - each * threads;
    double most = over > 1 ? (each + 1) * chunk
                           : std::max(each * chunk, tasks - (chunks - each - over) * chunk);
    imbalance = std::max(1.0, most * threads / tasks);
  }

  double threads = 1;
  double imbalance = 1;  // time of the thread with the most tasks over the average
};

// Compute time, without memory. Matrix multiplication saturates the units of a core; other work
// leaves room for an SMT sibling.
double ComputeUs(const Work& work, const Rates& rates, const ThreadSplit& split) {
  constexpr auto kProducts = static_cast<size_t>(Pipe::kMultiply);
  double ns = NsOfOps(work, rates), products = 0;
  for (size_t i = kProducts; i < kPipes; ++i) products += work.ops[i] * rates.ns[i];
  ns += products * (AtThreads(rates.thread_contention, split.threads, 1) - 1);
  double waits = work.chain * rates.latency_ns + work.sums * rates.sum_latency_ns;
  return SmoothMax(ns, waits, rates.overlap_exponent) * split.imbalance / split.threads / kNsPerUs;
}

// Bandwidth of several threads that traverse `each` bytes each and `together` bytes in total. No
// thread is faster than one thread alone.
Bandwidth BandwidthOf(const Rates& rates, double each, double together, const ThreadSplit& split) {
  Bandwidth one = BandwidthAt(rates.one, each);
  if (split.threads <= 1) return one;
  Bandwidth all = BandwidthAt(rates.all, together);
  double times = split.threads / split.imbalance;
  return {together, std::min(one.read * times, all.read), std::min(one.write * times, all.write),
          std::min(one.copy * times, all.copy)};
}

// Repeated reads, and non-contiguous accesses.
double RereadNs(const Work& work, const Rates& rates, const ThreadSplit& split) {
  double ns = 0, l2_working_set = rates.l2_bytes / 2;
  if (work.rereads > 0)
    ns += work.rereads /
          BandwidthOf(rates, l2_working_set, l2_working_set * split.threads, split).read;
  if (work.memory_rereads > 0) {
    double llc_working_set =
        std::max(rates.l2_bytes * 2, std::min(work.reads + work.writes, rates.l3_bytes / 2));
    double together = std::max(llc_working_set, rates.l2_bytes * 2 * split.threads);
    ns += work.memory_rereads / BandwidthOf(rates, llc_working_set, together, split).read;
  }
  return ns + work.lines * rates.line_ns * split.imbalance / split.threads;
}

// Each byte that is both read and written is charged at the copy rate; the surplus at the rate of
// reading or writing.
double MemoryUs(const Work& work, const Rates& rates, const ThreadSplit& split) {
  double bytes = work.reads + work.writes;
  Bandwidth rate = BandwidthOf(rates, bytes / split.threads, bytes, split);
  double ns = 0;
  if (work.reads > 0 && work.writes > 0) {
    // Interpolates between pure reading (or writing) and copying.
    double both = 2 * std::min(work.reads, work.writes);
    double rest = bytes - both;
    ns = both / rate.copy + rest / (work.reads > work.writes ? rate.read : rate.write);
  } else if (bytes > 0) {
    ns = work.reads / rate.read + work.writes / rate.write;
  }
  return (ns + RereadNs(work, rates, split)) / kNsPerUs;
}

std::string_view Binding(const CostEstimate& estimate) {
  if (estimate.launch >= estimate.memory && estimate.launch >= estimate.compute) return "launch";
  return estimate.memory >= estimate.compute ? "memory" : "compute";
}

// The terms for a number of threads.
struct CostParts {
  CostParts(const Work& work, const Rates& rates, const ThreadSplit& split)
      : memory(MemoryUs(work, rates, split)),
        compute(ComputeUs(work, rates, split)),
        both(SmoothMax(memory, compute, rates.overlap_exponent)) {}

  double memory, compute, both;
};

// Minimum grid iterations per thread. `alone`: the terms of one thread.
double MinChunkOf(const Work& work, const CostParts& alone, const Rates& rates, double times = 1) {
  double task = alone.both / std::max(work.tasks, 1.0) + rates.task_us;
  // Bounds in us and in tasks. Chosen: beyond any useful value, so that the result is finite.
  constexpr double kMinTaskUs = 1e-6, kMaxChunk = 1e15;
  return std::clamp(std::ceil(times * rates.min_chunk_us / std::max(task, kMinTaskUs)), 1.0,
                    kMaxChunk);
}

// The minimum chunk depends on the time of one thread alone, so the terms are computed for one
// thread first.
CostEstimate EstimateOnCpu(const Work& work, const Machine& machine, const Rates& rates) {
  CostEstimate estimate;
  auto cores = static_cast<double>(std::max<int64_t>(machine.cores, 1));
  ThreadSplit one(1, 1, 1);
  CostParts threads_used(work, rates, one);
  ThreadSplit split(work.tasks,
                    work.min_chunk > 0 ? work.min_chunk : MinChunkOf(work, threads_used, rates),
                    cores);
  if (split.threads > 1) threads_used = CostParts(work, rates, split);
  estimate.threads = split.threads;
  estimate.launch = rates.step_us + AtThreads(rates.fork_us, estimate.threads, 0) +
                    work.tasks * rates.task_us / estimate.threads;
  estimate.memory = threads_used.memory;
  estimate.compute = threads_used.compute;
  estimate.binding = Binding(estimate);
  estimate.all = estimate.launch + threads_used.both;
  return estimate;
}

// The peak read bandwidth over all sizes, in bytes per nanosecond.
double MostOf(const Rates& rates) {
  double most = 0;
  for (const Bandwidth& at : rates.all) most = std::max(most, at.read);
  return most > 0 ? most : BandwidthAt(rates.all, 0).read;
}

// Time of all operations: the throughput limit of the SMs, or the latency limit of a thread.
double GpuOpsNs(const Work& work, const Rates& rates, double cores, double waves) {
  auto tensor = static_cast<size_t>(Pipe::kTensor);
  double ns = NsOfOps(work, rates) - work.ops[tensor] * rates.ns[tensor],
         tasks = std::max(work.tasks, 1.0);
  // The last wave of blocks costs as much as a full one (tail effect).
  double tail = waves < 1 ? 1 : std::ceil(waves) / waves;
  double shared = ns / std::min(cores, tasks) * tail;
  double simple = rates.ns[static_cast<size_t>(Pipe::kSimple)];
  if (simple <= 0) return shared;
  // With few threads, latency is exposed: each thread waits for its own operations. One warpgroup
  // of a block with asynchronous multiplies only starts copies.
  double threads = work.threads, independent = 1;
  if (work.ops[tensor] > 0) {
    threads -= MatrixMultiply::kWarpgroupThreads;
    independent = kIndependentResults;
  }
  // Sums of a thread whose multiply-adds do not wait for each other, in a block-wide multiply: at
  // least the accumulators of one fragment (structure: MatrixMultiply).
  constexpr double kAccumulators = 4;
  double products = 0;
  for (Pipe pipe : {Pipe::kMultiply, Pipe::kMultiply64})
    products += work[pipe] * rates.ns[static_cast<size_t>(pipe)];
  double waits = ns - products * (1 - 1 / kAccumulators);
  double own = waits / simple / (tasks * std::max(threads, 1.0)) / independent * rates.latency_ns;
  return SmoothMax(shared, own * std::ceil(waves), rates.overlap_exponent);
}

// Time of asynchronous multiplies: of tensor cores, shared memory, or the threads that fill panels.
// The consumers of the results come after the multiplies of a tile.
double GpuTensorNs(const Work& work, const Rates& rates, double cores) {
  auto tensor = static_cast<size_t>(Pipe::kTensor);
  double tasks = std::max(work.tasks, 1.0), busy = std::min(cores, tasks);
  double loads = work.result_loads / tasks * rates.result_load_ns;
  double fill = work.panel_ops / tasks / static_cast<double>(MatrixMultiply::kWarpgroupThreads) *
                rates.latency_ns / kIndependentPanelOps;
  return loads + fill +
         std::max({work.ops[tensor] * rates.ns[tensor] / busy,
                   work.panel_bytes * rates.panel_byte_ns / busy,
                   work.copied_bytes * rates.copied_byte_ns / busy,
                   work.panel_loads / tasks * rates.panel_load_ns});
}

// The bandwidth of this traffic, with enough bytes in flight.
double FullBandwidth(const Work& work, const Rates& rates) {
  Bandwidth rate = BandwidthAt(rates.all, work.reads + work.writes);
  if (work.writes > 0 && work.reads > 0) return rate.copy;
  return work.reads > 0 ? rate.read : rate.write;
}

// `threads` of the estimate are resident blocks. Barriers cost their time once per wave, because
// blocks of a wave overlap.
CostEstimate EstimateOnGpu(const Work& work, const Machine& machine, const Rates& rates) {
  CostEstimate estimate;
  auto cores = static_cast<double>(std::max<int64_t>(machine.cores, 1));
  double resident_blocks = OccupancyOf(work, rates).blocks, at_once = resident_blocks * cores;
  estimate.threads = std::min(work.tasks, at_once);
  estimate.launch = rates.graph_gap_us;
  double waves = std::max(work.tasks, 1.0) / at_once;
  double busy = std::min(cores, std::max(work.tasks, 1.0)),
         ops =
             GpuOpsNs(work, rates, cores, waves) + work.result_bytes * rates.result_byte_ns / busy,
         tensor = GpuTensorNs(work, rates, cores);
  double both = tensor + ops;
  if (work.takes_turns) {
    // Of two warpgroups that take turns, each uses its results while the other one multiplies. The
    // results of the last tile come after all multiplies, and half of the threads use them.
    double tiles = std::max(work.most_tiles, 1.0);
    both = std::max(tensor + 2 * ops / tiles, tensor / std::min(tiles, 2.0) + ops);
  }
  // Blocks that are on SMs of their own end with the one that has the most tiles.
  if (work.tasks <= cores) both *= work.imbalance;
  estimate.compute =
      (both + work.barriers * rates.barrier_us * kNsPerUs * std::max(waves, 1.0)) / kNsPerUs;
  double bytes = work.reads + work.writes, full = FullBandwidth(work, rates);
  // With few threads, few bytes are in flight: those of each thread, from one element of 32 bits
  // up to kVectorsInFlight vectors.
  constexpr double kElementBytes = 4;  // bytes of such an element (definition)
  double vector = static_cast<double>(machine.vector_bits) / 8;
  double each = bytes / std::max(work.tasks * work.threads, 1.0);
  double in_flight = std::min(resident_blocks, work.tasks / cores) * work.threads *
                     std::clamp(each, kElementBytes, vector * kVectorsInFlight);
  // A fraction of the peak bandwidth. The measured bandwidth of small sizes is lower for the same
  // reason.
  double fraction =
      rates.bytes_in_flight > 0 ? std::min(1.0, in_flight / rates.bytes_in_flight) : 1;
  double reached = std::min(full, MostOf(rates) * std::max(fraction, kMinBandwidth));
  if (bytes > 0) estimate.memory = bytes / reached / kNsPerUs;
  if (full > 0) estimate.memory += (work.rereads + work.memory_rereads) / (2 * full) / kNsPerUs;
  estimate.binding = Binding(estimate);
  estimate.all =
      estimate.launch + SmoothMax(estimate.memory, estimate.compute, rates.overlap_exponent);
  return estimate;
}

}  // namespace

Occupancy OccupancyOf(const Work& work, const Rates& rates) {
  constexpr double kMaxResidentBlocks = 32;  // blocks (CUDA programming guide)
  double threads = std::max(work.threads, 1.0);
  Occupancy occupancy{.blocks = std::floor(rates.threads / threads), .limit = "threads"};
  auto at_most = [&](double blocks, std::string_view limit) {
    if (blocks >= occupancy.blocks) return;
    occupancy.blocks = blocks;
    occupancy.limit = limit;
  };
  if (work.thread_registers > 0)
    at_most(std::floor(rates.registers / (work.thread_registers * threads)), "registers");
  if (work.shared_bytes > 0)
    at_most(std::floor(rates.shared_bytes / work.shared_bytes), "shared memory");
  at_most(kMaxResidentBlocks, "blocks");
  occupancy.blocks = std::max(occupancy.blocks, 1.0);
  occupancy.threads = std::min(1.0, occupancy.blocks * threads / rates.threads);
  return occupancy;
}

CostEstimate EstimateCost(const Work& work, const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  return machine.is_gpu() ? EstimateOnGpu(work, machine, rates)
                          : EstimateOnCpu(work, machine, rates);
}

double LeastMicroseconds(const Work& work, const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  double bytes = work.reads + work.writes;
  return rates.graph_gap_us + (bytes > 0 ? bytes / FullBandwidth(work, rates) / kNsPerUs : 0);
}

int64_t MinChunkOf(const Work& work, const Machine& machine, int64_t times) {
  const Rates& rates = RatesOf(machine);
  return static_cast<int64_t>(MinChunkOf(work, CostParts(work, rates, ThreadSplit(1, 1, 1)), rates,
                                         static_cast<double>(times)));
}

}  // namespace tokamak
