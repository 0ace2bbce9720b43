#include "driver/report/targets.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/rates.h"
#include "driver/report/write.h"
#include "support/json_text.h"

namespace tokamak {
namespace {

// Range of size factors searched for the break-even (chosen).
constexpr double kSmallest = 1.0 / 4096, kLargest = 4096;

Work Scaled(Work work, double scale) {
  for (double* count : {&work.tasks, &work.reads, &work.writes, &work.rereads, &work.memory_rereads,
                        &work.lines, &work.sums, &work.chain})
    *count *= scale;
  work.tasks = std::max(1.0, work.tasks);
  for (double& ops : work.ops) ops *= scale;
  return work;
}

// Launch overhead, independent of the size of the arrays.
double LaunchMicros(const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  return machine.is_gpu() ? rates.graph_gap_us : rates.step_us;
}

// Microseconds of all steps with arrays scaled by `scale`. Launch overhead does not scale.
double EstimateAt(const CompileReport& report, double scale) {
  double us = 0;
  for (const StepReport& step : report.steps) {
    double now = step.predicted_us.value_or(0);
    double launch = std::min(now, LaunchMicros(report.machine()));
    double own = step.work ? EstimateCost(Scaled(*step.work, scale), report.machine()).total()
                           : launch + (now - launch) * scale;
    us += static_cast<double>(step.runs()) * own;
  }
  return us;
}

class BreakEvenFinder {
 public:
  BreakEvenFinder(const CompileReport& host, const CompileReport& gpu,
                  const DeviceComparison& comparison)
      : host_(host), gpu_(gpu), comparison_(comparison) {}

  // The size factor nearest to 1 at which the sign of the difference changes.
  std::optional<double> BreakEven(bool transfers) const {
    bool now = Difference(1, transfers) > 0;
    double best = 0;
    for (double factor : {2.0, 0.5}) {
      for (double scale = factor; scale >= kSmallest && scale <= kLargest; scale *= factor) {
        if ((Difference(scale, transfers) > 0) == now) continue;
        double found = Between(scale / factor, scale, transfers);
        if (best == 0 || std::abs(std::log(found)) < std::abs(std::log(best))) best = found;
        break;
      }
    }
    return best == 0 ? std::nullopt : std::optional(best);
  }

 private:
  // Positive if the GPU is faster.
  double Difference(double scale, bool transfers) const {
    const Rates& rates = RatesOf(gpu_.machine());
    double moved = static_cast<double>(comparison_.transferred) * scale;
    double link = transfers ? 2 * rates.link_us + moved / rates.link_bytes_ns / 1000 : 0;
    return EstimateAt(host_, scale) - EstimateAt(gpu_, scale) - link;
  }

  double Between(double low, double high, bool transfers) const {
    bool at_low = Difference(low, transfers) > 0;
    for (int i = 0; i < 30; ++i) {
      double middle = std::sqrt(low * high);
      ((Difference(middle, transfers) > 0) == at_low ? low : high) = middle;
    }
    return high;
  }

  const CompileReport &host_, &gpu_;
  const DeviceComparison& comparison_;
};

// The first dimension shared by more than half of the arguments; 0 if none.
int64_t BatchOf(const Module& module) {
  std::map<int64_t, int> sizes;
  int arrays = 0;
  for (const Instr* parameter : module.entry()->parameters()) {
    if (!parameter->shape().IsArray() || parameter->shape().rank() == 0) continue;
    ++sizes[parameter->shape().dim(0)];
    ++arrays;
  }
  for (auto [size, count] : sizes)
    if (2 * count > arrays) return size;
  return 0;
}

std::string BreakEvenBatchText(const std::optional<double>& break_even, bool gpu_wins,
                               int64_t batch) {
  std::string_view other = gpu_wins ? "host" : "h200";
  if (!break_even)
    return fmt::format("{2} is not faster at any size from {0:g} to {1:g} times this one",
                       kSmallest, kLargest, other);
  std::string text = fmt::format("with arrays {:.3g} times {}, {} is faster",
                                 *break_even > 1 ? *break_even : 1 / *break_even,
                                 *break_even > 1 ? "larger" : "smaller", other);
  if (batch > 1)
    text += fmt::format(" (a first dimension of {:.0f} instead of {})",
                        std::max(1.0, std::round(*break_even * static_cast<double>(batch))), batch);
  return text;
}

}  // namespace

DeviceComparison CompareDevices(const Module& module, const CompileReport& host,
                                const CompileReport& gpu) {
  DeviceComparison comparison;
  comparison.host = host.totals;
  comparison.gpu = gpu.totals;
  comparison.transferred = BytesOfLeaves(module.entry()->root()->shape());
  for (const Instr* parameter : module.entry()->parameters())
    comparison.transferred += BytesOfLeaves(parameter->shape());
  const Rates& rates = RatesOf(gpu.machine());
  comparison.transfer_us =
      2 * rates.link_us + static_cast<double>(comparison.transferred) / rates.link_bytes_ns / 1000;
  comparison.link = rates.link_source;
  comparison.batch = BatchOf(module);
  BreakEvenFinder comparer(host, gpu, comparison);
  comparison.break_even_with_transfers = comparer.BreakEven(true);
  comparison.break_even_without = comparer.BreakEven(false);
  return comparison;
}

std::string TextOf(const DeviceComparison& comparison) {
  std::string text;
  text += fmt::format("host: {} steps, {:.4g} us predicted\n", comparison.host.steps(),
                      comparison.host.us);
  text += fmt::format(
      "h200: {} steps, {:.4g} us predicted; {:.4g} us to transfer {} to the GPU and back\n",
      comparison.gpu.steps(), comparison.gpu.us, comparison.transfer_us,
      BytesText(comparison.transferred));
  auto say = [&](const char* where, double gpu_us, const std::optional<double>& break_even) {
    bool gpu_wins = gpu_us < comparison.host.us;
    text += fmt::format("{}: {} is faster, {:.4g} us against {:.4g}; {}\n", where,
                        gpu_wins ? "h200" : "host", std::min(gpu_us, comparison.host.us),
                        std::max(gpu_us, comparison.host.us),
                        BreakEvenBatchText(break_even, gpu_wins, comparison.batch));
  };
  say("arrays on the host", comparison.gpu.us + comparison.transfer_us,
      comparison.break_even_with_transfers);
  say("arrays on the device that runs it", comparison.gpu.us, comparison.break_even_without);
  return text + "sizes: the work of each kernel is scaled, plans are unchanged; transfers: " +
         comparison.link + "\n";
}

nlohmann::json JsonOf(const DeviceComparison& comparison) {
  bool with = comparison.gpu.us + comparison.transfer_us < comparison.host.us;
  return {{"host", JsonOf(comparison.host)},
          {"h200", JsonOf(comparison.gpu)},
          {"transferred_bytes", comparison.transferred},
          {"transfer_us", comparison.transfer_us},
          {"transfers", comparison.link},
          {"faster_with_transfers", with ? "h200" : "host"},
          {"faster_without", comparison.gpu.us < comparison.host.us ? "h200" : "host"},
          {"break_even_with_transfers", OrNull(comparison.break_even_with_transfers)},
          {"break_even_without_transfers", OrNull(comparison.break_even_without)},
          {"batch", comparison.batch},
          {"by", "scaled work"}};
}

}  // namespace tokamak
