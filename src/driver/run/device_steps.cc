// The GPU's side of the executor (runtime/step_walk.h): enqueues steps on the device's stream. The
// host does not wait, except where it must:
//
//   a data-dependent loop or branch    reads its condition back from the device
//   a host step                        copies operands to the host and results to the device
//   a full queue                       more launches than a stream holds
//
// Pointers change between runs, so they are passed to each launch of a graph. A graph is guarded by
// its mutex, because several runs may share an executable.

#include "driver/run/device_steps.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_map>

#include "runtime/step_walk.h"

namespace tokamak {
namespace {

// Runs before a graph is built: it takes longer to build than to run (chosen).
constexpr int64_t kRunsBefore = 2;

// Host copies of device slices, one per address.
class HostCopies {
 public:
  // Slices at the same address may differ in `bytes` only by unused bytes.
  Result<std::vector<void*>> Make(std::span<std::byte* const> from,
                                  std::span<const int64_t> bytes) {
    for (size_t i = 0; i < from.size(); ++i) {
      int64_t& size = sizes_[from[i]];
      size = std::max(size, bytes[i]);
    }
    std::vector<void*> copies;
    for (std::byte* address : from) {
      auto [at, is_new] = copies_.try_emplace(address);
      if (is_new) {
        auto size = (static_cast<size_t>(sizes_[address]) + 63) / 64 * 64 + 64;
        at->second.reset(std::aligned_alloc(64, size));
        if (at->second == nullptr)
          return MakeError(ErrorCode::kOutOfMemory,
                           "run: " + std::to_string(size) +
                               " bytes for the arrays of a host step: out of memory");
      }
      copies.push_back(at->second.get());
    }
    return copies;
  }

 private:
  struct Freeing {
    void operator()(void* data) const { std::free(data); }
  };
  std::unordered_map<const std::byte*, int64_t> sizes_;
  std::unordered_map<const std::byte*, std::unique_ptr<void, Freeing>> copies_;
};

class Issuer final : public StepBackend {
 public:
  Issuer(const DeviceSteps& steps, const DeviceRun& run) : steps_(steps), run_(run) {}

  Status Run(std::span<const RunStep> steps, size_t& count) override {
    const RunStep& of = steps.front();
    const DeviceStep& step = steps_.Of(of);
    if (step.step == nullptr) return Ok();
    if (step.graph != nullptr && step.graph->steps <= steps.size()) {
      TOK_TRY(bool is_done, RunGraph(*step.graph));
      if (is_done) count = step.graph->steps;
      if (is_done) return Ok();
    }
    switch (of.kind) {
      case StepKind::kLaunch:
      case StepKind::kHorizontal:
        return Launch(step);
      case StepKind::kLibrary:
        return Multiply(step);
      case StepKind::kCall:
      case StepKind::kHost:
        return step.call == nullptr ? OnHost(step) : Call(step);
      case StepKind::kCopy:
        return run_.gpu.CopyWithin(At(of.slices[0]), At(of.slices[1]),
                                   static_cast<size_t>(of.bytes));
      case StepKind::kPoison:
        return run_.gpu.Fill(At(of.slices[0]), 0xFF, static_cast<size_t>(of.bytes));
      case StepKind::kWhile:
      case StepKind::kConditional:
        break;  // the executor's
    }
    return Ok();
  }

  // Synchronizes with the device.
  Status Read(const BufferSlice& from, void* to, size_t bytes) override {
    return run_.gpu.CopyOut(to, At(from), bytes);
  }

  Result<StepArrays> ArraysOf(const RunStep& of, bool on_host) override {
    const DeviceStep& step = steps_.Of(of);
    std::vector<std::byte*> slices = AllAt(step);
    if (!on_host) return StepArrays{{slices.begin(), slices.end()}, nullptr};
    auto copies = std::make_shared<HostCopies>();
    TOK_TRY(std::vector<void*> arrays, copies->Make(slices, step.bytes));
    TOK_RETURN_IF_ERROR(CopyOut(step, slices, arrays, slices.size()));
    return StepArrays{std::move(arrays), std::move(copies)};
  }

  bool IsOneLaunch() const override { return true; }

  Result<bool> RunLoop(const RunStep& loop) override {
    const DeviceStep& step = steps_.Of(loop);
    if (step.iterations_per_launch == 0) return false;
    return RunLaunches(step);
  }

  std::optional<uint64_t> TripCountOf(const RunStep& loop) const override {
    return steps_.Of(loop).trip_count;
  }

  Result<uint64_t> RunIterations(const RunStep& loop, uint64_t left) override {
    const DeviceStep& step = steps_.Of(loop);
    if (step.graph == nullptr) return uint64_t{0};
    bool is_ready = false;
    {
      std::lock_guard<std::mutex> lock(step.graph->mutex);
      if (left == *step.trip_count) ++step.graph->runs;  // the first iteration
      is_ready = step.graph->runs > kRunsBefore;
    }
    if (!is_ready || left < step.graph->trip_count) return uint64_t{0};
    TOK_TRY(bool is_done, RunGraph(*step.graph));
    return is_done ? step.graph->trip_count : 0;
  }

 private:
  std::byte* At(const BufferSlice& slice) const {
    return run_.memories[static_cast<size_t>(slice.memory)] + slice.offset;
  }
  std::vector<std::byte*> AllAt(const DeviceStep& step) const {
    std::vector<std::byte*> all;
    for (const BufferSlice& slice : step.slices) all.push_back(At(slice));
    return all;
  }

  // Runs several steps as one graph. Returns false if they are to be run individually: in the first
  // runs, because building a graph takes longer than running the steps, and if a copy is onto
  // itself.
  Result<bool> RunGraph(GraphRun& run) {
    std::lock_guard<std::mutex> lock(run.mutex);
    if (run.rejected || (run.trip_count == 0 && ++run.runs <= kRunsBefore)) return false;
    pointers_.clear();
    for (const DeviceStep* step : run.members) {
      for (const BufferSlice& slice : step->slices) pointers_.push_back(At(slice));
      if (step->code == nullptr && pointers_.back() == pointers_[pointers_.size() - 2])
        return false;
    }
    if (run.graph == nullptr) {
      std::vector<cuda::GraphStep> steps;
      for (const DeviceStep* step : run.members)
        steps.push_back(
            {step->code.get(), step->slices.size(), static_cast<size_t>(step->step->bytes)});
      TOK_TRY(run.graph, run_.gpu.MakeGraph(steps));
      run.rejected = run.graph == nullptr;
      if (run.rejected) return false;
    }
    TOK_RETURN_IF_ERROR(run_.gpu.RunGraph(*run.graph, pointers_));
    return true;
  }

  Status Launch(const DeviceStep& step) {
    constexpr size_t kFew = 64;
    if (step.slices.size() > kFew) {
      std::vector<void*> pointers;
      for (const BufferSlice& slice : step.slices) pointers.push_back(At(slice));
      return run_.gpu.Launch(*step.code, pointers);
    }
    std::array<void*, kFew> few;
    for (size_t i = 0; i < step.slices.size(); ++i) few[i] = At(step.slices[i]);
    return run_.gpu.Launch(*step.code, {few.data(), step.slices.size()});
  }

  Status Multiply(const DeviceStep& step) {
    return run_.gpu.Multiply(*step.product,
                             {At(step.slices[0]), At(step.slices[1]), At(step.slices[2])});
  }

  Status Call(const DeviceStep& step) {
    pointers_.clear();
    for (const BufferSlice& slice : step.slices) pointers_.push_back(At(slice));
    return run_.gpu.Call(*step.call, pointers_);
  }

  Status CopyOut(const DeviceStep& step, const std::vector<std::byte*>& from,
                 const std::vector<void*>& to, size_t count) {
    for (size_t i = 0; i < count; ++i)
      TOK_RETURN_IF_ERROR(run_.gpu.CopyOut(to[i], from[i], static_cast<size_t>(step.bytes[i])));
    return Ok();
  }

  // Slices that share an address share a host copy, so that in-place updates are seen. Scratch is
  // not copied back.
  Status OnHost(const DeviceStep& step) {
    const RunStep& of = *step.step;
    if (run_.recorder != nullptr) [[unlikely]] {
      run_.recorder->Issue(of);
      return Ok();
    }
    std::vector<std::byte*> slices = AllAt(step);
    HostCopies copies;
    TOK_TRY(std::vector<void*> arrays, copies.Make(slices, step.bytes));
    TOK_RETURN_IF_ERROR(CopyOut(step, slices, arrays, of.inputs));
    std::span<void* const> all(arrays);
    size_t outputs = all.size();
    if (of.kind == StepKind::kHost) {
      TOK_RETURN_IF_ERROR(
          run_.functions[of.target]->Run(all.first(of.inputs), all.subspan(of.inputs), run_.host));
    } else {
      const LibraryCall& call = *run_.program.calls[of.target];
      call.Run(all, run_.stop);
      TOK_RETURN_IF_ERROR(CheckStop(run_.stop));
      if (call.ScratchBytes() > 0) --outputs;
    }
    for (size_t i = of.inputs; i < outputs; ++i)
      TOK_RETURN_IF_ERROR(
          run_.gpu.CopyIn(slices[i], arrays[i], static_cast<size_t>(step.bytes[i])));
    return Ok();
  }

  // A loop that is one launch, or several if it has many iterations.
  Result<bool> RunLaunches(const DeviceStep& step) {
    auto set = [&](const std::vector<BufferSlice>& slices) {
      pointers_.clear();
      for (const BufferSlice& slice : slices) pointers_.push_back(At(slice));
    };
    set(step.first.empty() ? step.slices : step.first);
    auto most = static_cast<uint64_t>(step.first.empty() ? step.iterations_per_launch : 1);
    for (uint64_t done = 0; !step.trip_count || done < *step.trip_count;) {
      if (IsStopped(run_.stop)) return StopError();
      uint64_t left = step.trip_count ? *step.trip_count - done : most;
      cuda::LoopChunk chunk{.iterations = static_cast<int64_t>(std::min(left, most)),
                            .odd = done % 2 != 0,
                            .closes = step.trip_count && left <= most};
      TOK_TRY(cuda::LoopEnd end, run_.gpu.LaunchLoop(*step.code, pointers_, chunk));
      if (end.ended) break;
      if (done == 0 && !step.first.empty()) {
        set(step.slices);
        most = static_cast<uint64_t>(step.iterations_per_launch);
      }
      done += static_cast<uint64_t>(end.iterations);
    }
    return true;
  }

  const DeviceSteps& steps_;
  const DeviceRun& run_;
  std::vector<void*> pointers_;  // of a graph
};

}  // namespace

Status IssueSteps(const DeviceSteps& steps, const DeviceRun& run) {
  Issuer issuer(steps, run);
  return WalkSteps(run.program.steps, issuer,
                   {.stop = run.stop, .watcher = run.watcher, .recorder = run.recorder});
}

}  // namespace tokamak
