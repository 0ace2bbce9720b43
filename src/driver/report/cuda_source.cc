#include "driver/report/cuda_source.h"

#include <cstdint>
#include <utility>
#include <vector>

#if TOK_HAVE_CUDA
#include "backend/cuda/cuda_text.h"
#include "backend/cuda/launch_source.h"
#include "driver/compile/device_loops.h"
#endif

namespace tokamak {
namespace {

// Each kernel with its number of blocks.
using HorizontalEntries = std::vector<std::pair<const Kernel*, int64_t>>;

Result<std::string> HorizontalTextOf(const std::string& name, const HorizontalEntries& entries) {
#if TOK_HAVE_CUDA
  std::vector<cuda::HorizontalKernel> given;
  for (auto [kernel, blocks] : entries) given.push_back({kernel, blocks});
  TOK_TRY(cuda::HorizontalSource made, cuda::HorizontalText(name, given));
  return std::move(made.source.text);
#else
  return MakeError(ErrorCode::kBackendNotBuilt, "horizontally fused launch " + name + " of " +
                                                    std::to_string(entries.size()) +
                                                    " kernels: this build has no CUDA backend");
#endif
}

Result<std::string> LoopTextOf(const RunStep& loop, const std::string& name,
                               const LoweredProgram& program) {
#if TOK_HAVE_CUDA
  cuda::LaunchForm form = LoopLaunchOf(loop, program).form;
  TOK_TRY(cuda::LaunchSource made, cuda::SourceOf(form, name));
  return std::move(made.source.text);
#else
  return MakeError(ErrorCode::kBackendNotBuilt, name + " " + program.loops[loop.target]->name() +
                                                    ": this build has no CUDA backend");
#endif
}

}  // namespace

Result<std::string> CudaTextOf(const Kernel& kernel) {
#if TOK_HAVE_CUDA
  TOK_TRY(cuda::CudaSource source, cuda::CudaText(kernel));
  return std::move(source.text);
#else
  return MakeError(ErrorCode::kBackendNotBuilt,
                   "kernel " + kernel.name + ": this build has no CUDA backend");
#endif
}

Result<LaunchText> CudaTextOfLaunch(const RunStep& step, const LoweredProgram& program) {
  LaunchText launch;
  if (step.kind == StepKind::kWhile) {
    launch.name = "loop";
    TOK_TRY(launch.text, LoopTextOf(step, launch.name, program));
  } else if (step.kind == StepKind::kHorizontal) {
    HorizontalEntries entries;
    for (const RunStep& part : step.blocks[0])
      entries.emplace_back(&program.kernels[part.target], part.grid);
    launch.name = "horizontal_" + entries[0].first->name;
    TOK_TRY(launch.text, HorizontalTextOf(launch.name, entries));
  } else {
    const Kernel& kernel = program.kernels[step.target];
    launch.name = kernel.name;
    TOK_TRY(launch.text, CudaTextOf(kernel));
  }
  return launch;
}

}  // namespace tokamak
