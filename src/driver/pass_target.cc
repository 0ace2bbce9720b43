#include "driver/pass_target.h"

#include "driver/host_libraries.h"
#include "driver/host_rates.h"
#include "driver/kernel_codes.h"
#include "passes/passes.h"

namespace tokamak {

NamedTarget::NamedTarget(std::string_view name, int64_t vector_bits) {
  if (name.empty()) return;
  if (name == "host") {
    machine_ = HostMachine();
    libraries_ = std::make_unique<HostLibraries>();
  } else {
    machine_ = GpuMachine();
    machine_.rates = &GpuRates();
    libraries_ = std::make_unique<AssumedLibraries>(true);
  }
  if (vector_bits > 0) machine_.vector_bits = vector_bits;
}

std::string PassesFor(std::string_view target, const std::string& passes) {
  if (!passes.empty()) return passes;
  return target.empty() ? "default" : target == "host" ? "default,cpu" : "default,gpu";
}

PassTarget NamedTarget::ForPasses() const {
  return libraries_ == nullptr ? PassTarget{} : TargetOf(machine_, libraries_.get());
}

}  // namespace tokamak
