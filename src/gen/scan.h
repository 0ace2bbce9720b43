#pragma once

#include <optional>
#include <string>

#include "gen/generator.h"

// Analysis of scans: a computation applied along one dimension with carried values (cumulative
// sums, linear recurrences).

namespace tokamak {

// A scan. Arrays are viewed as [outer, length, inner]; the scan runs along `length`.
struct Scan {
  const Instr* instr = nullptr;
  const Computation* body = nullptr;
  size_t inputs = 0, outputs = 0, carries = 0;
  size_t along = 0;  // the dimension of `dims` that is scanned; `length` is its size
  bool is_reverse = false;
  Dims dims, carry_dims;  // `dims`: sizes of inputs and outputs. `carry_dims`: sizes of the carries
  int64_t outer = 1, length = 1, inner = 1;

  // Whether the scan, and elementwise code fused with it, runs in parallel lanes: vector lanes on a
  // CPU, threads on a GPU. On a CPU, sequences adjacent along `inner` are then vector lanes;
  // otherwise the code is scalar. On a GPU always true, whatever `inner` is.
  bool RunsInParallelLanes(const Machine& machine) const {
    return inner >= kMinScanLanes || machine.is_gpu();
  }
  // Lanes. Chosen: with fewer, gathering and storing partial vectors costs what they save.
  static constexpr int64_t kMinScanLanes = 4;
};

// Returns why a scan has no kernel, nullopt if it has one.
std::optional<std::string> WhyNoScanKernel(const Instr& instr);
// Requires that WhyNoScanKernel returns nullopt.
Scan ScanOf(const Instr& instr);

// A prefix scan: result i is x0 op ... op xi (inclusive, `is_inclusive`) or x0 op ... op x(i-1)
// (exclusive). The op is associative and commutative, so the scan can be split.
struct PrefixScan {
  Op op{};
  bool is_inclusive = true;
};
std::optional<PrefixScan> PrefixScanOf(const Instr& scan);

}  // namespace tokamak
