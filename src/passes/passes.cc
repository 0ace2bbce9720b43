#include "passes/passes.h"

namespace tokamak {

std::span<const PassFn> PassFunctions() {
  static constexpr PassFn kFunctions[] = {
#define TOK_PASS(id, ...) id,
#include "rewrite/passes.def"
  };
  return kFunctions;
}

Result<std::vector<PassRun>> RunPasses(Module& module, std::span<const Step> steps,
                                       PassContext& context, const PipelineOptions& options) {
  return RunPipeline(module, steps, PassFunctions(), context, options);
}

}  // namespace tokamak
