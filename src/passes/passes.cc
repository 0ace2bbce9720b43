#include "passes/passes.h"

#include "cost/machine.h"

namespace tokamak {

std::span<const PassFn> PassFunctions() {
  static constexpr PassFn kFunctions[] = {
#define TOK_PASS(id, ...) id,
#include "rewrite/passes.def"
  };
  return kFunctions;
}

PassTarget TargetOf(const Machine& machine, TargetLibraries* libraries) {
  return {.kind = machine.is_gpu() ? kGpu : kCpu, .machine = &machine, .libraries = libraries};
}

Result<std::vector<PassRun>> RunPasses(Module& module, std::span<const Step> steps,
                                       PassContext& context, const PipelineOptions& options) {
  return RunPipeline(module, steps, PassFunctions(), context, options);
}

}  // namespace tokamak
