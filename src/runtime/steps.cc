// The CPU's side of the executor (step_walk.h). Steps run one after another; parallelism is inside
// a step, whose grid the thread pool divides. No step allocates arrays: buffer slices are offsets
// in memories of the run.
//
// Loops of short steps would spend their time on dispatch. If every step of a loop fits one thread,
// pointers are resolved once and the steps run in a tight loop (ShortSteps). A horizontally fused
// launch is one parallel loop over the units of all its kernels.

#include "runtime/steps.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/step_walk.h"
#include "runtime/thread_pool.h"

namespace tokamak {
namespace {

// Short launches and copies that the calling thread runs itself, with their arguments in one array:
// minimizes the overhead of small loop bodies.
class ShortSteps {
 public:
  static constexpr int64_t kMostBytes = 4096;  // of a copy; chosen; no measurement on record

  static bool Has(const std::vector<RunStep>& steps) {
    return std::all_of(steps.begin(), steps.end(), [](const RunStep& step) {
      bool is_launch = step.kind == StepKind::kLaunch || step.kind == StepKind::kHorizontal;
      return (is_launch && step.grid <= step.min_chunk) ||
             (step.kind == StepKind::kCopy && step.bytes <= kMostBytes);
    });
  }

  ShortSteps(const std::vector<RunStep>& steps, const StepContext& context) {
    pointers_.reserve(CountOf(steps));  // must not reallocate: steps point into it
    Add(steps, context);
  }

  void Run() const {
    for (const Step& step : steps_) {
      if (step.code != nullptr) {
        step.code->Run(step.pointers, nullptr, 0, step.size);
      } else if (step.pointers[0] != step.pointers[1]) {
        std::memcpy(step.pointers[0], step.pointers[1], static_cast<size_t>(step.size));
      }
    }
  }

 private:
  struct Step {
    const KernelCode* code;  // null: a copy
    void* const* pointers;
    int64_t size;  // iterations or bytes
  };

  static size_t CountOf(const std::vector<RunStep>& steps) {
    size_t count = 0;
    for (const RunStep& step : steps) {
      count += step.slices.size();
      if (step.kind == StepKind::kHorizontal) count += CountOf(step.blocks[0]);
    }
    return count;
  }

  void Add(const std::vector<RunStep>& steps, const StepContext& context) {
    for (const RunStep& step : steps) {
      if (step.kind == StepKind::kHorizontal) {
        Add(step.blocks[0], context);
        continue;
      }
      void** first = pointers_.data() + pointers_.size();
      for (const BufferSlice& slice : step.slices)
        pointers_.push_back(context.memories[static_cast<size_t>(slice.memory)] + slice.offset);
      bool is_launch = step.kind == StepKind::kLaunch;
      steps_.push_back({is_launch ? context.kernels[step.target] : nullptr, first,
                        is_launch ? step.grid : step.bytes});
    }
  }

  std::vector<void*> pointers_;
  std::vector<Step> steps_;
};

class CpuSteps final : public StepBackend {
 public:
  explicit CpuSteps(const StepContext& context) : context_(context) {}

  Status Run(std::span<const RunStep> steps, size_t&) override {
    const RunStep& step = steps.front();
    if (context_.recorder != nullptr) [[unlikely]]
      return Record(step);
    switch (step.kind) {
      case StepKind::kLaunch:
        Launch(step);
        return Ok();
      case StepKind::kHorizontal:
        if (context_.horizontal != nullptr) {
          LaunchAsOne(step);
        } else {
          LaunchHorizontal(step);
        }
        return Ok();
      case StepKind::kLibrary:
        return Multiply(step);
      case StepKind::kCall:
        return Call(step);
      case StepKind::kHost:
        return CallHost(step);
      case StepKind::kCopy: {
        std::byte *to = At(step.slices[0]), *from = At(step.slices[1]);
        // A donated parameter may be the result itself.
        if (to != from) Copy(to, from, step.bytes);
        return Ok();
      }
      case StepKind::kPoison:
        std::memset(At(step.slices[0]), 0xFF, static_cast<size_t>(step.bytes));
        return Ok();
      case StepKind::kWhile:
      case StepKind::kConditional:
        break;  // the executor's
    }
    return Ok();
  }

  Status Read(const BufferSlice& from, void* to, size_t bytes) override {
    std::memcpy(to, At(from), bytes);
    return Ok();
  }

  Result<StepArrays> ArraysOf(const RunStep& step, bool) override {
    StepArrays arrays;
    for (const BufferSlice& slice : step.slices) arrays.addresses.push_back(At(slice));
    return arrays;
  }

  // Slices do not move during a run, so that all pointers can be computed before the first
  // iteration.
  Result<bool> RunLoop(const RunStep& step) override {
    if (context_.horizontal != nullptr || context_.recorder != nullptr ||
        !std::all_of(step.blocks.begin(), step.blocks.end(), ShortSteps::Has))
      return false;
    std::vector<ShortSteps> blocks;
    for (const std::vector<RunStep>& block : step.blocks) blocks.emplace_back(block, context_);
    bool alternates_buffers = blocks.size() > 3, odd = false;
    const std::byte* goes_on[] = {At(step.slices[0]), At(step.slices[alternates_buffers ? 1 : 0])};
    while (true) {
      if (IsStopped(context_.stop)) return StopError();
      blocks[odd ? 3 : 0].Run();
      if (*goes_on[odd ? 1 : 0] == std::byte{0}) break;
      blocks[odd ? 4 : 1].Run();
      if (alternates_buffers) {
        odd = !odd;
      } else {
        blocks[2].Run();
      }
    }
    if (odd) blocks[2].Run();
    return true;
  }

 private:
  std::byte* At(const BufferSlice& slice) const {
    return context_.memories[static_cast<size_t>(slice.memory)] + slice.offset;
  }

  // Keeps the arguments on the stack if there are at most 64.
  template <typename Body>
  auto WithPointers(const RunStep& step, Body&& body) {
    std::array<void*, 64> few;
    if (step.slices.size() <= few.size()) {
      for (size_t i = 0; i < step.slices.size(); ++i) few[i] = At(step.slices[i]);
      return body(std::span<void* const>(few.data(), step.slices.size()));
    }
    std::vector<void*> many;
    for (const BufferSlice& slice : step.slices) many.push_back(At(slice));
    return body(std::span<void* const>(many));
  }

  Status Record(const RunStep& step) {
    bool is_nothing = step.kind == StepKind::kPoison ||
                      (step.kind == StepKind::kCopy && At(step.slices[0]) == At(step.slices[1]));
    if (!is_nothing) context_.recorder->Issue(step);
    return Ok();
  }

  // Copies in parallel: one thread does not saturate the memory bandwidth.
  static void Copy(std::byte* to, const std::byte* from, int64_t bytes) {
    // Bytes per task. Chosen; no measurement on record.
    constexpr int64_t kCopyChunkBytes = 1 << 18;
    auto copy = [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    };
    if (bytes <= 2 * kCopyChunkBytes) return copy(0, bytes);
    ThreadPool::OfProcess().For(bytes, kCopyChunkBytes, copy);
  }

  void Launch(const RunStep& step) {
    const KernelCode& code = *context_.kernels[step.target];
    WithPointers(step, [&](std::span<void* const> arguments) {
      if (step.grid <= step.min_chunk) return code.Run(arguments.data(), nullptr, 0, step.grid);
      ThreadPool::OfProcess().For(
          step.grid, step.min_chunk,
          [&](int64_t begin, int64_t end) { code.Run(arguments.data(), nullptr, begin, end); },
          step.min_chunk_asleep);
    });
  }

  void LaunchAsOne(const RunStep& fused_launch) {
    std::vector<size_t> kernels;
    std::vector<std::vector<void*>> arguments;
    for (const RunStep& launch : fused_launch.blocks[0]) {
      kernels.push_back(launch.target);
      arguments.emplace_back();
      for (const BufferSlice& slice : launch.slices) arguments.back().push_back(At(slice));
    }
    context_.horizontal->Run(kernels, arguments);
  }

  // The units of a horizontally fused launch are iterations of its first launch, then of the next.
  void LaunchHorizontal(const RunStep& fused_launch) {
    const std::vector<RunStep>& launches = fused_launch.blocks[0];
    ThreadPool::OfProcess().For(
        fused_launch.grid, fused_launch.min_chunk, [&](int64_t begin, int64_t end) {
          auto launch = std::upper_bound(
              launches.begin(), launches.end(), begin,
              [](int64_t unit, const RunStep& later) { return unit < later.first_unit; });
          for (--launch; launch != launches.end() && launch->first_unit < end; ++launch) {
            auto next = launch + 1;
            int64_t last = next == launches.end() ? fused_launch.grid : next->first_unit;
            RunUnits(*launch, last - launch->first_unit, begin - launch->first_unit,
                     end - launch->first_unit);
          }
        });
  }

  void RunUnits(const RunStep& launch, int64_t units, int64_t begin, int64_t end) {
    int64_t from = std::max<int64_t>(begin, 0) * launch.grid / units;
    int64_t to = std::min(end, units) * launch.grid / units;
    WithPointers(launch, [&](std::span<void* const> arguments) {
      context_.kernels[launch.target]->Run(arguments.data(), nullptr, from, to);
    });
  }

  Status Multiply(const RunStep& step) {
    const ProductCall& call = context_.products[step.target];
    ProductArrays arrays{At(step.slices[0]), At(step.slices[1]), At(step.slices[2])};
    ThreadPool::OfProcess().For(
        call.blocks.count, call.blocks.min_chunk,
        [&](int64_t begin, int64_t end) { RunProduct(call, arrays, begin, end, context_.stop); });
    return CheckStop(context_.stop);
  }

  Status Call(const RunStep& step) {
    WithPointers(step, [&](std::span<void* const> arguments) {
      context_.calls[step.target]->Run(arguments, context_.stop);
    });
    return CheckStop(context_.stop);
  }

  Status CallHost(const RunStep& step) {
    const HostFunction& function = *context_.functions[step.target];
    return WithPointers(step, [&](std::span<void* const> arguments) {
      return function.Run(arguments.first(step.inputs), arguments.subspan(step.inputs),
                          *context_.host);
    });
  }

  const StepContext& context_;
};

}  // namespace

void NumberSteps(std::vector<RunStep>& steps) {
  size_t next = 0;
  auto number = [&](auto& self, std::vector<RunStep>& block) -> void {
    for (RunStep& step : block) {
      step.number = next++;
      for (std::vector<RunStep>& inner : step.blocks) self(self, inner);
    }
  };
  number(number, steps);
}

void DivideIntoUnits(RunStep& fused_launch) {
  // One unit is the min_chunk of its launch. Chosen limits: total units, and units of one launch.
  constexpr int64_t kUnits = 64, kMost = int64_t{1} << 20;
  int64_t units = 0;
  for (RunStep& launch : fused_launch.blocks[0]) {
    launch.first_unit = units;
    int64_t own = launch.grid / std::max<int64_t>(launch.min_chunk / kUnits, 1);
    units += std::clamp<int64_t>(own, 1, kMost);
  }
  fused_launch.grid = units;
  fused_launch.min_chunk = kUnits;
}

Status RunSteps(const std::vector<RunStep>& steps, const StepContext& context) {
  CpuSteps backend(context);
  return WalkSteps(
      steps, backend,
      {.stop = context.stop, .watcher = context.watcher, .recorder = context.recorder});
}

}  // namespace tokamak
