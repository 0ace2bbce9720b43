// Times the steps of a program on a GPU. The program runs once on random arguments; each step is
// measured in its place, before it executes for real, so that it sees the arguments it has in the
// program.
//
// A kernel of a few microseconds is shorter than a launch from the host. Short kernels are
// therefore repeated in a CUDA graph, and the time of one graph run is subtracted from that of
// three: launch and synchronization overhead cancels. Repetition must not change the result, so
// outputs that alias inputs are redirected to separate memory, and arrays that are updated in place
// are saved and restored.

#include "driver/measure/measure_device.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "driver/compile/host_calls.h"
#include "driver/compile/program_facts.h"
#include "driver/run/device_steps.h"
#include "driver/run/host_steps.h"
#include "interp/array_bytes.h"

namespace tokamak {
namespace {

double DeviceNowUs() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

// Measures each step when the run first reaches it.
class DeviceTimer final : public StepWatcher {
 public:
  DeviceTimer(const LoweredProgram& program, const DeviceSteps& steps, cuda::Gpu& gpu,
              const MeasureOptions& options)
      : program_(program), steps_(steps), gpu_(gpu), options_(options) {}

  bool ReadsArrays() const override { return false; }

  Status Before(const RunStep& of, std::span<void* const> at) override {
    const DeviceStep& step = steps_.Of(of);
    StepKey key = KeyOf(of);
    if ((step.code == nullptr && step.product == nullptr) || times_.count(key) > 0) return Ok();
    pointers_.assign(at.begin(), at.end());
    std::vector<Saved> saved;
    if (step.code != nullptr) {
      TOK_TRY(saved, Separate(step, at));
    }
    TOK_TRY(times_[key], Measure(step));
    for (const Saved& array : saved)
      TOK_RETURN_IF_ERROR(gpu_.CopyWithin(array.home, array.memory.data(), array.bytes));
    own_.clear();
    return Ok();
  }

  Status After(const RunStep&, std::span<void* const>) override { return Ok(); }

  const StepTimes& times() const { return times_; }

 private:
  struct Saved {
    std::byte* home;
    size_t bytes;
    DeviceMemory memory;
  };

  std::vector<Access> AccessesOf(const DeviceStep& step) const {
    std::vector<Access> accesses;
    auto add = [&](const RunStep& launch) {
      const Kernel& kernel = program_.kernels[launch.target];
      for (size_t i = 0; i < launch.slices.size(); ++i) accesses.push_back(kernel.arrays[i].access);
    };
    if (step.step->kind == StepKind::kLaunch) add(*step.step);
    if (step.step->kind == StepKind::kHorizontal)
      for (const RunStep& launch : step.step->blocks[0]) add(launch);
    return accesses;
  }

  // A step that overwrites its inputs would see different values in every run: it gets separate
  // output memory. Arrays that it must update in place are saved and restored.
  Result<std::vector<Saved>> Separate(const DeviceStep& step, std::span<void* const> addresses) {
    std::vector<Access> accesses = AccessesOf(step);
    std::vector<std::byte*> at;
    for (void* address : addresses) at.push_back(static_cast<std::byte*>(address));
    std::vector<Saved> saved;
    for (size_t i = 0; i < accesses.size(); ++i) {
      if (accesses[i] == Access::kRead) continue;
      bool in_place = accesses[i] == Access::kReadWrite, is_read = in_place;
      for (size_t j = 0; j < accesses.size() && !is_read; ++j)
        is_read = j != i && accesses[j] != Access::kWrite && at[j] < at[i] + step.bytes[i] &&
                  at[i] < at[j] + step.bytes[j];
      if (!is_read) continue;
      auto bytes = static_cast<size_t>(step.bytes[i]);
      TOK_TRY(DeviceMemory memory, DeviceMemory::Take(gpu_, bytes, "a measurement"));
      if (in_place) {
        TOK_RETURN_IF_ERROR(gpu_.CopyWithin(memory.data(), at[i], bytes));
        saved.push_back({at[i], bytes, std::move(memory)});
      } else {
        pointers_[i] = memory.data();
        own_.push_back(std::move(memory));
      }
    }
    return saved;
  }

  Status Ask(const DeviceStep& step) {
    if (step.product == nullptr) return gpu_.Launch(*step.code, pointers_);
    return gpu_.Multiply(*step.product, {static_cast<std::byte*>(pointers_[0]),
                                         static_cast<std::byte*>(pointers_[1]),
                                         static_cast<std::byte*>(pointers_[2])});
  }

  // Microseconds until `runs` executions have completed.
  Result<double> Time(const DeviceStep& step, int64_t runs) {
    double begin = DeviceNowUs();
    for (int64_t i = 0; i < runs; ++i) TOK_RETURN_IF_ERROR(Ask(step));
    TOK_RETURN_IF_ERROR(gpu_.Synchronize());
    return DeviceNowUs() - begin;
  }

  // The median of at least 3 measurements. Two runs first estimate the duration, which decides how
  // many repetitions a measurement needs and whether it uses a graph.
  Result<double> Measure(const DeviceStep& step) {
    constexpr double kLong = 400;        // microseconds: launch overhead is negligible beside it
    constexpr double kMeasureUs = 1000;  // length of one measurement in microseconds
    // Maximum number of copies of a step in a graph (chosen).
    constexpr size_t kMostOfGraph = 100;
    TOK_TRY([[maybe_unused]] double cold, Time(step, 1));
    TOK_TRY(double one, Time(step, 1));
    auto runs = static_cast<int64_t>(std::clamp(kMeasureUs / one, 1.0, 100.0));
    std::unique_ptr<cuda::StepGraph> graph;
    std::vector<void*> all;
    size_t copies = std::clamp<size_t>(static_cast<size_t>(kMeasureUs / one * 4), 10, kMostOfGraph);
    if (one < kLong && step.product == nullptr) {
      std::vector<cuda::GraphStep> steps(copies, {step.code.get(), pointers_.size(), 0});
      TOK_TRY(graph, gpu_.MakeGraph(steps));
      for (size_t i = 0; i < copies; ++i) all.insert(all.end(), pointers_.begin(), pointers_.end());
    }
    std::vector<double> times;
    double begin = DeviceNowUs(), limit = options_.seconds * 1e6;
    for (bool warm = false; static_cast<int64_t>(times.size()) < options_.most &&
                            (times.size() < 3 || DeviceNowUs() - begin < limit);
         warm = true) {
      double elapsed = 0;
      if (graph != nullptr) {
        TOK_TRY(elapsed, TimeGraph(*graph, all));
        elapsed /= static_cast<double>(copies);
      } else {
        TOK_TRY(elapsed, Time(step, runs));
        elapsed /= static_cast<double>(runs);
      }
      if (warm) times.push_back(elapsed);  // the first run has cold caches and uploads the graph
    }
    return MedianOf(std::move(times));
  }

  // The difference between three runs and one: launch and synchronization overhead cancels.
  Result<double> TimeGraph(cuda::StepGraph& graph, std::span<void* const> pointers) {
    auto timed = [&](int runs) -> Result<double> {
      double begin = DeviceNowUs();
      for (int i = 0; i < runs; ++i) TOK_RETURN_IF_ERROR(gpu_.RunGraph(graph, pointers));
      TOK_RETURN_IF_ERROR(gpu_.Synchronize());
      return DeviceNowUs() - begin;
    };
    TOK_TRY(double one, timed(1));
    TOK_TRY(double three, timed(3));
    // If the single run was delayed beyond the time of three, it cannot be subtracted.
    return three > one ? (three - one) / 2 : three / 3;
  }

  const LoweredProgram& program_;
  const DeviceSteps& steps_;
  cuda::Gpu& gpu_;
  const MeasureOptions& options_;
  std::vector<void*> pointers_;    // of the measured step
  std::vector<DeviceMemory> own_;  // separate output memory of the step
  StepTimes times_;
};

// The memories of a run on a device: arena, parameters, results, constants.
class DeviceMemories {
 public:
  explicit DeviceMemories(cuda::Gpu& gpu) : gpu_(gpu) {}

  Status Make(const Module& module, const LoweredProgram& program) {
    TOK_RETURN_IF_ERROR(Add(program.arena_bytes));
    TOK_TRY(std::vector<ParameterInfo> parameters, ParametersOf(module, 1));
    for (const ParameterInfo& parameter : parameters) {
      TOK_RETURN_IF_ERROR(Add(parameter.bytes));
      if (parameter.is_token) continue;
      std::vector<std::byte> drawn(static_cast<size_t>(parameter.bytes));
      DrawArray(drawn.data(), parameter.bytes, parameter.type, all_.size());
      TOK_RETURN_IF_ERROR(gpu_.CopyIn(all_.back(), drawn.data(), drawn.size()));
    }
    TOK_TRY(std::vector<ArrayInfo> results, ResultsOf(module, 1));
    for (const ArrayInfo& result : results) TOK_RETURN_IF_ERROR(Add(result.bytes));
    for (const Instr* constant : program.constants) {
      TOK_TRY(std::vector<std::byte> bytes, BytesOfConstant(*constant));
      TOK_RETURN_IF_ERROR(Add(static_cast<int64_t>(bytes.size())));
      TOK_RETURN_IF_ERROR(gpu_.CopyIn(all_.back(), bytes.data(), bytes.size()));
    }
    return Ok();
  }

  std::span<std::byte* const> all() const { return all_; }

 private:
  Status Add(int64_t bytes) {
    TOK_TRY(DeviceMemory memory,
            DeviceMemory::Take(gpu_, static_cast<size_t>(bytes), "arrays to measure with"));
    all_.push_back(memory.data());
    memory_.push_back(std::move(memory));
    return Ok();
  }

  cuda::Gpu& gpu_;
  std::vector<DeviceMemory> memory_;
  std::vector<std::byte*> all_;
};

}  // namespace

Result<StepTimes> MeasureSteps(const Module& module, const LoweredProgram& program, cuda::Gpu& gpu,
                               const MeasureOptions& options) {
  DeviceMemories memories(gpu);
  TOK_RETURN_IF_ERROR(memories.Make(module, program));
  TOK_TRY(DeviceSteps steps, PrepareSteps(program, gpu, true));
  HostFunctions functions(program.host_instrs);
  RunOptions run;
  run.host_calls = &RegisteredHostCalls();
  InterpretedSteps host(run);
  DeviceTimer timer(program, steps, gpu, options);
  TOK_RETURN_IF_ERROR(IssueSteps(steps, {.gpu = gpu,
                                         .program = program,
                                         .memories = memories.all(),
                                         .functions = functions.all(),
                                         .host = host,
                                         .watcher = &timer}));
  TOK_RETURN_IF_ERROR(gpu.Synchronize());
  return timer.times();
}

}  // namespace tokamak
