#pragma once

#include <array>
#include <string>
#include <vector>

#include "cost/work.h"
#include "support/result.h"

namespace tokamak {

// The cost model, second half: the measured rates of a machine (work.h has the first half). Rates
// come from a machine file (machines/*.json), from `tokamak calibrate`, or from conservative
// defaults.

// Bandwidth in bytes per nanosecond (GB/s) at one working-set size, for repeated traversal.
struct Bandwidth {
  double bytes = 0;
  double read = 0, write = 0, copy = 0;  // copy counts bytes read plus bytes written
};

// The performance parameters of one machine. The default is a slow machine: measured machines are
// rarely slower.
struct Rates {
  std::string name;  // "Intel Xeon (Sapphire Rapids), 2 cores"
  std::string cpu;   // the processor as the operating system names it, with family and model
  // Unmeasured processors that may use these rates: "VENDOR FLAG ... !FLAG ...", with CPU flags
  // that must be present and (with !) absent. Empty: none.
  std::string compatible_cpu;
  int64_t cores = 1;
  std::string source;  // origin of the numbers: a file name, or "default"
  bool is_default = false;

  // Bytes per core; l3_bytes is the total of all slices.
  double l1_bytes = 32768, l2_bytes = 1 << 20, l3_bytes = 32 << 20;
  std::vector<Bandwidth> one, all;  // of one core, of all cores; ascending by bytes
  std::array<double, kPipes> ns{};  // per operation on one core (SM), at full throughput
  double latency_ns = 1.5;          // per operation of a dependent chain
  double sum_latency_ns = 1.5;      // per float addition of a dependent chain of additions
  double line_ns = 1;               // extra cost per non-contiguous cache-line access (Work::lines)
  double step_us = 0.2;             // a step on the calling thread
  double task_us = 0.01;            // a grid iteration
  // Fork and join of 1, 2, 4, 8 ... threads; the last entry is for all.
  std::vector<double> fork_us;
  // Slowdown of matrix multiplication with 1, 2, 4, 8 ... threads: two threads may be SMT siblings
  // of one core. Empty: no slowdown.
  std::vector<double> thread_contention;
  double min_chunk_us = 2.5;    // minimum parallel work per thread
  double overlap_exponent = 6;  // p of the p-norm that combines memory and compute (smooth maximum)

  // GPU only: gap between consecutive launches in a stream, and in a CUDA graph; a block barrier.
  double stream_gap_us = 0, graph_gap_us = 0, barrier_us = 0;
  double bytes_in_flight = 0;  // bytes in flight per SM that saturate the bandwidth
  // Per SM (H200: compute capability 9.0, CUDA programming guide).
  double registers = 65536, threads = 2048, shared_bytes = 233472;
  // GPU only, for persistent kernels:
  // - maximum cluster size in thread blocks (1: no clusters), and SMs that clusters can occupy;
  // - a cluster barrier, with 4 KiB of distributed shared memory stores to each block before it;
  // - distributed shared memory bandwidth per SM in bytes per nanosecond;
  // - a grid barrier, and the latency of a dependent launch beyond its work.
  double cluster_blocks = 1, cluster_sms = 0, cluster_us = 0.5, cluster_bytes_ns = 16;
  double grid_barrier_us = 1.2, wait_us = 2;
  // GPU only: of one load of a thread that fills the panels of asynchronous multiplies: latency
  // over the loads in flight. Measured on H200 with rows that bulk copies cannot address: 37 ns
  // (8192 x 768 x 30522, along K), 58 ns (30522 x 768 x 8192, along the rows).
  double panel_load_ns = 45;
  // GPU only: of a byte that a bulk copy writes to shared memory or an asynchronous multiply reads
  // from it: 128 bytes per cycle. Measured on H200: tiles of 128 x 128 take 390 ns per 64 of K, of
  // 128 x 64 250 ns.
  double panel_byte_ns = 0.0047;
  // GPU only: of a byte that consumers of results copy to shared memory. Measured on H200 with one
  // or two residuals in bf16 or f32 beside products of K = 64 to 4096.
  double result_byte_ns = 0.033;
  // GPU only: of a byte that bulk copies bring to panels: 1.5 to 1.6 ns per line of 128 bytes.
  // Measured on H200: convolutions in tiles of 128 x 64, and products in tiles of 128 x 256.
  double copied_byte_ns = 0.0121;
  // GPU only: of one load of a thread that uses the results of asynchronous multiplies: few threads
  // are there to hide its latency. Measured on H200 with Adam's update of 768 x 3072 parameters:
  // 0.8 us from memory; less from the L2 cache.
  double result_load_ns = 500;
  // Host-device link: bytes per nanosecond, minimum microseconds per transfer, source of the
  // numbers.
  double link_bytes_ns = 50, link_us = 10;
  std::string link_source = "PCIe 5.0 x16, not measured";
};

// The bandwidth for a working set of `bytes`, interpolated linearly in the logarithm of both.
Bandwidth BandwidthAt(const std::vector<Bandwidth>& curve, double bytes);
// Microseconds of reading or writing `bytes` with all cores, without the launch.
double CopyUs(double bytes, const Rates& rates);

// Nanoseconds of all operations on one core (SM) at full throughput, without stalls.
double NsOfOps(const Work& work, const Rates& rates);

// The measured rates of a machine, else the defaults for its kind.
const Rates& RatesOf(const Machine& machine);
const Rates& DefaultRates(MachineKind kind);

// Whether a processor with this vendor and these flags matches `compatible_cpu` (see Rates).
bool IsCompatibleCpu(std::string_view compatible_cpu, std::string_view vendor,
                     std::string_view flags);

std::string_view NameOf(Pipe pipe);

}  // namespace tokamak
