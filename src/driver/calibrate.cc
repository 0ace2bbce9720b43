#include "driver/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "cost/calibrate.h"
#include "driver/host_rates.h"
#include "driver/kernel_codes.h"
#include "runtime/host_allocator.h"
#include "runtime/steps.h"
#include "runtime/thread_pool.h"

namespace tokamak {
namespace {

double NowUs() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

int64_t GridOf(const Kernel& kernel) {
  const ScalarNode& extent = kernel.node(kernel.loop(kernel.body[0].loop).extent);
  return IntOfBits(extent.type, extent.bits);
}

class HostMeasurer final : public Measurer {
 public:
  explicit HostMeasurer(CalibrationWatcher& watcher) : watcher_(watcher) {}
  HostMeasurer(const HostMeasurer&) = delete;
  HostMeasurer& operator=(const HostMeasurer&) = delete;
  ~HostMeasurer() override {
    if (memory_ != nullptr) HostAllocator::OfProcess().Free(memory_, bytes_);
  }

  Result<std::vector<double>> Micros(std::span<const Kernel> kernels, int64_t threads) override {
    std::vector<Kernel> copies(kernels.begin(), kernels.end());
    TOK_TRY(KernelCodes codes, MakeCodes(copies, KernelMaker::kMachineCode));
    size_t most = 0;
    for (const Kernel& kernel : kernels) most = std::max(most, BytesOf(kernel));
    TOK_RETURN_IF_ERROR(Reserve(most));
    std::vector<double> times;
    for (size_t i = 0; i < copies.size(); ++i)
      times.push_back(Measure(copies[i], *codes.all[i], threads));
    return times;
  }

  // What a loop takes beyond its longest part: nobody comes for a loop that is done at once.
  double ForkMicros(int64_t threads) override {
    ThreadPool pool(static_cast<int>(threads));
    constexpr int kTimes = 50;
    constexpr double kPartUs = 10;
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      double begin = NowUs();
      for (int i = 0; i < kTimes; ++i)
        pool.For(threads, 1, [](int64_t from, int64_t to) {
          double end = NowUs() + kPartUs * static_cast<double>(to - from);
          while (NowUs() < end) {
          }
        });
      best = std::min(best, (NowUs() - begin) / kTimes);
    }
    pool.Stop();
    return std::max(best - kPartUs, 0.05);
  }

  void Progress(const std::string& what, double share) override { watcher_.Progress(what, share); }

 private:
  // Each array begins a page of its own.
  static size_t Padded(const Array& array) {
    constexpr size_t kPage = 4096;
    return (static_cast<size_t>(array.size * tokamak::BytesOf(array.type)) / kPage + 2) * kPage;
  }
  static size_t BytesOf(const Kernel& kernel) {
    size_t bytes = 0;
    for (size_t i = 0; i < kernel.ArgumentCount(); ++i) bytes += Padded(kernel.arrays[i]);
    return bytes;
  }

  Status Reserve(size_t bytes) {
    if (bytes <= bytes_) return Ok();
    if (memory_ != nullptr) HostAllocator::OfProcess().Free(memory_, bytes_);
    memory_ = static_cast<std::byte*>(HostAllocator::OfProcess().Allocate(bytes));
    bytes_ = memory_ == nullptr ? 0 : bytes;
    if (memory_ == nullptr)
      return MakeError(ErrorCode::kOutOfMemory, "calibrate: there is no memory for the arrays");
    return Ok();
  }

  // Numbers that are no zeros: some processors are faster with those.
  static void Fill(std::byte* to, const Array& array) {
    uint32_t state = 12345;
    auto width = static_cast<size_t>(tokamak::BytesOf(array.type));
    std::vector<std::byte> block(4096 * width);
    for (size_t i = 0; i < block.size(); i += width) {
      state = state * 1664525 + 1013904223;
      double number = IsFloat(array.type) ? 0.5 + (state >> 8) * 0x1p-24 : state >> 8;
      Bits bits = BitsOfDouble(array.type, number);
      std::memcpy(block.data() + i, &bits, width);
    }
    size_t bytes = static_cast<size_t>(array.size) * width;
    for (size_t at = 0; at < bytes; at += block.size())
      std::memcpy(to + at, block.data(), std::min(block.size(), bytes - at));
  }

  double Measure(const Kernel& kernel, const KernelCode& code, int64_t threads) {
    std::vector<std::byte*> memories;
    RunStep step{.kind = StepKind::kLaunch};
    std::byte* at = memory_;
    for (size_t i = 0; i < kernel.ArgumentCount(); ++i) {
      Fill(at, kernel.arrays[i]);
      memories.push_back(at);
      step.places.push_back({static_cast<int32_t>(i), 0});
      at += Padded(kernel.arrays[i]);
    }
    step.grid = GridOf(kernel);
    step.grain = threads > 1 ? 1 : step.grid;
    const KernelCode* codes[] = {&code};
    StepContext context{.memories = memories, .kernels = codes, .products = {}, .functions = {}};
    const std::vector<RunStep> steps = {std::move(step)};
    // As many runs at a time as a clock can tell.
    int64_t runs = 1;
    double best = 1e30, begin = NowUs();
    constexpr double kLeastUs = 200, kMostUs = 100000;
    for (int round = 0; round < 60 && (round < 4 || NowUs() - begin < kMostUs); ++round) {
      double start = NowUs();
      for (int64_t i = 0; i < runs; ++i) static_cast<void>(RunSteps(steps, context));
      double us = NowUs() - start;
      best = std::min(best, us / static_cast<double>(runs));
      if (us < kLeastUs) runs *= 4;
    }
    return best;
  }

  CalibrationWatcher& watcher_;
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace

Result<Rates> CalibrateHost(CalibrationWatcher& watcher) {
  HostMeasurer measurer(watcher);
  Machine machine = HostMachine();
  machine.rates = nullptr;
  return Calibrate(measurer, machine, HostFacts());
}

}  // namespace tokamak
