#include "cost/calibrate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cost/calibrate_kernels.h"
#include "cost/units.h"

namespace tokamak {
namespace {

constexpr double kLeastFork = 0.05;  // microseconds: below measurement noise

class Calibration {
 public:
  Calibration(Measurer& measurer, const Machine& machine, const CpuFacts& facts)
      : measurer_(measurer), machine_(machine) {
    rates_ = DefaultRates(MachineKind::kCpu);
    rates_.is_default = false;
    rates_.name = facts.name;
    rates_.cpu = facts.cpu;
    rates_.cores = machine.cores;
    rates_.source = "tokamak calibrate";
    if (facts.l1_bytes > 0) rates_.l1_bytes = facts.l1_bytes;
    if (facts.l2_bytes > 0) rates_.l2_bytes = facts.l2_bytes;
    if (facts.l3_bytes > 0) rates_.l3_bytes = facts.l3_bytes;
  }

  Result<Rates> Run() {
    measurer_.Progress("launches", 0);
    TOK_RETURN_IF_ERROR(Launches());
    measurer_.Progress("operations", 0.1);
    TOK_RETURN_IF_ERROR(Pipes());
    measurer_.Progress("bandwidth of one core", 0.3);
    TOK_TRY(rates_.one, Curve(1));
    rates_.all = rates_.one;
    if (machine_.cores > 1) {
      measurer_.Progress("bandwidth of all cores", 0.6);
      TOK_TRY(rates_.all, Curve(machine_.cores));
      // All cores reach at least what one core reaches. Corrects disturbed measurements.
      for (Bandwidth& point : rates_.all)
        for (double Bandwidth::*kind : {&Bandwidth::read, &Bandwidth::write, &Bandwidth::copy})
          point.*kind = std::max(point.*kind, BandwidthAt(rates_.one, point.bytes).*kind);
    }
    measurer_.Progress("done", 1);
    return rates_;
  }

 private:
  Result<std::vector<Bandwidth>> Curve(int64_t threads) {
    double last =
        std::min(std::max(4 * rates_.l2_bytes * static_cast<double>(threads), 256e6), 512e6);
    std::vector<double> sizes;
    // Smaller sizes are not worth several threads.
    for (double bytes = threads > 1 ? 1 << 20 : 8192; bytes <= last; bytes *= 2)
      sizes.push_back(bytes);
    std::vector<Kernel> kernels;
    for (double bytes : sizes)
      for (Traffic traffic : {Traffic::kRead, Traffic::kWrite, Traffic::kCopy})
        kernels.push_back(TrafficKernel(traffic, static_cast<int64_t>(bytes), threads, machine_));
    TOK_TRY(std::vector<double> us, measurer_.Micros(kernels, threads));
    std::vector<Bandwidth> curve;
    for (size_t i = 0; i < sizes.size(); ++i) {
      double begin = rates_.step_us + (threads > 1 ? rates_.fork_us.back() : 0);
      auto rate = [&](size_t kind) {
        double elapsed = us[3 * i + kind];
        return sizes[i] / (std::max(elapsed - begin, elapsed / 2) * kNsPerUs);
      };
      curve.push_back({sizes[i], rate(0), rate(1), rate(2)});
    }
    return curve;
  }

  Status Pipes() {
    std::vector<PipeKernel> kernels = PipeKernels(machine_);
    std::vector<Kernel> forms;
    for (const PipeKernel& kernel : kernels) forms.push_back(kernel.kernel);
    TOK_TRY(std::vector<double> us, measurer_.Micros(forms, 1));
    for (size_t i = 0; i < kernels.size(); ++i) {
      double ns = us[i] * kNsPerUs;
      // The rates of the kernel's other operations are known, because simple kernels come first.
      for (const auto& [pipe, count] : kernels[i].others)
        ns -= count * rates_.ns[static_cast<size_t>(pipe)];
      double each = std::max(ns / kernels[i].count, 1e-3);
      if (kernels[i].latency != nullptr) {
        rates_.*kernels[i].latency = each;
      } else {
        rates_.ns[static_cast<size_t>(kernels[i].pipe)] = each;
      }
    }
    return Ok();
  }

  Status Launches() {
    std::vector<Kernel> kernels = {EmptyKernel(1, machine_), EmptyKernel(4096, machine_)};
    TOK_TRY(std::vector<double> us, measurer_.Micros(kernels, 1));
    TOK_TRY(rates_.step_us, measurer_.StepMicros(kernels[0]));
    rates_.task_us = std::max((us[1] - us[0]) / 4095, 1e-5);
    return Threads();
  }

  // One task per thread, of two lengths: the difference is the work, the remainder the fork and
  // join.
  Status Threads() {
    constexpr int64_t kShort = 2000, kLong = 16000;  // trip counts: about 5 us and 40 us
    auto measure = [&](int64_t tasks) -> Result<std::pair<double, double>> {
      std::vector<Kernel> kernels = {BusyKernel(tasks, kShort, machine_),
                                     BusyKernel(tasks, kLong, machine_)};
      TOK_TRY(std::vector<double> us, measurer_.Micros(kernels, tasks));
      double repetition = std::max(us[1] - us[0], 1e-3) / (kLong - kShort);
      return std::make_pair(repetition, us[0] - rates_.step_us - repetition * kShort);
    };
    TOK_TRY(auto alone, measure(1));
    rates_.fork_us = {0};
    rates_.thread_contention = {1};
    for (int64_t threads = 2; machine_.cores > 1; threads *= 2) {
      TOK_TRY(auto shared, measure(std::min(threads, machine_.cores)));
      rates_.fork_us.push_back(std::max(shared.second, kLeastFork));
      rates_.thread_contention.push_back(
          std::max(shared.first / alone.first, rates_.thread_contention.back()));
      if (threads >= machine_.cores) break;
    }
    return Ok();
  }

  Measurer& measurer_;
  const Machine& machine_;
  Rates rates_;
};

}  // namespace

Result<Rates> Calibrate(Measurer& measurer, const Machine& machine, const CpuFacts& facts) {
  return Calibration(measurer, machine, facts).Run();
}

}  // namespace tokamak
