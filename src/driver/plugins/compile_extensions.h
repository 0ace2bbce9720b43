#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "driver/plugins/registry.h"
#include "fusion/extensions.h"
#include "rewrite/pass.h"
#include "rewrite/pipeline.h"

// Plugins and policies in one compilation.

namespace tokamak {

// A failure of a plugin leaves the compilation as it was: the item is not used again in it, a
// decision plugin.failed is recorded, and a warning is printed once per process.
class CompileExtensions final : public PlannerExtensions {
 public:
  CompileExtensions(std::shared_ptr<const ExtensionSet> all, PluginMode mode, TargetKind target,
                    const Machine& machine);

  // Runs a pipeline, and each pass of a plugin after the step that it follows: once, in the first
  // pipeline that has it. May replace the module. Returns TK6205 or TK6206 in strict mode.
  Result<std::vector<PassRun>> RunPasses(std::unique_ptr<Module>& module,
                                         std::span<const Step> steps, PassContext& context,
                                         const PipelineOptions& options);
  // Records the passes that have not run because no pipeline has their place.
  void LogUnusedPasses(const Module& module, DecisionLog& log) const;
  // Whether a pass that may round has changed the program.
  bool rounded() const { return rounded_; }
  // The first failure, in strict mode.
  Status status() const;

  bool HasFusionPolicy() const override;
  PolicyAnswer Decide(const MoveFacts& move) const override;
  bool HasOrderPolicy() const override;
  StepPriority PriorityOf(const StepFacts& step) const override;
  bool HasCostHook() const override;
  CostEstimate Corrected(const CostEstimate& modeled, const Work& work, const Kernel& kernel,
                         const FusedRegion& region, GeneratorKind kind,
                         std::string* hook) const override;
  bool HasGenerator() const override;
  std::optional<BuiltKernel> Generate(const FusedRegion& region, const BuiltKernel* own,
                                      GeneratorKind kind) const override;
  void LogTo(DecisionLog& log) const override;

 private:
  // The passes that have their place in this pipeline and have not run.
  std::vector<const PluginPass*> PassesIn(std::span<const Step> steps) const;
  // `targets`: of a pass or generator, as the plugin gave them.
  bool IsForTarget(uint32_t targets) const;
  Status RunOne(std::unique_ptr<Module>& module, const PluginPass& pass, PassContext& context);
  // Why the changed module cannot be used; no message if it is valid, and computes the same.
  Error WhyNotAdopted(const Module& before, Module& after, const PluginPass& pass) const;

  bool IsUsable(const PluginItem& item) const;
  template <typename Items>
  bool AnyUsable(const Items& items) const;
  // Records a failure: the item is not used again.
  void Fail(const PluginItem& item, std::string_view kind, Error error, bool is_abandoned) const;
  CostEstimate CorrectedBy(const PluginCostHook& hook, const CostEstimate& modeled,
                           const Work& work, const Kernel& kernel, const FusedRegion& region,
                           GeneratorKind kind) const;
  std::optional<BuiltKernel> GenerateBy(const PluginGenerator& generator, const FusedRegion& region,
                                        const BuiltKernel* own) const;

  std::shared_ptr<const ExtensionSet> all_;
  PluginMode mode_;
  TargetKind target_;
  const Machine machine_;
  std::set<const PluginItem*> done_;  // passes that have run
  bool rounded_ = false;
  // The planner sees a constant object.
  mutable std::set<const PluginItem*> failed_;
  mutable std::vector<Decision> failures_;
  mutable std::unique_ptr<Error> first_failure_;
};

// The plugins and policies of a compilation that begins; null if none are registered.
std::shared_ptr<CompileExtensions> MakeExtensions(PluginMode mode, TargetKind target,
                                                  const Machine& machine);

}  // namespace tokamak
