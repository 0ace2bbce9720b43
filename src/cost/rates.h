#pragma once

#include <array>
#include <string>
#include <vector>

#include "cost/work.h"
#include "support/result.h"

namespace tokamak {

// Bytes a nanosecond at one size of what is read and written again and again.
struct Bandwidth {
  double bytes = 0;
  double read = 0, write = 0, copy = 0;  // copy: bytes read and bytes written, both counted
};

// What a machine was measured to do: a file of machines/, one that `tokamak calibrate` wrote, or
// the default, which no machine is much slower than.
struct Rates {
  std::string name;  // "Intel Xeon (Sapphire Rapids), 2 cores"
  std::string cpu;   // as the system names the processor, with family and model
  // Other processors that are priced alike as long as nobody has measured them: "MAKER FLAG ...",
  // flags that the system names, "!FLAG": one that it does not. "": none.
  std::string kin;
  int64_t cores = 1;
  std::string source;  // where the numbers come from: a file, "default"
  bool is_default = false;

  double l1_bytes = 32768, l2_bytes = 1 << 20, l3_bytes = 32 << 20;  // l3: all together
  std::vector<Bandwidth> one, all;  // of one core, of all of them; bytes ascending
  std::array<double, kPipes>
      ns{};                     // of an operation on one core (multiprocessor), when there are many
  double latency_ns = 1.5;      // of one that waits for the one before
  double sum_latency_ns = 1.5;  // the same of a sum that waits for a sum
  double line_ns = 1;           // more for each part of a far array that lies apart
  double step_us = 0.2;         // a step on the calling thread
  double task_us = 0.01;        // an iteration of the grid
  std::vector<double> fork_us;  // sharing out among 1, 2, 4, 8 ... threads, the last: all
  // How many times as long products of matrices take when 1, 2, 4, 8 ... threads are at them: two
  // threads may be one core's. Empty: none.
  std::vector<double> crowd;
  double grain_us = 2.5;  // work that is worth a thread's while
  double softness = 6;    // of the greater of memory and compute: a p-norm

  // Of GPUs.
  double stream_gap_us = 0, graph_gap_us = 0, barrier_us = 0;
  double bytes_in_flight = 0;  // of a multiprocessor: what full bandwidth takes
  double registers = 65536, threads = 2048, team_bytes = 233472;  // of a multiprocessor
  // Where teams stay and meet: blocks of a cluster at most (1: there are none); multiprocessors
  // that clusters fill; a meeting of a cluster's threads, with 4 KiB that come to each block before
  // it, and what comes to a multiprocessor in a nanosecond; a meeting of all teams of a launch;
  // what a launch takes more than its work, where the next waits for it.
  double cluster_blocks = 1, cluster_cores = 0, cluster_us = 0.5, cluster_bytes_ns = 16;
  double meeting_us = 1.2, wait_us = 2;
  // Between the host's memory and its own: bytes a nanosecond, microseconds that a transfer takes
  // at least, and where that is from.
  double link_bytes_ns = 50, link_us = 10;
  std::string link_source = "PCIe 5.0 x16, not measured";
};

// Bytes a nanosecond when `bytes` are gone over again and again; between the points of a curve by
// the logarithm of the size.
Bandwidth BandwidthAt(const std::vector<Bandwidth>& curve, double bytes);

// Nanoseconds of all its operations on one core (multiprocessor), were there no waiting.
double NsOfOps(const Work& work, const Rates& rates);

// The rates of a machine: its own, else the default of its kind.
const Rates& RatesOf(const Machine& machine);
const Rates& DefaultRates(MachineKind kind);

// Whether a processor of this maker with these flags is one that `kin` means.
bool IsKin(std::string_view kin, std::string_view maker, std::string_view flags);

std::string_view NameOf(Pipe pipe);

}  // namespace tokamak
