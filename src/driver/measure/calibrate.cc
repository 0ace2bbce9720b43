#include "driver/measure/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "cost/calibrate.h"
#include "driver/compile/host_rates.h"
#include "driver/run/kernel_codes.h"
#include "runtime/host_allocator.h"
#include "runtime/steps.h"

namespace tokamak {
namespace {

double CalibrationNowUs() {
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
  ~HostMeasurer() override = default;

  Result<std::vector<double>> Micros(std::span<const Kernel> kernels, int64_t threads) override {
    std::vector<Kernel> copies(kernels.begin(), kernels.end());
    TOK_TRY(KernelCodes codes, MakeCodes(copies, KernelBackend::kMachineCode));
    std::vector<double> times;
    for (size_t i = 0; i < copies.size(); ++i) {
      TOK_TRY(double us, Measure(copies[i], *codes.all[i], threads, 1));
      times.push_back(us);
    }
    return times;
  }

  Result<double> StepMicros(const Kernel& kernel) override {
    // Enough to hide what a whole run costs beside its steps (chosen).
    constexpr size_t kSteps = 256;
    std::vector<Kernel> copies = {kernel};
    TOK_TRY(KernelCodes codes, MakeCodes(copies, KernelBackend::kMachineCode));
    TOK_TRY(double us, Measure(copies[0], *codes.all[0], 1, kSteps));
    return us / kSteps;
  }

  void Progress(const std::string& what, double fraction) override {
    watcher_.Progress(what, fraction);
  }

 private:
  // Allocate arrays as a program does: the cache sizes seen depend on the page size.
  class Memory {
   public:
    explicit Memory(const Array& array)
        : bytes_(static_cast<size_t>(array.size * BytesOf(array.type))),
          data_(HostAllocator::OfProcess().Allocate(bytes_)) {}
    Memory(Memory&& other) noexcept
        : bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { HostAllocator::OfProcess().Free(data_, bytes_); }
    std::byte* data() const { return static_cast<std::byte*>(data_); }

   private:
    size_t bytes_;
    void* data_;
  };

  // Nonzero numbers: some processors are faster with zeros.
  static void Fill(std::byte* to, const Array& array) {
    uint32_t state = 12345;
    auto width = static_cast<size_t>(BytesOf(array.type));
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

  // Of a program of `launches` steps.
  Result<double> Measure(const Kernel& kernel, const KernelCode& code, int64_t threads,
                         size_t launches) {
    std::vector<Memory> arrays;
    std::vector<std::byte*> memories;
    RunStep step{.kind = StepKind::kLaunch};
    for (size_t i = 0; i < kernel.ArgumentCount(); ++i) {
      arrays.emplace_back(kernel.arrays[i]);
      if (arrays.back().data() == nullptr)
        return MakeError(ErrorCode::kOutOfMemory, "calibrate: out of memory for the arrays");
      Fill(arrays.back().data(), kernel.arrays[i]);
      memories.push_back(arrays.back().data());
      step.slices.push_back({static_cast<int32_t>(i), 0});
    }
    step.grid = GridOf(kernel);
    step.min_chunk = threads > 1 ? 1 : step.grid;
    const KernelCode* codes[] = {&code};
    StepContext context{.memories = memories, .kernels = codes, .products = {}, .functions = {}};
    const std::vector<RunStep> steps(launches, step);
    // Repeat until the time can be resolved by the clock.
    int64_t runs = 1;
    std::vector<double> times;
    double begin = CalibrationNowUs();
    // Microseconds: a batch of runs takes at least kLeastUs, all batches about kMostUs (chosen:
    // long enough for the clock).
    constexpr double kLeastUs = 200, kMostUs = 100000;
    for (int repetition = 0;
         repetition < 60 && (repetition < 4 || CalibrationNowUs() - begin < kMostUs);
         ++repetition) {
      double start = CalibrationNowUs();
      for (int64_t i = 0; i < runs; ++i) static_cast<void>(RunSteps(steps, context));
      double us = CalibrationNowUs() - start;
      times.push_back(us / static_cast<double>(runs));
      if (us < kLeastUs) runs *= 4;
    }
    // A single thread can run undisturbed: take the minimum. With several threads one is usually
    // delayed: take the median.
    auto kept = times.begin() + static_cast<ptrdiff_t>(threads > 1 ? times.size() / 2 : 0);
    std::nth_element(times.begin(), kept, times.end());
    return *kept;
  }

  CalibrationWatcher& watcher_;
};

}  // namespace

Result<Rates> CalibrateHost(CalibrationWatcher& watcher) {
  HostMeasurer measurer(watcher);
  Machine machine = HostMachine();
  machine.rates = nullptr;
  return Calibrate(measurer, machine, HostFacts());
}

}  // namespace tokamak
