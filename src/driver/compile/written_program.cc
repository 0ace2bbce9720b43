#include "driver/compile/written_program.h"

#include <span>

#include "ir/clone.h"
#include "passes/passes.h"

namespace tokamak {
namespace {

constexpr Step kInlinedPipeline[] = {
    {Pass::kFlattenEntry}, {Pass::kRecognizeRandom}, {Pass::kInline}, {Pass::kFlattenTuples},
    {Pass::kDce},          {Pass::kRecognizeRandom}, {Pass::kDce},
};
constexpr Step kFoldedPipeline[] = {{Pass::kFoldConstants}, {Pass::kCse}, {Pass::kDce}};
static_assert(IsSound(kInlinedPipeline) && IsSound(kFoldedPipeline));

// Null if a pass fails: there is less to look at, which is no reason to fail.
std::unique_ptr<Module> RunOn(const Module& module, std::span<const Step> steps) {
  std::unique_ptr<Module> copy = CloneModule(module);
  DecisionLog log;
  PassContext context(log);
  return RunPasses(*copy, steps, context).ok() ? std::move(copy) : nullptr;
}

}  // namespace

WrittenProgram ReadWrittenProgram(const Module& module) {
  WrittenProgram program;
  program.inlined = RunOn(module, kInlinedPipeline);
  if (program.inlined != nullptr) program.folded = RunOn(*program.inlined, kFoldedPipeline);
  return program;
}

}  // namespace tokamak
