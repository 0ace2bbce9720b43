#include "driver/cuda_executable.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "driver/all_kernels.h"
#include "driver/check_kernels.h"
#include "driver/compiled_program.h"
#include "driver/device_libraries.h"
#include "driver/device_steps.h"
#include "driver/held_arrays.h"
#include "driver/host_calls.h"
#include "driver/host_steps.h"
#include "driver/kernel_codes.h"
#include "driver/lower_module.h"
#include "driver/program_facts.h"
#include "driver/step_price.h"
#include "lower/alternate.h"
#include "text/write.h"

namespace tokamak {
namespace {

constexpr uintptr_t kNowhere = 4096;  // no memory of any device

// Runs with arrays in the host's memory: they are copied to the device and back.
Status RunFromHost(const Executable& executable, std::span<const void* const> inputs,
                   std::span<void* const> outputs, const RunControl& control) {
  Device& device = *executable.device();
  TOK_TRY(DeviceArrays arrays, DeviceArrays::Make(executable, inputs, outputs));
  TOK_RETURN_IF_ERROR(executable.Issue(arrays.inputs(), arrays.outputs(), control));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ArrayInfo& result = executable.results()[i % executable.results().size()];
    TOK_RETURN_IF_ERROR(
        device.CopyOut(outputs[i], arrays.outputs()[i], static_cast<size_t>(result.bytes)));
  }
  return device.Synchronize();
}

class CudaExecutable final : public Executable {
 public:
  CudaExecutable(std::unique_ptr<Module> module, const CompileOptions& options, cuda::Gpu& gpu)
      : module_(std::move(module)),
        holds_(*module_),
        gpu_(gpu),
        check_kernels_(options.check_kernels),
        faults_(options.faults) {
    name_ = module_->name();
    arena_user_ = "values of '" + name_ + "'";
    cost_ = CostOf(*module_);
    calls_host_ = CallsHost(*module_);
  }

  Status Prepare(const CompileOptions& compile, bool is_simulated, DecisionLog& log) {
    TOK_TRY(parameters_, ParametersOf(*module_, 1));
    TOK_TRY(results_, ResultsOf(*module_, 1));
    MatchDonors(parameters_, results_);
    TOK_TRY(FusionChoice fusion, FusionOf(compile));
    LowerOptions options = LowerOptionsOf(compile, fusion, parameters_);
    // Launches are what a GPU waits for; what is checked is launched one by one.
    if (options.plan.packs == PackMode::kNone) options.plan.packs = PackMode::kPriced;
    if (check_kernels_) options.plan.packs = PackMode::kNone;
    options.machine = SimulatedGpu();
    if (!is_simulated) options.machine.cores = gpu_.info().multiprocessors;
    PlanLibraries(gpu_, *module_, options.machine, log);
    TOK_TRY(program_, LowerModule(*module_, options, log, fusion.paper));
    if (compile.require_kernels) TOK_RETURN_IF_ERROR(CheckAllKernels(program_, *module_));
    predicted_us_ = PriceOf(program_.steps, program_, options.machine);
    time_depends_on_data_ = TimeDependsOnData(program_.steps, program_, options.machine);
    AlternateLoops(program_.steps);
    TOK_TRY(steps_, PrepareSteps(program_, gpu_, check_kernels_, &log));
    functions_ = HostFunctions(program_.host_instrs);
    for (const Instr* constant : program_.constants) {
      TOK_TRY(std::vector<std::byte> bytes, BytesOfConstant(*constant));
      TOK_TRY(DeviceMemory memory,
              DeviceMemory::Take(gpu_, bytes.size(), "constants of '" + name_ + "'"));
      TOK_RETURN_IF_ERROR(gpu_.CopyIn(memory.data(), bytes.data(), bytes.size()));
      constants_.push_back(std::move(memory));
    }
    memory_ = MemoryOf(parameters_, results_, program_.arena_bytes);
    return Ok();
  }

  Device* device() const override { return &gpu_; }
  bool IssueWaits() const override { return steps_.waits || calls_host_ || check_kernels_; }
  std::string HloText() const override { return WriteHloText(*module_); }
  int64_t Launches() const override { return program_.launches; }
  std::vector<std::string> HostSteps() const override { return program_.host_reasons; }

  Status Issue(std::span<const void* const> inputs, std::span<void* const> outputs,
               const RunControl& control) const override {
    DeviceMemory arena;
    if (program_.arena_bytes > 0) {
      TOK_TRY(arena,
              DeviceMemory::Take(gpu_, static_cast<size_t>(program_.arena_bytes), arena_user_));
    }
    std::vector<std::byte*> memories = {arena.data()};
    for (const void* input : inputs)
      memories.push_back(static_cast<std::byte*>(const_cast<void*>(input)));
    for (void* output : outputs) memories.push_back(static_cast<std::byte*>(output));
    for (const DeviceMemory& constant : constants_) memories.push_back(constant.data());
    if (faults_) [[unlikely]]
      std::fill(memories.begin(), memories.end(), reinterpret_cast<std::byte*>(kNowhere));
    RunOptions options;
    options.stop = control.stop;
    options.host_calls = &RegisteredHostCalls();
    InterpretedSteps host(options);
    std::optional<KernelChecker> checker;
    DeviceRun run{.gpu = gpu_,
                  .program = program_,
                  .memories = memories,
                  .functions = functions_.all(),
                  .host = host,
                  .stop = control.stop};
    if (check_kernels_) run.watcher = &checker.emplace(program_, *module_, functions_.all());
    Status status = IssueSteps(steps_, run);
    if (status.ok()) status = host.Finish(control.checks);
    if (!status.ok() && status.error().code != ErrorCode::kKernelDiffers)
      AddOrigin(status.error(), *module_);
    return status;
  }

 private:
  Status RunOnce(std::span<const void* const> inputs, std::span<void* const> outputs,
                 const RunControl& control) const override {
    return RunFromHost(*this, inputs, outputs, control);
  }

  std::unique_ptr<Module> module_;
  HostHolds holds_;
  cuda::Gpu& gpu_;
  std::string arena_user_;
  LoweredProgram program_;
  DeviceSteps steps_;
  HostFunctions functions_;
  std::vector<DeviceMemory> constants_;
  bool check_kernels_, faults_;
};

// What the host runs, for those who have arrays on a device.
class HostedExecutable final : public Executable {
 public:
  HostedExecutable(std::shared_ptr<const Executable> inner, Device& device)
      : inner_(std::move(inner)), device_(device) {
    name_ = inner_->name();
    replicas_ = inner_->replicas();
    partitions_ = inner_->partitions();
    parameters_ = inner_->parameters();
    results_ = inner_->results();
    cost_ = inner_->cost();
    memory_ = inner_->memory();
    calls_host_ = inner_->calls_host();
    codegen_fallbacks_ = inner_->codegen_fallbacks();
    predicted_us_ = inner_->PredictedMicros();
    time_depends_on_data_ = inner_->time_depends_on_data();
  }

  Device* device() const override { return &device_; }
  std::string HloText() const override { return inner_->HloText(); }
  int64_t Launches() const override { return inner_->Launches(); }
  std::vector<std::string> HostSteps() const override { return inner_->HostSteps(); }

  Status Issue(std::span<const void* const> inputs, std::span<void* const> outputs,
               const RunControl& control) const override {
    std::vector<std::vector<std::byte>> memory;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (size_t i = 0; i < inputs.size(); ++i) {
      memory.emplace_back(static_cast<size_t>(parameters_[i % parameters_.size()].bytes));
      from.push_back(memory.back().data());
      TOK_RETURN_IF_ERROR(device_.CopyOut(memory.back().data(), inputs[i], memory.back().size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      memory.emplace_back(static_cast<size_t>(results_[i % results_.size()].bytes));
      to.push_back(memory.back().data());
    }
    TOK_RETURN_IF_ERROR(inner_->Run(from, to, control));
    for (size_t i = 0; i < outputs.size(); ++i)
      TOK_RETURN_IF_ERROR(device_.CopyIn(outputs[i], to[i],
                                         static_cast<size_t>(results_[i % results_.size()].bytes)));
    return Ok();
  }

 private:
  Status RunOnce(std::span<const void* const> inputs, std::span<void* const> outputs,
                 const RunControl& control) const override {
    return inner_->Run(inputs, outputs, control);
  }

  std::shared_ptr<const Executable> inner_;
  Device& device_;
};

}  // namespace

Result<std::shared_ptr<const Executable>> MakeCudaExecutable(std::unique_ptr<Module>& module,
                                                             const CompileOptions& options,
                                                             Device& device, DecisionLog& log) {
  TOK_TRY(bool is_lowered, CanBeLowered(*module, options, log));
  if (!is_lowered) return std::shared_ptr<const Executable>();
  auto executable =
      std::make_shared<CudaExecutable>(std::move(module), options, static_cast<cuda::Gpu&>(device));
  TOK_RETURN_IF_ERROR(executable->Prepare(options, options.backend == "sim-cuda", log));
  return std::shared_ptr<const Executable>(std::move(executable));
}

std::shared_ptr<const Executable> OnDevice(std::shared_ptr<const Executable> executable,
                                           Device& device) {
  return std::make_shared<HostedExecutable>(std::move(executable), device);
}

}  // namespace tokamak
