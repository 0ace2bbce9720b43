#include "driver/compile/pass_target.h"

#include "driver/compile/target_libraries.h"
#include "passes/passes.h"

namespace tokamak {

NamedTarget::NamedTarget(std::string_view name, int64_t vector_bits) {
  Result<Target> found = TargetNamed(name);
  if (!found.ok()) return;  // an empty name: no target
  target_ = std::move(found.value());
  if (vector_bits > 0) target_.machine.vector_bits = vector_bits;
  libraries_ = LibrariesOf(target_);
}

std::string PassesFor(std::string_view target, const std::string& passes) {
  if (!passes.empty()) return passes;
  if (target.empty()) return "default";
  return ToString(kEntryPipeline) + (target == "host" ? ",default,cpu" : ",default,gpu");
}

PassTarget NamedTarget::ForPasses() const {
  return libraries_ == nullptr ? PassTarget{} : TargetOf(target_.machine, libraries_.get());
}

}  // namespace tokamak
