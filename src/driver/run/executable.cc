#include "driver/run/executable.h"

#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>

#include "driver/compile/compilation.h"
#include "driver/compile/event_sink.h"
#include "text/write.h"

namespace tokamak {

Executable::Executable(std::shared_ptr<const Compilation> compilation)
    : compilation_(std::move(compilation)),
      name_(compilation_->module->name()),
      predicted_us_(compilation_->predicted_us) {}

int64_t Executable::replicas() const {
  return compilation_->target.mesh.replicas;
}
int64_t Executable::partitions() const {
  return compilation_->target.mesh.partitions;
}
const std::vector<ParameterInfo>& Executable::parameters() const {
  return compilation_->parameters;
}
const std::vector<ArrayInfo>& Executable::results() const {
  return compilation_->results;
}
const CostAnalysis& Executable::cost() const {
  return compilation_->cost;
}
const MemoryAnalysis& Executable::memory() const {
  return compilation_->memory;
}
bool Executable::calls_host() const {
  return compilation_->calls_host;
}
bool Executable::time_depends_on_data() const {
  return compilation_->time_depends_on_data;
}
std::string Executable::HloText() const {
  return WriteHloText(*compilation_->module);
}
int64_t Executable::Launches() const {
  return compilation_->program.launches;
}
std::vector<std::string> Executable::HostSteps() const {
  if (!compilation_->why_interpreted.empty()) return {"the program: it is interpreted"};
  return compilation_->program.host_reasons;
}

Status Executable::Run(std::span<const void* const> inputs, std::span<void* const> outputs,
                       const RunControl& control) const {
  auto begin = std::chrono::steady_clock::now();
  Status status = RunOnce(inputs, outputs, control);
  double took =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  // The first measurement replaces the estimate. Later ones adjust it, and shorter times more than
  // longer ones: a preempted thread says nothing about the program, and data-dependent times are
  // not predictable (time_depends_on_data). A race loses one measurement.
  double before = predicted_us_.load(std::memory_order_relaxed);
  bool first = !measured_.load(std::memory_order_relaxed);
  double later =
      took < before ? (before + took) / 2 : before * 0.75 + std::min(took, 2 * before) * 0.25;
  predicted_us_.store(first ? took : later, std::memory_order_relaxed);
  if (first) {
    measured_.store(true, std::memory_order_relaxed);
    if (HasEventSink())
      EmitEvent(nlohmann::json{{"event", "first_run"}, {"name", name_}, {"run_us", took}});
  }
  return status;
}

Status Executable::Issue(std::span<const void* const>, std::span<void* const>,
                         const RunControl&) const {
  return MakeError(ErrorCode::kUnsupportedOp, "run: '" + name_ + "' has no device");
}

}  // namespace tokamak
