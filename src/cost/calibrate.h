#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost/rates.h"
#include "kernel/kernel.h"
#include "support/result.h"

namespace tokamak {

// Runs things on the machine at hand: whoever has a backend fills this.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // Microseconds of a run of each kernel, one after the other: all of its grid on the calling
  // thread, the best of several, or shared out among `threads`, the median.
  virtual Result<std::vector<double>> Micros(std::span<const Kernel> kernels, int64_t threads) = 0;
  // "bandwidth of one core"; `share`: how much is done.
  virtual void Progress(const std::string& what, double share) = 0;
};

// What is known of the processor without measuring.
struct CpuFacts {
  std::string name, cpu;  // as in Rates
  double l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
};

// The rates of this machine, measured with kernels of our own form. Half a minute at most.
Result<Rates> Calibrate(Measurer& measurer, const Machine& machine, const CpuFacts& facts);

// A kernel that was measured.
struct FitPoint {
  Work work;
  double measured_us = 0;
  double weight = 1;  // 0: is predicted, but nothing is fitted to it
};
// Moves rates of pipes and factors of bandwidth so that the prices of kernels come near what was
// measured, and no farther from the calibrated ones than that needs. Deterministic.
Rates FitRates(const Rates& rates, const Machine& machine, std::span<const FitPoint> points);

}  // namespace tokamak
