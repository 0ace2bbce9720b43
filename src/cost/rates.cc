#include "cost/rates.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cost/units.h"

namespace tokamak {
namespace {

constexpr std::array<std::string_view, kPipes> kPipeNames = {
    "simple",  "integer", "divide",   "divide64",   "root",       "root64",
    "convert", "scalar",  "index",    "load",       "store",      "gather",
    "scatter", "branch",  "multiply", "multiply64", "multiply16", "tensor"};

// Defaults for an unmeasured CPU: 128-bit vectors, two memory channels. Chosen: the measured
// machines (machines/*.json) are not much slower.
Rates CpuDefault() {
  Rates rates;
  rates.name = "a processor that was not measured";
  rates.source = "default";
  rates.is_default = true;
  rates.one = {{16e3, 60, 30, 60}, {256e3, 40, 20, 40}, {8e6, 15, 10, 15}, {256e6, 10, 6, 10}};
  rates.all = {{16e3, 60, 30, 60}, {256e3, 60, 30, 60}, {8e6, 30, 20, 30}, {256e6, 20, 12, 20}};
  rates.ns = {0.25, 0.6, 3, 5, 4, 7, 0.5, 4, 0.1, 0.3, 0.4, 0.7, 0.8, 0.3, 0.03, 0.06, 0.03, 0};
  rates.latency_ns = rates.sum_latency_ns = 1.5;
  rates.step_us = 0.2;
  rates.task_us = 0.002;
  rates.fork_us = {0, 3, 5, 8, 12};
  rates.min_chunk_us = 2.5;
  return rates;
}

// Defaults for an unmeasured GPU: 90% of the H200 data sheet.
Rates GpuDefault() {
  Rates rates;
  rates.name = "an H200";
  rates.source = "default";
  rates.is_default = true;
  rates.l1_bytes = 128e3;
  rates.l2_bytes = 50e6;
  rates.l3_bytes = 50e6;
  rates.all = {{1e6, 4000, 4000, 4000}, {25e6, 5500, 5500, 5500}, {200e6, 4200, 4200, 4200}};
  rates.one = rates.all;
  // Per SM: 128 results per cycle at 1.8 GHz.
  rates.ns = {0.0045, 0.009, 0.045, 0.3,  0.045,  0.3,    0.03,  0.1,   0.0045,
              0.02,   0.02,  0.05,  0.05, 0.0045, 0.0045, 0.009, 0.001, 0.00037};
  rates.latency_ns = rates.sum_latency_ns = 4;
  rates.stream_gap_us = 2;
  rates.graph_gap_us = 1.3;
  rates.barrier_us = 0.02;
  rates.bytes_in_flight = 40000;
  return rates;
}

}  // namespace

std::string_view NameOf(Pipe pipe) {
  return kPipeNames[static_cast<size_t>(pipe)];
}

Bandwidth BandwidthAt(const std::vector<Bandwidth>& curve, double bytes) {
  if (curve.empty()) return {bytes, 1, 1, 1};
  if (bytes <= curve.front().bytes) return curve.front();
  if (bytes >= curve.back().bytes) return curve.back();
  size_t i = 1;
  while (curve[i].bytes < bytes) ++i;
  const Bandwidth &low = curve[i - 1], &high = curve[i];
  double fraction = std::log(bytes / low.bytes) / std::log(high.bytes / low.bytes);
  auto between = [&](double x, double y) { return x * std::pow(y / x, fraction); };
  return {bytes, between(low.read, high.read), between(low.write, high.write),
          between(low.copy, high.copy)};
}

double CopyUs(double bytes, const Rates& rates) {
  return bytes / BandwidthAt(rates.all, bytes).copy / kNsPerUs;
}

double NsOfOps(const Work& work, const Rates& rates) {
  double ns = 0;
  for (size_t i = 0; i < kPipes; ++i) ns += work.ops[i] * rates.ns[i];
  return ns;
}

bool IsCompatibleCpu(std::string_view compatible_cpu, std::string_view vendor,
                     std::string_view flags) {
  std::istringstream words{std::string(compatible_cpu)};
  std::string word, padded = " " + std::string(flags) + " ";
  if (!(words >> word) || word != vendor) return false;
  while (words >> word) {
    bool absent = word[0] == '!';
    bool there = padded.find(" " + word.substr(absent ? 1 : 0) + " ") != std::string::npos;
    if (there == absent) return false;
  }
  return true;
}

const Rates& DefaultRates(MachineKind kind) {
  static const auto* cpu = new Rates(CpuDefault());
  static const auto* gpu = new Rates(GpuDefault());
  return kind == MachineKind::kGpu ? *gpu : *cpu;
}

const Rates& RatesOf(const Machine& machine) {
  return machine.rates != nullptr ? *machine.rates : DefaultRates(machine.kind);
}

}  // namespace tokamak
