#pragma once

#include <span>

#include "rewrite/pipeline.h"

namespace tokamak {

// Every pass of passes.def, one .cc each. A pass needs no header of its own: its contract is the
// comment above its definition, its one-line meaning the row.
#define TOK_PASS(id, ...) Result<Changed> id(Module& module, PassContext& context);
#include "rewrite/passes.def"

// One function per row, in that order.
std::span<const PassFn> PassFunctions();

// What target passes are told about a machine.
PassTarget TargetOf(const Machine& machine, TargetLibraries* libraries = nullptr);

// RunPipeline with those.
Result<std::vector<PassRun>> RunPasses(Module& module, std::span<const Step> steps,
                                       PassContext& context, const PipelineOptions& options = {});

}  // namespace tokamak
