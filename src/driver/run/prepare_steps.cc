// Prepares the steps of a lowered program for a GPU, once per executable: loads the code of each
// launch, library call and loop, and finds runs of steps that can become a CUDA graph.
//
// Graphs amortize launch overhead: a run of at least 6 launches and copies, or the iterations of a
// loop with a known trip count, is built after a few runs and then launched as one.

#include <algorithm>
#include <cmath>

#include "driver/compile/custom_kernel_code.h"
#include "driver/compile/device_calls.h"
#include "driver/compile/device_loops.h"
#include "driver/run/check_kernels.h"
#include "driver/run/device_steps.h"
#include "ir/dot_precision.h"

namespace tokamak {
namespace {

cuda::ProductKind KindOf(const Instr& dot) {
  using Narrow = cuda::ProductKind::Narrow;
  auto narrow = [](const Instr& instr) {
    ElementType type = instr.shape().type();
    return type == ElementType::kBF16  ? Narrow::kBF16
           : type == ElementType::kF16 ? Narrow::kF16
                                       : Narrow::kNo;
  };
  return {narrow(*dot.operand(0)), narrow(dot), AllowsTf32(dot.attrs<DotAttrs>())};
}

// Number of steps of a CUDA graph. Below the minimum, launching the graph takes longer than
// launching its steps. The maximum bounds the time to build it (chosen).
constexpr size_t kLeastOfGraph = 6, kMostOfGraph = 2000;

// Launches that a stream's queue certainly holds; CUDA's holds about a thousand. Chosen: half.
constexpr double kMostQueued = 500;

size_t CountSteps(const std::vector<RunStep>& steps) {
  size_t count = steps.size();
  for (const RunStep& step : steps)
    for (const std::vector<RunStep>& block : step.blocks) count += CountSteps(block);
  return count;
}

class Preparer {
 public:
  Preparer(const LoweredProgram& program, cuda::Gpu& gpu, bool one_by_one)
      : program_(program), gpu_(gpu), one_by_one_(one_by_one) {
    made_.all.resize(CountSteps(program.steps));
  }

  // Appends to forms_ in the order of the steps' numbers. Sets `waits` if a step makes the host
  // wait.
  void Prepare(const std::vector<RunStep>& steps) {
    for (const RunStep& step : steps) {
      if (step.left_out && !one_by_one_) continue;
      DeviceStep& next = made_.Of(step);
      next.step = &step;
      next.slices = step.slices;
      if (step.kind == StepKind::kLaunch) AddLaunches(next, {&step, 1});
      if (step.kind == StepKind::kHorizontal) AddLaunches(next, step.blocks[0]);
      if (step.kind == StepKind::kLibrary) AddProduct(next);
      if (step.kind == StepKind::kCall) AddCall(next);
      if (step.kind == StepKind::kHost) AddHost(next);
      if (step.kind == StepKind::kWhile) AddWhile(next);
      made_.waits = made_.waits || step.kind == StepKind::kConditional;
      if (step.kind != StepKind::kHorizontal && next.iterations_per_launch == 0)
        for (const std::vector<RunStep>& block : step.blocks) Prepare(block);
    }
  }

  // `codes`: of forms().
  void SetCodes(std::span<const std::shared_ptr<const cuda::LaunchCode>> codes) {
    size_t next = 0;
    for (DeviceStep& step : made_.all)
      if (step.step != nullptr &&
          (step.step->kind == StepKind::kLaunch || step.step->kind == StepKind::kHorizontal ||
           step.iterations_per_launch > 0))
        step.code = codes[next++];
  }

  // Assigns code to the library products.
  Status SetProducts() {
    for (DeviceStep& step : made_.all) {
      if (step.step == nullptr || step.step->kind != StepKind::kLibrary) continue;
      size_t number = step.step->target;
      const ProductCall& call = program_.products[number];
      if (call.convolution) {
        TOK_TRY(step.product, gpu_.LoadConvolution(*call.convolution));
      } else {
        TOK_TRY(step.product,
                gpu_.LoadProduct(call.product, KindOf(*program_.product_instrs[number])));
      }
    }
    return Ok();
  }

  // Finds consecutive steps that can be one graph and are enough for it to pay.
  void FindGraphs(const std::vector<RunStep>& steps) {
    std::vector<const DeviceStep*> members;
    size_t begin = 0;
    for (size_t i = 0; i <= steps.size(); ++i) {
      const DeviceStep* step = i < steps.size() ? &made_.Of(steps[i]) : nullptr;
      if (step != nullptr && step->step == nullptr) continue;
      if (step != nullptr && IsForGraph(*step)) {
        if (members.empty()) begin = i;
        members.push_back(step);
        continue;
      }
      if (members.size() >= kLeastOfGraph) {
        auto graph = std::make_unique<GraphRun>();
        graph->steps = i - begin;
        graph->members = members;
        made_.Of(steps[begin]).graph = std::move(graph);
      }
      members.clear();
    }
    for (const RunStep& of : steps) {
      DeviceStep& step = made_.Of(of);
      if (step.trip_count && step.iterations_per_launch == 0) SetTripCount(step);
      if (step.graph == nullptr || step.graph->trip_count == 0)
        for (const std::vector<RunStep>& block : of.blocks) FindGraphs(block);
    }
  }

  // Number of launches that one run enqueues. A graph counts as its steps.
  double QueuedBy(const std::vector<RunStep>& steps) const {
    double queued = 0;
    for (const RunStep& of : steps) {
      const DeviceStep& step = made_.Of(of);
      if (step.step == nullptr) continue;
      double inside = 0;
      for (const std::vector<RunStep>& block : of.blocks) inside += QueuedBy(block);
      auto trip_count = static_cast<double>(step.trip_count.value_or(1));
      queued += step.iterations_per_launch > 0
                    ? std::ceil(trip_count / static_cast<double>(step.iterations_per_launch))
                    : 1 + trip_count * inside;
    }
    return queued;
  }

  DeviceSteps& made() { return made_; }
  // The first error of a kernel of the user.
  const Status& status() const { return status_; }
  std::span<const cuda::LaunchForm> forms() const { return forms_; }

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
    if (call && (on_device || CustomKernelIn(instr) != nullptr)) {
      Result<std::shared_ptr<const cuda::CallCode>> loaded = gpu_.LoadCall(*call);
      if (loaded.ok()) {
        step.call = std::move(loaded.value());
      } else if (IsErrorOfCustomKernel(instr, loaded.error()) && status_.ok()) {
        status_ = std::move(loaded.error());
        status_.error().where = SpanOf(*CustomKernelIn(instr));
      }
    }
    if (step.call == nullptr && status_.ok()) {
      const Instr* on_host = &instr;
      status_ = CheckCustomKernels({&on_host, 1});
    }
    made_.waits = made_.waits || step.call == nullptr || step.call->waits();
  }

  // Whether the user must know: no other code computes what a CUDA source says.
  static bool IsErrorOfCustomKernel(const Instr& instr, const Error& error) {
    return CustomKernelIn(instr) != nullptr && error.code != ErrorCode::kUnsupportedOp;
  }

  void AddWhile(DeviceStep& step) {
    step.trip_count = TripCountOf(*step.step, program_);
    made_.waits = made_.waits || !step.trip_count;
    if (one_by_one_ || !program_.IsPersistent(*step.step)) return;
    step.iterations_per_launch = program_.persistent[step.step->target];
    LoopLaunch launch = LoopLaunchOf(*step.step, program_);
    step.slices = std::move(launch.slices);
    step.first = step.step->first_slices;
    forms_.push_back(std::move(launch.form));
  }

  // Sets how many iterations of a loop one graph holds.
  void SetTripCount(DeviceStep& loop) const {
    const std::vector<std::vector<RunStep>>& blocks = loop.step->blocks;
    bool alternates_buffers = blocks.size() > 3;
    auto graph = std::make_unique<GraphRun>();
    std::vector<const DeviceStep*>& members = graph->members;
    auto add = [&](const std::vector<RunStep>& block) {
      return std::all_of(block.begin(), block.end(), [&](const RunStep& of) {
        const DeviceStep& step = made_.Of(of);
        if (step.step == nullptr) return true;
        members.push_back(&step);
        return IsForGraph(step);
      });
    };
    // Two iterations if buffers alternate (double buffering).
    uint64_t least = alternates_buffers ? 2 : 1;
    if (!add(blocks[1]) || !add(blocks[alternates_buffers ? 4 : 2]) || members.empty()) return;
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
  Status status_ = Ok();
  std::vector<cuda::LaunchForm> forms_;
  DeviceSteps made_;
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

}  // namespace

Result<DeviceSteps> PrepareSteps(const LoweredProgram& program, cuda::Gpu& gpu, bool one_by_one,
                                 bool reject_launches) {
  Preparer preparer(program, gpu, one_by_one);
  preparer.Prepare(program.steps);
  TOK_RETURN_IF_ERROR(Status(preparer.status()));
  DeviceSteps& made = preparer.made();
  made.waits = made.waits || preparer.QueuedBy(program.steps) > kMostQueued;
  if (reject_launches) TOK_RETURN_IF_ERROR(RejectLaunch(preparer.forms(), program));
  TOK_TRY(std::vector<std::shared_ptr<const cuda::LaunchCode>> codes, gpu.Load(preparer.forms()));
  preparer.SetCodes(codes);
  TOK_RETURN_IF_ERROR(preparer.SetProducts());
  preparer.FindGraphs(program.steps);
  return std::move(made);
}

}  // namespace tokamak
