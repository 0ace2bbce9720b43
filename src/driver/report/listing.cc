#include "driver/report/listing.h"

#include <fmt/format.h>

#include "driver/report/cuda_source.h"
#include "driver/report/llvm_text.h"

#if TOK_HAVE_CUDA
#include "backend/cuda/nvrtc.h"
#endif
#if TOK_HAVE_LLVM
#include "backend/cpu/codegen.h"
#endif

namespace tokamak {
namespace {

#if TOK_HAVE_CUDA
Result<Listing> PtxOf(const StepCode& code) {
  TOK_TRY(const cuda::Nvrtc* nvrtc, cuda::Nvrtc::Open());
  cuda::CudaSource source;
  source.name = code.name;
  source.text = code.text;
  Listing listing;
  TOK_TRY(cuda::CudaCode made, nvrtc->Compile(source, cuda::kHopper, &listing.text));
  while (!listing.text.empty() && listing.text.back() == '\0') listing.text.pop_back();
  listing.registers = made.registers;
  listing.spilled_bytes = made.spilled_bytes;
  return listing;
}
#else
Result<Listing> PtxOf(const StepCode& code) {
  return MakeError(ErrorCode::kBackendNotBuilt,
                   "kernel " + code.name + ": this build has no CUDA backend");
}
#endif

#if TOK_HAVE_LLVM
Result<Listing> AssemblyOf(const CompileReport& report, const StepReport& step) {
  TOK_TRY(cpu::Target target, cpu::HostTarget());
  Listing listing;
  for (size_t kernel : step.kernels) {
    TOK_TRY(std::string text, cpu::MakeAssembly(report.program().kernels[kernel], target));
    listing.text += text;
  }
  return listing;
}
#else
Result<Listing> AssemblyOf(const CompileReport& report, const StepReport&) {
  return MakeError(ErrorCode::kBackendNotBuilt,
                   "program " + report.module().name() + ": this build has no CPU backend");
}
#endif

}  // namespace

Result<StepCode> CodeOfStep(const CompileReport& report, const StepReport& step) {
  StepCode code;
  if (report.machine().is_gpu()) {
    // A step of several kernels is one text.
    TOK_TRY(LaunchText launch, CudaTextOfLaunch(*step.step, report.program()));
    code.name = std::move(launch.name);
    code.text = std::move(launch.text);
    return code;
  }
  for (size_t kernel : step.kernels) {
    TOK_TRY(std::string text, LlvmTextOf(report.program().kernels[kernel]));
    code.text += text;
  }
  return code;
}

Result<Listing> ListingOf(const CompileReport& report, const StepReport& step,
                          const StepCode& code) {
  return report.machine().is_gpu() ? PtxOf(code) : AssemblyOf(report, step);
}

std::string ListingCompiler(bool for_gpu, std::string& why_none) {
  if (!for_gpu) {
#if TOK_HAVE_LLVM
    return "LLVM";
#else
    why_none = "this build has no CPU backend";
    return "";
#endif
  }
#if TOK_HAVE_CUDA
  Result<const cuda::Nvrtc*> nvrtc = cuda::Nvrtc::Open();
  if (nvrtc.ok()) {
    constexpr int kMajor = 1000, kMinor = 10;  // of the version number (NVRTC)
    int version = nvrtc.value()->version();
    return fmt::format("NVRTC {}.{}", version / kMajor, version % kMajor / kMinor);
  }
  why_none = nvrtc.error().message;
#else
  why_none = "this build has no CUDA backend";
#endif
  return "";
}

}  // namespace tokamak
