#pragma once

#include <utility>
#include <vector>

#include "cost/rates.h"
#include "kernel/kernel.h"

namespace tokamak {

// Small kernels that each keep one part of the machine busy.

enum class Traffic : uint8_t { kRead, kWrite, kCopy };

// Goes over `bytes` of arrays once (a copy: half of them read, half written), in tasks for
// `threads` threads.
Kernel TrafficKernel(Traffic traffic, int64_t bytes, int64_t threads, const Machine& machine);

struct PipeKernel {
  Kernel kernel;
  Pipe pipe{};
  double count = 0;  // operations of that pipe
  std::vector<std::pair<Pipe, double>> others;
  double Rates::*latency = nullptr;  // each operation waits for the one before
};
// In an order in which `others` are known already.
std::vector<PipeKernel> PipeKernels(const Machine& machine);

// So many tasks that store a number each.
Kernel EmptyKernel(int64_t tasks, const Machine& machine);
// So many tasks of so many rounds of plain operations, as many at a time as a core can do.
Kernel BusyKernel(int64_t tasks, int64_t rounds, const Machine& machine);

}  // namespace tokamak
