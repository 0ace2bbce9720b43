#pragma once

#include <utility>
#include <vector>

#include "cost/rates.h"
#include "kernel/kernel.h"

namespace tokamak {

// Microbenchmark kernels for calibration. Each one saturates one resource of the machine.

enum class Traffic : uint8_t { kRead, kWrite, kCopy };

// Traverses `bytes` of arrays once (copy: half read, half written), with enough tasks for `threads`
// threads.
Kernel TrafficKernel(Traffic traffic, int64_t bytes, int64_t threads, const Machine& machine);

struct PipeKernel {
  Kernel kernel;
  Pipe pipe{};
  double count = 0;  // operations of `pipe`
  std::vector<std::pair<Pipe, double>> others;
  // Set if every operation depends on the previous one: the latency it measures.
  double Rates::*latency = nullptr;
};
// Ordered so that the rates of `others` are measured before they are needed.
std::vector<PipeKernel> PipeKernels(const Machine& machine);

// `tasks` tasks that store one number each: measures the task overhead.
Kernel EmptyKernel(int64_t tasks, const Machine& machine);
// `tasks` tasks of `iterations` iterations of simple operations, with full instruction-level
// parallelism.
Kernel BusyKernel(int64_t tasks, int64_t iterations, const Machine& machine);

}  // namespace tokamak
