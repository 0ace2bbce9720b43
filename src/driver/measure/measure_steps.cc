// Times the steps of a program on the CPU (`explain --measure`). The program runs once on random
// arguments under a StepWatcher; when it reaches a launch or library product for the first time,
// that step is run repeatedly, then execution continues. Host steps and library calls are timed in
// the run itself.
//
// A measurement is valid only if repetitions see the same inputs: an output that overlaps an input
// gets separate memory, and arrays that are updated in place are saved and restored before each
// sample. Short steps are repeated until a sample is long enough for the clock. The result is the
// median, without the first sample, which has cold caches.

#include "driver/measure/measure_steps.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "driver/compile/custom_kernel_code.h"
#include "driver/compile/host_calls.h"
#include "driver/compile/program_facts.h"
#include "driver/run/host_steps.h"
#include "driver/run/kernel_codes.h"
#include "interp/array_bytes.h"
#include "kernel/formulas.h"
#include "runtime/host_allocator.h"
#include "runtime/host_memory.h"

namespace tokamak {
namespace {

double StepNowUs() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

// Memory that lives as long as the measurement.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    for (auto& [data, bytes] : allocated_) HostAllocator::OfProcess().Free(data, bytes);
  }

  // Null if memory is exhausted.
  std::byte* Take(int64_t bytes) {
    auto size = static_cast<size_t>(std::max<int64_t>(bytes, 64));
    if (size + sum_ > HostMemory() / 4 * 3) return nullptr;
    void* data = HostAllocator::OfProcess().Allocate(size);
    if (data == nullptr) return nullptr;
    allocated_.emplace_back(data, size);
    sum_ += size;
    return static_cast<std::byte*>(data);
  }

 private:
  std::vector<std::pair<void*, size_t>> allocated_;
  size_t sum_ = 0;
};

// Measures each step when the run first reaches it.
class StepTimer final : public StepWatcher {
 public:
  StepTimer(const LoweredProgram& program, const StepContext& context,
            const MeasureOptions& options)
      : program_(program), context_(context), options_(options) {}

  Status Before(const RunStep& step, std::span<void* const> arguments) override {
    bool is_launch = step.kind == StepKind::kLaunch, is_product = step.kind == StepKind::kLibrary;
    StepKey key = KeyOf(step);
    if ((is_launch || is_product) && times_.count(key) == 0) {
      own_.emplace();
      memories_.assign(context_.memories.begin(), context_.memories.end());
      Status measured = Measure(is_launch ? Separate(step, arguments) : step, times_[key]);
      Restore();
      saved_.clear();
      own_.reset();
      TOK_RETURN_IF_ERROR(measured);
    }
    begin_ = StepNowUs();
    return Ok();
  }

  Status After(const RunStep& step, std::span<void* const>) override {
    double us = StepNowUs() - begin_;
    times_.try_emplace(KeyOf(step), us);
    return Ok();
  }

  const StepTimes& times() const { return times_; }

 private:
  struct Saved {
    std::byte* data;
    std::vector<std::byte> bytes;
  };

  // A step that overwrites its inputs would see different values in every run, such as ever smaller
  // ones: it gets separate output memory. Arrays that it must update in place are saved and
  // restored.
  RunStep Separate(const RunStep& step, std::span<void* const> arguments) {
    const Kernel& kernel = program_.kernels[step.target];
    RunStep separate = step;
    auto begin = [&](size_t i) { return static_cast<std::byte*>(arguments[i]); };
    auto size = [&](size_t i) { return kernel.arrays[i].size * BytesOf(kernel.arrays[i].type); };
    for (size_t i = 0; i < kernel.ArgumentCount(); ++i) {
      Access access = kernel.arrays[i].access;
      if (access == Access::kRead) continue;
      bool read = access == Access::kReadWrite;
      for (size_t j = 0; j < kernel.ArgumentCount() && !read; ++j)
        read = j != i && kernel.arrays[j].access != Access::kWrite &&
               begin(j) < begin(i) + size(i) && begin(i) < begin(j) + size(j);
      if (!read) continue;
      std::byte* own = access == Access::kReadWrite ? nullptr : own_->Take(size(i));
      if (own != nullptr) {
        separate.slices[i] = {static_cast<int32_t>(memories_.size()), 0};
        memories_.push_back(own);
      } else {
        saved_.push_back({begin(i), {begin(i), begin(i) + size(i)}});
      }
    }
    return separate;
  }
  void Restore() {
    for (const Saved& saved : saved_)
      std::memcpy(saved.data, saved.bytes.data(), saved.bytes.size());
  }

  Status Measure(const RunStep& step, double& us) {
    const std::vector<RunStep> one = {step};
    StepContext context = context_;
    context.memories = memories_;
    constexpr double kLeast = 20;  // microseconds that the clock resolves (chosen)
    int64_t runs = 1;
    std::vector<double> times;
    double begin = StepNowUs(), limit = options_.seconds * 1e6;
    while (static_cast<int64_t>(times.size()) < options_.most &&
           (times.size() < 3 || StepNowUs() - begin < limit)) {
      Restore();
      double start = StepNowUs();
      for (int64_t i = 0; i < runs; ++i) TOK_RETURN_IF_ERROR(RunSteps(one, context));
      double elapsed = StepNowUs() - start;
      if (elapsed < kLeast && runs < 10000) {
        runs *= 4;
        continue;
      }
      // The first run has cold caches and sleeping worker threads.
      if (warm_) times.push_back(elapsed / static_cast<double>(runs));
      warm_ = true;
    }
    warm_ = false;
    us = MedianOf(std::move(times));
    return Ok();
  }

  const LoweredProgram& program_;
  const StepContext& context_;
  const MeasureOptions& options_;
  std::vector<Saved> saved_;
  std::vector<std::byte*> memories_;  // of the measured step
  std::optional<Memory> own_;         // separate output memory of the step
  StepTimes times_;
  double begin_ = 0;
  bool warm_ = false;
};

Error OutOfMemory() {
  return MakeError(ErrorCode::kOutOfMemory, "measure: the arrays of the program do not fit");
}

// The memories of a run: arena, parameters, results, constants.
Result<std::vector<std::byte*>> MakeMemories(const Module& module, const LoweredProgram& program,
                                             Memory& memory) {
  std::vector<std::byte*> memories = {memory.Take(program.arena_bytes)};
  TOK_TRY(std::vector<ParameterInfo> parameters, ParametersOf(module, 1));
  for (const ParameterInfo& parameter : parameters) {
    memories.push_back(memory.Take(parameter.bytes));
    if (memories.back() != nullptr && !parameter.is_token)
      DrawArray(memories.back(), parameter.bytes, parameter.type, memories.size());
  }
  TOK_TRY(std::vector<ArrayInfo> results, ResultsOf(module, 1));
  for (const ArrayInfo& result : results) memories.push_back(memory.Take(result.bytes));
  for (const Instr* constant : program.constants) {
    memories.push_back(memory.Take(constant->shape().ByteSize()));
    if (memories.back() == nullptr) break;
    TOK_TRY(Value value, ValueFromLiteral(constant->attrs<ConstantAttrs>().literal));
    StoreBytes(value.WithShape(constant->shape().WithoutLayout()), memories.back());
  }
  for (const std::byte* elapsed : memories)
    if (elapsed == nullptr) return OutOfMemory();
  return memories;
}

}  // namespace

double MedianOf(std::vector<double> times) {
  auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// The values are small, so that products and indices stay in range. Floats of 8 bits are stored as
// integers, so their bit patterns are drawn.
void DrawArray(std::byte* data, int64_t bytes, ElementType type, uint64_t seed) {
  // Random elements, repeated to fill the array (chosen: cheaper than new numbers).
  constexpr size_t kBlock = 1 << 16;
  ScalarType stored = StorageType(type);
  auto width = static_cast<size_t>(BytesOf(stored));
  std::vector<std::byte> block(std::min<size_t>(kBlock * width, static_cast<size_t>(bytes)));
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (size_t i = 0; i + width <= block.size(); i += width) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t drawn = state >> 33;
    double value = static_cast<double>(static_cast<int64_t>(drawn % 2000003) - 1000001) / 1000002;
    if (stored == ScalarType::kPred) value = static_cast<double>(drawn & 1);
    if (IsInteger(stored))
      value = static_cast<double>(drawn % (width == 1 ? (IsReal(type) ? 48 : 4) : 1024));
    Bits bits = BitsOfDouble(stored, value);
    std::memcpy(block.data() + i, &bits, width);
  }
  for (size_t at = 0; at < static_cast<size_t>(bytes); at += block.size())
    std::memcpy(data + at, block.data(), std::min(block.size(), static_cast<size_t>(bytes) - at));
}

Result<StepTimes> MeasureSteps(const Module& module, const LoweredProgram& program,
                               const MeasureOptions& options) {
  Memory memory;
  TOK_TRY(std::vector<std::byte*> memories, MakeMemories(module, program, memory));
  TOK_TRY(KernelCodes codes, MakeCodes(program.kernels, KernelBackend::kMachineCode));
  std::vector<const KernelCode*> kernels;
  for (const auto& code : codes.all) kernels.push_back(code.get());
  HostFunctions functions(program.host_instrs);
  TOK_TRY(LoadedCalls calls, LoadCalls(program.calls, program.call_instrs));
  RunOptions run;
  run.host_calls = &RegisteredHostCalls();
  InterpretedSteps host(run);
  StepContext alone{.memories = memories,
                    .kernels = kernels,
                    .products = program.products,
                    .calls = calls,
                    .functions = functions.all(),
                    .host = &host};
  StepTimer timer(program, alone, options);
  StepContext watched = alone;
  watched.watcher = &timer;
  TOK_RETURN_IF_ERROR(RunSteps(program.steps, watched));
  return timer.times();
}

}  // namespace tokamak
