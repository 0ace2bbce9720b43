#pragma once

#include <span>

#include "rewrite/pass_functions.h"
#include "rewrite/pipeline.h"

namespace tokamak {

// One function per row, in that order.
std::span<const PassFn> PassFunctions();

// The PassTarget for a machine.
PassTarget TargetOf(const Machine& machine, TargetLibraries* libraries = nullptr);

// RunPipeline with PassFunctions().
Result<std::vector<PassRun>> RunPasses(Module& module, std::span<const Step> steps,
                                       PassContext& context, const PipelineOptions& options = {});

}  // namespace tokamak
