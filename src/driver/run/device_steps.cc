// Runs the steps of a lowered program on a GPU, in two phases. Preparation (once per executable)
// loads the code of each launch, library call and loop, and finds runs of steps that can become a
// CUDA graph. Execution (Issuer) walks the steps and enqueues them on the device's stream; the host
// does not wait, except where it must:
//
//   a data-dependent loop or branch    reads its condition back from the device
//   a host step                        copies operands to the host and results to the device
//   a full queue                       more launches than a stream holds
//
// Graphs amortize launch overhead: a run of at least 6 launches and copies, or the iterations of a
// loop with a known trip count, is built after a few runs and then launched as one. Pointers change
// between runs, so they are passed to each launch of a graph. A graph is guarded by its mutex,
// because several runs may share an executable. Watched and timed runs issue every step
// individually.

#include "driver/run/device_steps.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "driver/compile/device_calls.h"
#include "driver/compile/device_loops.h"

namespace tokamak {
namespace {

// As in XLA, f32 operands may lose bits unless the program requests more precision.
cuda::ProductKind KindOf(const Instr& dot) {
  using Narrow = cuda::ProductKind::Narrow;
  auto narrow = [](const Instr& instr) {
    ElementType type = instr.shape().type();
    return type == ElementType::kBF16  ? Narrow::kBF16
           : type == ElementType::kF16 ? Narrow::kF16
                                       : Narrow::kNo;
  };
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  bool asks = std::any_of(attrs.precision.begin(), attrs.precision.end(),
                          [](Precision p) { return p != Precision::kDefault; });
  return {narrow(*dot.operand(0)), narrow(dot), !asks && !attrs.algorithm};
}

// ---- preparation

// Number of steps of a CUDA graph. Below the minimum, launching the graph takes longer than
// launching its steps. The maximum bounds the time to build it (chosen).
constexpr size_t kLeastOfGraph = 6, kMostOfGraph = 2000;
// Runs before a graph is built: it takes longer to build than to run (chosen).
constexpr int64_t kRunsBefore = 2;

// Launches that a stream's queue certainly holds; CUDA's holds about a thousand. Chosen: half.
constexpr double kMostQueued = 500;

// Number of launches that one run enqueues. A graph counts as its steps.
double QueuedBy(const std::vector<DeviceStep>& steps) {
  double queued = 0;
  for (const DeviceStep& step : steps) {
    double inside = 0;
    for (const std::vector<DeviceStep>& block : step.blocks) inside += QueuedBy(block);
    auto trip_count = static_cast<double>(step.trip_count.value_or(1));
    queued += step.iterations_per_launch > 0
                  ? std::ceil(trip_count / static_cast<double>(step.iterations_per_launch))
                  : 1 + trip_count * inside;
  }
  return queued;
}

class Preparer {
 public:
  Preparer(const LoweredProgram& program, cuda::Gpu& gpu, bool one_by_one)
      : program_(program), gpu_(gpu), one_by_one_(one_by_one) {}

  // Appends to forms_ in the order in which SetCodes visits the steps. Sets waits_ if a step makes
  // the host wait.
  std::vector<DeviceStep> Prepare(const std::vector<RunStep>& steps) {
    std::vector<DeviceStep> made;
    for (const RunStep& step : steps) {
      if (step.left_out && !one_by_one_) continue;
      DeviceStep next;
      next.step = &step;
      next.slices = step.slices;
      if (step.kind == StepKind::kLaunch) AddLaunches(next, {&step, 1});
      if (step.kind == StepKind::kHorizontal) AddLaunches(next, step.blocks[0]);
      if (step.kind == StepKind::kLibrary) AddProduct(next);
      if (step.kind == StepKind::kCall) AddCall(next);
      if (step.kind == StepKind::kHost) AddHost(next);
      if (step.kind == StepKind::kWhile) AddWhile(next);
      waits_ = waits_ || step.kind == StepKind::kConditional;
      if (step.kind != StepKind::kHorizontal && next.iterations_per_launch == 0)
        for (const std::vector<RunStep>& block : step.blocks) next.blocks.push_back(Prepare(block));
      made.push_back(std::move(next));
    }
    return made;
  }

  // Assigns code to the launches, in the order in which they were visited.
  void SetCodes(std::vector<DeviceStep>& steps,
                std::span<const std::shared_ptr<const cuda::LaunchCode>> codes) {
    for (DeviceStep& step : steps) {
      if (step.step->kind == StepKind::kLaunch || step.step->kind == StepKind::kHorizontal ||
          step.iterations_per_launch > 0)
        step.code = codes[next_code_++];
      for (std::vector<DeviceStep>& block : step.blocks) SetCodes(block, codes);
    }
  }

  // Assigns code to the library products.
  Status SetProducts(std::vector<DeviceStep>& steps) {
    for (DeviceStep& step : steps) {
      if (step.step->kind == StepKind::kLibrary) {
        size_t number = step.step->target;
        const ProductCall& call = program_.products[number];
        if (call.convolution) {
          TOK_TRY(step.product, gpu_.LoadConvolution(*call.convolution));
        } else {
          TOK_TRY(step.product,
                  gpu_.LoadProduct(call.product, KindOf(*program_.product_instrs[number])));
        }
      }
      for (std::vector<DeviceStep>& block : step.blocks) TOK_RETURN_IF_ERROR(SetProducts(block));
    }
    return Ok();
  }

  // Finds consecutive steps that can be one graph and are enough for it to pay.
  static void FindGraphs(std::vector<DeviceStep>& steps) {
    size_t begin = 0;
    for (size_t i = 0; i <= steps.size(); ++i) {
      if (i < steps.size() && IsForGraph(steps[i])) continue;
      if (i - begin >= kLeastOfGraph) {
        auto graph = std::make_unique<GraphRun>();
        for (size_t j = begin; j < i; ++j) graph->members.push_back(&steps[j]);
        steps[begin].graph = std::move(graph);
      }
      begin = i + 1;
    }
    for (DeviceStep& step : steps) {
      if (step.trip_count && step.iterations_per_launch == 0) SetTripCount(step);
      if (step.graph == nullptr || step.graph->trip_count == 0)
        for (std::vector<DeviceStep>& block : step.blocks) FindGraphs(block);
    }
  }

  std::span<const cuda::LaunchForm> forms() const { return forms_; }
  bool waits() const { return waits_; }

 private:
  void AddLaunches(DeviceStep& step, std::span<const RunStep> launches) {
    cuda::LaunchForm form;
    step.slices.clear();
    for (const RunStep& launch : launches) {
      const Kernel& kernel = program_.kernels[launch.target];
      form.label += (form.label.empty() ? "" : "+") + kernel.name;
      form.entries.push_back({&kernel, launch.grid});
      for (size_t i = 0; i < launch.slices.size(); ++i) {
        step.slices.push_back(launch.slices[i]);
        step.bytes.push_back(kernel.arrays[i].size * BytesOf(kernel.arrays[i].type));
      }
    }
    forms_.push_back(std::move(form));
  }

  static void AddShape(DeviceStep& step, const Shape& shape) {
    for (const Shape& leaf : LeavesOf(shape))
      if (leaf.IsArray()) step.bytes.push_back(leaf.ByteSize());
  }

  void AddProduct(DeviceStep& step) {
    const Instr& dot = *program_.product_instrs[step.step->target];
    for (const Instr* operand : dot.operands()) AddShape(step, operand->shape());
    AddShape(step, dot.shape());
  }

  void AddCall(DeviceStep& step) {
    const Instr& instr = *program_.call_instrs[step.step->target];
    for (const Instr* operand : instr.operands()) AddShape(step, operand->shape());
    AddShape(step, instr.shape());
    int64_t scratch = program_.calls[step.step->target]->ScratchBytes();
    if (scratch > 0) step.bytes.push_back(scratch);
    LoadLibrary(step, instr, program_.IsOnDevice(*step.step));
  }

  void AddHost(DeviceStep& step) {
    const Instr& instr = *program_.host_instrs[step.step->target];
    for (const Instr* operand : instr.operands()) AddShape(step, operand->shape());
    AddShape(step, instr.shape());
    LoadLibrary(step, instr, program_.IsOnDevice(*step.step));
  }

  // Checked steps run on the host.
  void LoadLibrary(DeviceStep& step, const Instr& instr, bool on_device) {
    std::optional<cuda::DeviceCall> call = one_by_one_ ? std::nullopt : DeviceCallOf(instr);
    if (on_device && call) {
      Result<std::shared_ptr<const cuda::CallCode>> loaded = gpu_.LoadCall(*call);
      if (loaded.ok()) step.call = std::move(loaded.value());
    }
    waits_ = waits_ || step.call == nullptr || step.call->waits();
  }

  void AddWhile(DeviceStep& step) {
    step.trip_count = TripCountOf(*step.step, program_);
    waits_ = waits_ || !step.trip_count;
    if (one_by_one_ || !program_.IsPersistent(*step.step)) return;
    step.iterations_per_launch = program_.persistent[step.step->target];
    LoopLaunch launch = LoopLaunchOf(*step.step, program_);
    step.slices = std::move(launch.slices);
    step.first = step.step->first_slices;
    forms_.push_back(std::move(launch.form));
  }

  // Sets how many iterations of a loop one graph holds.
  static void SetTripCount(DeviceStep& loop) {
    bool alternates_buffers = loop.blocks.size() > 3;
    auto graph = std::make_unique<GraphRun>();
    std::vector<const DeviceStep*>& members = graph->members;
    auto add = [&](const std::vector<DeviceStep>& block) {
      for (const DeviceStep& step : block) members.push_back(&step);
      return std::all_of(block.begin(), block.end(), IsForGraph);
    };
    // Two iterations if buffers alternate (double buffering).
    uint64_t least = alternates_buffers ? 2 : 1;
    if (!add(loop.blocks[1]) || !add(loop.blocks[alternates_buffers ? 4 : 2]) || members.empty())
      return;
    std::vector<const DeviceStep*> once = members;
    uint64_t most = std::min<uint64_t>(*loop.trip_count, kMostOfGraph / once.size() * least);
    for (graph->trip_count = least; graph->trip_count + least <= most; graph->trip_count += least)
      members.insert(members.end(), once.begin(), once.end());
    if (graph->trip_count <= *loop.trip_count && members.size() >= kLeastOfGraph)
      loop.graph = std::move(graph);
  }

  static bool IsForGraph(const DeviceStep& step) {
    return step.step->kind == StepKind::kLaunch || step.step->kind == StepKind::kHorizontal ||
           step.step->kind == StepKind::kCopy;
  }

  const LoweredProgram& program_;
  cuda::Gpu& gpu_;
  bool one_by_one_;
  std::vector<cuda::LaunchForm> forms_;
  size_t next_code_ = 0;
  bool waits_ = false;
};

// For tests: fails as if the device rejected launches of more than one instruction.
Status RejectLaunch(std::span<const cuda::LaunchForm> forms, const LoweredProgram& program) {
  for (const cuda::LaunchForm& form : forms) {
    auto number = static_cast<size_t>(form.entries[0].kernel - program.kernels.data());
    if (form.loop || form.entries.size() > 1 || program.sources[number].region.instrs.size() > 1)
      return MakeError(ErrorCode::kCudaText, form.label + ": rejected by TOKAMAK_CHECK=reject");
  }
  return Ok();
}

// ---- execution

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

class Issuer {
 public:
  explicit Issuer(const DeviceRun& run) : run_(run) {}

  Status Run(const std::vector<DeviceStep>& steps) {
    for (size_t i = 0; i < steps.size();) {
      TOK_RETURN_IF_ERROR(CheckStop());
      GraphRun* graph = steps[i].graph.get();
      bool is_done = false;
      if (graph != nullptr && graph->trip_count == 0) {
        TOK_TRY(is_done, RunGraph(*graph));
      }
      if (is_done) {
        i += graph->members.size();
      } else {
        TOK_RETURN_IF_ERROR(RunOne(steps[i++]));
      }
    }
    return Ok();
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
    if (run_.watcher != nullptr || run_.timer != nullptr) return false;
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

  Status RunOne(const DeviceStep& step) {
    const RunStep& of = *step.step;
    if (run_.timer != nullptr && (step.code != nullptr || step.product != nullptr))
      TOK_RETURN_IF_ERROR(run_.timer->Before(step, AllAt(step)));
    switch (of.kind) {
      case StepKind::kLaunch:
      case StepKind::kHorizontal:
        return run_.watcher == nullptr ? Launch(step) : Watched(step);
      case StepKind::kLibrary:
        return run_.watcher == nullptr ? Multiply(step) : Watched(step);
      case StepKind::kCall:
      case StepKind::kHost:
        return step.call == nullptr ? OnHost(step) : Call(step);
      case StepKind::kCopy:
        return run_.gpu.CopyWithin(At(of.slices[0]), At(of.slices[1]),
                                   static_cast<size_t>(of.bytes));
      case StepKind::kWhile:
        if (step.iterations_per_launch > 0) return RunLaunches(step);
        return step.trip_count ? RunIterations(step) : RunWhile(step);
      case StepKind::kConditional:
        return RunConditional(step);
      case StepKind::kPoison:
        return run_.gpu.Fill(At(of.slices[0]), 0xFF, static_cast<size_t>(of.bytes));
    }
    return Ok();
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

  // Runs a launch or library call with its arrays copied to the host before and after.
  Status Watched(const DeviceStep& step) {
    std::vector<std::byte*> slices = AllAt(step);
    HostCopies before, after;
    TOK_TRY(std::vector<void*> was, before.Make(slices, step.bytes));
    TOK_RETURN_IF_ERROR(CopyOut(step, slices, was, slices.size()));
    TOK_RETURN_IF_ERROR(run_.watcher->Before(*step.step, was));
    TOK_RETURN_IF_ERROR(step.product == nullptr ? Launch(step) : Multiply(step));
    TOK_TRY(std::vector<void*> is, after.Make(slices, step.bytes));
    TOK_RETURN_IF_ERROR(CopyOut(step, slices, is, slices.size()));
    return run_.watcher->After(*step.step, is);
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
      TOK_RETURN_IF_ERROR(CheckStop());
      if (call.ScratchBytes() > 0) --outputs;
    }
    for (size_t i = of.inputs; i < outputs; ++i)
      TOK_RETURN_IF_ERROR(
          run_.gpu.CopyIn(slices[i], arrays[i], static_cast<size_t>(step.bytes[i])));
    return Ok();
  }

  // A loop with a known trip count: the condition is not evaluated.
  Status RunIterations(const DeviceStep& step) {
    bool odd = false, has_graph = false;
    if (step.graph != nullptr) {
      std::lock_guard<std::mutex> lock(step.graph->mutex);
      has_graph = ++step.graph->runs > kRunsBefore;
    }
    for (uint64_t iteration = 0; iteration < *step.trip_count; ++iteration) {
      TOK_RETURN_IF_ERROR(CheckStop());
      bool is_done = false;
      if (has_graph && !odd && *step.trip_count - iteration >= step.graph->trip_count) {
        TOK_TRY(is_done, RunGraph(*step.graph));
      }
      if (is_done) {
        iteration += step.graph->trip_count - 1;
        continue;
      }
      TOK_RETURN_IF_ERROR(RunIteration(step, odd));
    }
    return odd ? Run(step.blocks[2]) : Ok();
  }

  // A loop that is one launch, or several if it has many iterations.
  Status RunLaunches(const DeviceStep& step) {
    auto set = [&](const std::vector<BufferSlice>& slices) {
      pointers_.clear();
      for (const BufferSlice& slice : slices) pointers_.push_back(At(slice));
    };
    set(step.first.empty() ? step.slices : step.first);
    auto most = static_cast<uint64_t>(step.first.empty() ? step.iterations_per_launch : 1);
    for (uint64_t done = 0; !step.trip_count || done < *step.trip_count;) {
      TOK_RETURN_IF_ERROR(CheckStop());
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
    return Ok();
  }

  // One iteration. With two bodies, even and odd iterations alternate; otherwise carried values are
  // copied.
  Status RunIteration(const DeviceStep& step, bool& odd) {
    TOK_RETURN_IF_ERROR(Run(step.blocks[odd ? 4 : 1]));
    if (step.blocks.size() <= 3) return Run(step.blocks[2]);
    odd = !odd;
    return Ok();
  }

  // A data-dependent loop: one synchronization per iteration. Blocks as in RunStep: condition,
  // body, copies, and condition and body of odd iterations.
  Status RunWhile(const DeviceStep& step) {
    bool odd = false, asks = !step.step->runs_first;
    for (;; asks = true) {
      TOK_RETURN_IF_ERROR(CheckStop());
      uint8_t goes_on = 1;
      if (asks) {
        TOK_RETURN_IF_ERROR(Run(step.blocks[odd ? 3 : 0]));
        TOK_RETURN_IF_ERROR(run_.gpu.CopyOut(&goes_on, At(step.slices[odd ? 1 : 0]), 1));
        if (run_.recorder != nullptr) [[unlikely]]
          goes_on = run_.recorder->GoesOn(*step.step) ? 1 : 0;
      }
      if (goes_on == 0) break;
      TOK_RETURN_IF_ERROR(RunIteration(step, odd));
    }
    return odd ? Run(step.blocks[2]) : Ok();
  }

  Status RunConditional(const DeviceStep& step) {
    size_t count = step.blocks.size(), block = 0;
    if (run_.recorder != nullptr) [[unlikely]] {
      block = run_.recorder->BlockOf(*step.step);
    } else if (step.step->is_pred) {
      uint8_t is_true = 0;
      TOK_RETURN_IF_ERROR(run_.gpu.CopyOut(&is_true, At(step.slices[0]), 1));
      block = is_true != 0 ? 0 : 1;
    } else {
      int32_t number = 0;
      TOK_RETURN_IF_ERROR(run_.gpu.CopyOut(&number, At(step.slices[0]), sizeof number));
      bool is_one = number >= 0 && static_cast<size_t>(number) < count;
      block = is_one ? static_cast<size_t>(number) : count - 1;
    }
    return Run(step.blocks[block]);
  }

  Status CheckStop() const {
    if (run_.stop == nullptr || !run_.stop->load(std::memory_order_relaxed)) return Ok();
    return MakeError(ErrorCode::kStopped, "run: the program was stopped");
  }

  const DeviceRun& run_;
  std::vector<void*> pointers_;  // of a graph
};

}  // namespace

Result<DeviceSteps> PrepareSteps(const LoweredProgram& program, cuda::Gpu& gpu, bool one_by_one,
                                 bool reject_launches) {
  Preparer preparer(program, gpu, one_by_one);
  DeviceSteps steps;
  steps.all = preparer.Prepare(program.steps);
  steps.waits = preparer.waits() || QueuedBy(steps.all) > kMostQueued;
  if (reject_launches) TOK_RETURN_IF_ERROR(RejectLaunch(preparer.forms(), program));
  TOK_TRY(std::vector<std::shared_ptr<const cuda::LaunchCode>> codes, gpu.Load(preparer.forms()));
  preparer.SetCodes(steps.all, codes);
  TOK_RETURN_IF_ERROR(preparer.SetProducts(steps.all));
  Preparer::FindGraphs(steps.all);
  return steps;
}

Status IssueSteps(const DeviceSteps& steps, const DeviceRun& run) {
  return Issuer(run).Run(steps.all);
}

}  // namespace tokamak
