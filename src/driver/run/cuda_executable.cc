#include "driver/run/cuda_executable.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "driver/compile/host_calls.h"
#include "driver/compile/program_facts.h"
#include "driver/run/check_kernels.h"
#include "driver/run/device_steps.h"
#include "driver/run/held_arrays.h"
#include "driver/run/host_steps.h"
#include "interp/array_bytes.h"

namespace tokamak {
namespace {

constexpr uintptr_t kNowhere = 4096;  // an address that is never mapped on a device

// Runs with arrays in host memory: copies them to the device and back.
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
  explicit CudaExecutable(std::shared_ptr<const Compilation> compilation)
      : Executable(std::move(compilation)),
        module_(*this->compilation().module),
        program_(this->compilation().program),
        holds_(module_),
        gpu_(static_cast<cuda::Gpu&>(*this->compilation().target.device)),
        arena_user_("values of '" + name() + "'"),
        check_kernels_(this->compilation().options.check_kernels),
        faults_(this->compilation().options.faults) {}

  Status Prepare() {
    TOK_TRY(steps_,
            PrepareSteps(program_, gpu_, check_kernels_, compilation().options.reject_launches));
    functions_ = HostFunctions(program_.host_instrs);
    for (const Instr* constant : program_.constants) {
      TOK_TRY(std::vector<std::byte> bytes, BytesOfConstant(*constant));
      TOK_TRY(DeviceMemory memory,
              DeviceMemory::Take(gpu_, bytes.size(), "constants of '" + name() + "'"));
      TOK_RETURN_IF_ERROR(gpu_.CopyIn(memory.data(), bytes.data(), bytes.size()));
      constants_.push_back(std::move(memory));
    }
    return Ok();
  }

  Device* device() const override { return &gpu_; }
  bool IssueWaits() const override { return steps_.waits || calls_host() || check_kernels_; }

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
                  .stop = control.stop,
                  .recorder = control.recorder};
    if (check_kernels_)
      run.watcher = &checker.emplace(program_, module_, functions_.all(), /*library_tf32=*/true);
    Status status = IssueSteps(steps_, run);
    if (status.ok()) status = host.Finish(control.checks);
    if (!status.ok() && status.error().code != ErrorCode::kKernelDiffers)
      AddOrigin(status.error(), module_);
    return status;
  }

 private:
  Status RunOnce(std::span<const void* const> inputs, std::span<void* const> outputs,
                 const RunControl& control) const override {
    return RunFromHost(*this, inputs, outputs, control);
  }

  const Module& module_;
  const LoweredProgram& program_;
  HostHolds holds_;
  cuda::Gpu& gpu_;
  std::string arena_user_;
  DeviceSteps steps_;
  HostFunctions functions_;
  std::vector<DeviceMemory> constants_;
  bool check_kernels_, faults_;
};

// A host executable for callers whose arrays are on a device.
class HostedExecutable final : public Executable {
 public:
  HostedExecutable(std::shared_ptr<const Executable> inner, Device& device)
      : Executable(inner->shared_compilation()), inner_(std::move(inner)), device_(device) {
    codegen_fallbacks_ = inner_->codegen_fallbacks();
  }

  Device* device() const override { return &device_; }

  Status Issue(std::span<const void* const> inputs, std::span<void* const> outputs,
               const RunControl& control) const override {
    std::vector<std::vector<std::byte>> memory;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (size_t i = 0; i < inputs.size(); ++i) {
      memory.emplace_back(static_cast<size_t>(parameters()[i % parameters().size()].bytes));
      from.push_back(memory.back().data());
      TOK_RETURN_IF_ERROR(device_.CopyOut(memory.back().data(), inputs[i], memory.back().size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      memory.emplace_back(static_cast<size_t>(results()[i % results().size()].bytes));
      to.push_back(memory.back().data());
    }
    TOK_RETURN_IF_ERROR(inner_->Run(from, to, control));
    for (size_t i = 0; i < outputs.size(); ++i)
      TOK_RETURN_IF_ERROR(device_.CopyIn(
          outputs[i], to[i], static_cast<size_t>(results()[i % results().size()].bytes)));
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

Result<std::shared_ptr<const Executable>> MakeCudaExecutable(
    std::shared_ptr<const Compilation> compilation) {
  auto executable = std::make_shared<CudaExecutable>(std::move(compilation));
  TOK_RETURN_IF_ERROR(executable->Prepare());
  return std::shared_ptr<const Executable>(std::move(executable));
}

std::shared_ptr<const Executable> OnDevice(std::shared_ptr<const Executable> executable,
                                           Device& device) {
  return std::make_shared<HostedExecutable>(std::move(executable), device);
}

}  // namespace tokamak
