#include "driver/run/kernel_codes.h"

#include <algorithm>

#include "driver/compile/compile_options.h"
#include "kernel/simulate.h"
#include "runtime/disk_cache.h"

#if TOK_HAVE_LLVM
#include "backend/cpu/code.h"
#endif

namespace tokamak {
namespace {

std::vector<SimArgument> ArgumentsOf(const Kernel& kernel, void* const* arguments) {
  std::vector<SimArgument> given;
  for (size_t i = 0; i < kernel.ArgumentCount(); ++i)
    given.push_back({arguments[i], kernel.arrays[i].size});
  return given;
}

class SimulatedHorizontal final : public HorizontalCode {
 public:
  SimulatedHorizontal(std::vector<Kernel> kernels, SimulationError& fault)
      : kernels_(std::move(kernels)), error_(fault) {}

  void Run(std::span<const size_t> kernels,
           std::span<const std::vector<void*>> arguments) const override {
    std::vector<std::vector<SimArgument>> given;
    std::vector<SimLaunch> entries;
    for (size_t i = 0; i < kernels.size(); ++i)
      given.push_back(ArgumentsOf(kernels_[kernels[i]], arguments[i].data()));
    for (size_t i = 0; i < kernels.size(); ++i)
      entries.push_back({&kernels_[kernels[i]], given[i]});
    error_.Note(SimulateHorizontal(entries));
  }

 private:
  std::vector<Kernel> kernels_;
  SimulationError& error_;
};

class SimulatedCode final : public KernelCode {
 public:
  SimulatedCode(const Kernel& kernel, SimulationError& fault) : kernel_(kernel), error_(fault) {}

  // The first chunk runs the whole kernel: launches are divided only for machine code.
  void Run(void* const* arguments, const int64_t* extents, int64_t begin, int64_t) const override {
    if (begin > 0) return;
    std::vector<SimArgument> given = ArgumentsOf(kernel_, arguments);
    error_.Note(SimulateKernel(kernel_, given, {extents, kernel_.extents.size()}));
  }

 private:
  Kernel kernel_;
  SimulationError& error_;
};

// Wraps a kernel's code and changes one element afterwards.
class CorruptedCode final : public KernelCode {
 public:
  CorruptedCode(std::unique_ptr<KernelCode> code, size_t output)
      : code_(std::move(code)), output_(output) {}

  void Run(void* const* arguments, const int64_t* extents, int64_t begin,
           int64_t end) const override {
    code_->Run(arguments, extents, begin, end);
    // Flips the highest bits: for reals of any width, the exponent.
    if (begin == 0) static_cast<uint8_t*>(arguments[output_])[top_] ^= 0x3C;
  }

  size_t top_ = 0;  // offset of the highest byte of an element

 private:
  std::unique_ptr<KernelCode> code_;
  size_t output_;
};

}  // namespace

void CorruptCode(KernelCodes& codes, const LoweredProgram& program, int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(codes.all.size())) return;
  std::unique_ptr<KernelCode>& code = codes.all[static_cast<size_t>(number)];
  const KernelSource& source = program.sources[static_cast<size_t>(number)];
  for (size_t i = 0; i < source.arguments.size(); ++i) {
    const KernelArgument& argument = source.arguments[i];
    if (!argument.is_output) continue;
    ElementType type = ResultShapesOf(argument.instr->shape())[argument.result_index].type();
    auto corrupted = std::make_unique<CorruptedCode>(std::move(code), i);
    corrupted->top_ = static_cast<size_t>(BytesOf(IsComplex(type) ? RealPartOf(type) : type)) - 1;
    code = std::move(corrupted);
    return;
  }
}

void SimulationError::Note(Result<SimReport> report) {
  if (report.ok()) return;
  std::lock_guard<std::mutex> lock(mutex);
  if (!first) first = std::move(report.error());
}

Status KernelCodes::TakeSimulationError() const {
  if (!fault) return Ok();
  std::lock_guard<std::mutex> lock(fault->mutex);
  if (!fault->first) return Ok();
  Error error = std::move(*fault->first);
  fault->first.reset();
  return error;
}

#if TOK_HAVE_LLVM
namespace {

class MachineCode final : public KernelCode {
 public:
  MachineCode(std::shared_ptr<const cpu::Code> code, size_t number)
      : code_(std::move(code)), function_(code_->function(number)) {}

  void Run(void* const* arguments, const int64_t* extents, int64_t begin,
           int64_t end) const override {
    function_(arguments, extents, begin, end);
  }

 private:
  std::shared_ptr<const cpu::Code> code_;
  cpu::KernelFn function_;
};

void AddCodegenFault(std::string_view text, cpu::CompileOptions& options) {
  if (text.empty()) return;
  size_t colon = text.find(':');
  auto kind = std::ranges::find(kCodegenFaults, text.substr(0, colon));
  options.fault = static_cast<cpu::InjectedFault>(kind - kCodegenFaults.begin() + 1);
  options.fault_efforts = colon == std::string_view::npos ? 1 : text[colon + 1] - '0';
  // Longer than a small kernel takes to compile.
  if (options.fault == cpu::InjectedFault::kEndless)
    options.kernel_time = std::chrono::milliseconds(500);
}

Result<KernelCodes> MakeMachineCodes(const std::vector<Kernel>& kernels, std::string_view fault) {
  KernelCodes codes;
  if (kernels.empty()) return codes;
  codes.fault = std::make_unique<SimulationError>();
  std::vector<const Kernel*> all;
  for (const Kernel& kernel : kernels) all.push_back(&kernel);
  cpu::CompileOptions options{.cache = DiskCache::OfProcess()};
  AddCodegenFault(fault, options);
  TOK_TRY(std::shared_ptr<const cpu::Code> code, cpu::Code::Compile(all, options));
  for (size_t i = 0; i < all.size(); ++i) {
    if (code->function(i) != nullptr) {
      codes.all.push_back(std::make_unique<MachineCode>(code, i));
    } else {
      codes.all.push_back(std::make_unique<SimulatedCode>(kernels[i], *codes.fault));
    }
  }
  for (const cpu::CodegenFallback& fallback : code->fallbacks()) {
    std::string now =
        fallback.effort ? "compiled " + std::string(cpu::NameOf(*fallback.effort)) : "interpreted";
    codes.fallbacks.push_back({.kernel = fallback.kernel,
                               .text = fallback.reason + "; " + now,
                               .interpreted = !fallback.effort});
  }
  return codes;
}

}  // namespace
#endif

Result<KernelCodes> MakeCodes(const std::vector<Kernel>& kernels, KernelBackend kernel_backend,
                              [[maybe_unused]] std::string_view fault) {
#if TOK_HAVE_LLVM
  if (kernel_backend == KernelBackend::kMachineCode) return MakeMachineCodes(kernels, fault);
#endif
  KernelCodes codes;
  codes.fault = std::make_unique<SimulationError>();
  for (const Kernel& kernel : kernels)
    codes.all.push_back(std::make_unique<SimulatedCode>(kernel, *codes.fault));
  if (kernel_backend == KernelBackend::kGpuSimulator)
    codes.horizontal = std::make_unique<SimulatedHorizontal>(kernels, *codes.fault);
  return codes;
}

}  // namespace tokamak
