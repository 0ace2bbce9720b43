#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost/rates.h"
#include "kernel/kernel.h"
#include "support/result.h"

namespace tokamak {

// Calibration: measures the rates of the current machine with microbenchmark kernels
// (calibrate_kernels.h), and fits rates to measured workloads.

// Runs kernels on the current machine. Implemented by the caller, which has a backend.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // Microseconds of one run of each kernel, measured in sequence. With one thread: the whole grid
  // on the calling thread, minimum of several runs. Otherwise distributed over `threads` threads,
  // median.
  virtual Result<std::vector<double>> Micros(std::span<const Kernel> kernels, int64_t threads) = 0;
  // Microseconds of one of many steps of a program that launch a kernel on the calling thread.
  virtual Result<double> StepMicros(const Kernel& kernel) = 0;
  // Reports progress: `what` is a phase ("bandwidth of one core"), `fraction` the completed part.
  virtual void Progress(const std::string& what, double fraction) = 0;
};

// Properties of the processor that need no measurement.
struct CpuFacts {
  std::string name, cpu;  // as in Rates
  double l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
};

// Measures the rates of this machine. Takes at most half a minute.
Result<Rates> Calibrate(Measurer& measurer, const Machine& machine, const CpuFacts& facts);

// A measured kernel.
struct FitPoint {
  Work work;
  double measured_us = 0;
  double weight = 1;  // 0: test point, not used for fitting
};
// Adjusts pipe rates and bandwidth factors so that estimates approach the measurements, and moves
// no further from the calibrated rates than necessary. Deterministic.
Rates FitRates(const Rates& rates, const Machine& machine, std::span<const FitPoint> points);

}  // namespace tokamak
