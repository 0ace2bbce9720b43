#pragma once

#include <span>

#include "rewrite/pipeline.h"

namespace tokamak {

// Declares every pass of passes.def; each is one .cc file. A pass needs no header: its contract is
// the comment above its definition, its one-line meaning is in the row.
#define TOK_PASS(id, ...) Result<Changed> id(Module& module, PassContext& context);
#include "rewrite/passes.def"

// One function per row, in that order.
std::span<const PassFn> PassFunctions();

// The PassTarget for a machine.
PassTarget TargetOf(const Machine& machine, TargetLibraries* libraries = nullptr);

// RunPipeline with PassFunctions().
Result<std::vector<PassRun>> RunPasses(Module& module, std::span<const Step> steps,
                                       PassContext& context, const PipelineOptions& options = {});

}  // namespace tokamak
