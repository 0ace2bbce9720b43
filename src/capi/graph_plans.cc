// Plans of graphs in C.

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "capi/graph_handles.h"
#include "capi/handles.h"
#include "driver/compile/named_options.h"
#include "driver/report/write.h"
#include "driver/run/make_executable.h"
#include "support/json_text.h"

namespace tokamak {
namespace {

tok_error* NullPlan() {
  return InvalidArgument("plan: a null pointer");
}

Status SetOptions(ExplainRequest& request, std::span<const tok_option> given) {
  for (const tok_option& option : given)
    TOK_RETURN_IF_ERROR(SetRequestOption(request, option, "plan"));
  return Ok();
}

tok_step StepInC(const StepReport& step, const std::vector<int64_t>& instrs) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  return {sizeof(tok_step),
          step.name.c_str(),
          step.generator.c_str(),
          step.schedule.c_str(),
          step.reads,
          step.writes,
          step.calls.value_or(-1),
          step.predicted_us.value_or(kUnknown),
          step.measured_us.value_or(kUnknown),
          instrs.data(),
          instrs.size()};
}

tok_error* MakePlan(const GraphProgram& program, std::span<const tok_option> given,
                    tok_plan** out) {
  ExplainRequest request;
  request.compare = false;
  Status set = SetOptions(request, given);
  if (!set.ok()) return InC(set.error());
  Result<std::unique_ptr<GraphPlan>> made = GraphPlan::Make(program, request);
  if (!made.ok()) return InC(made.error());
  auto plan = std::make_unique<tok_plan>();
  plan->plan = std::move(made.value());
  const std::vector<StepReport>& steps = plan->plan->report().steps;
  for (size_t i = 0; i < steps.size(); ++i)
    plan->steps.push_back(StepInC(steps[i], plan->plan->InstrsOf(i)));
  *out = plan.release();
  return nullptr;
}

tok_error* CompilePlan(const GraphPlan& plan, tok_executable** out) {
  const std::shared_ptr<const Compilation>& made = plan.report().compilation;
  if (made->target.is_gpu() && made->target.device == nullptr)
    return InvalidArgument("compile: the plan is for " + made->target.name +
                           ", which is not a device of this process");
  Result<std::shared_ptr<const Executable>> executable = MakeExecutable(made);
  if (!executable.ok()) return InC(executable.error());
  *out = ExecutableInC(std::move(executable.value()));
  return nullptr;
}

// A JSON object with a member "text", or null.
void Split(const nlohmann::json& both, std::string& text, std::string& json) {
  text = both.is_null() ? "" : both["text"].get<std::string>();
  json = JsonText(both);
}

}  // namespace
}  // namespace tokamak

using tokamak::Guarded;
using tokamak::NullPlan;

tok_error* tok_graph_plan(const tok_graph* graph, const tok_option* options, size_t num_options,
                          tok_plan** plan) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr || plan == nullptr || (options == nullptr && num_options > 0))
      return NullPlan();
    *plan = nullptr;
    return tokamak::MakePlan(graph->program, {options, num_options}, plan);
  });
}

void tok_plan_free(tok_plan* plan) {
  delete plan;
}

size_t tok_plan_num_steps(const tok_plan* plan) {
  return plan == nullptr ? 0 : plan->steps.size();
}

const tok_step* tok_plan_step(const tok_plan* plan, size_t step) {
  return step < tok_plan_num_steps(plan) ? &plan->steps[step] : nullptr;
}

size_t tok_plan_steps_of(const tok_plan* plan, int64_t number, const size_t** steps) {
  if (plan == nullptr || steps == nullptr) return 0;
  const std::vector<size_t>& found = plan->plan->StepsOf(number);
  *steps = found.data();
  return found.size();
}

double tok_plan_predicted_us(const tok_plan* plan) {
  return plan == nullptr ? 0 : plan->plan->report().totals.us;
}

tok_error* tok_plan_why(tok_plan* plan, size_t step, const char** text, const char** json) {
  return Guarded([&]() -> tok_error* {
    if (plan == nullptr) return NullPlan();
    if (step >= plan->steps.size())
      return tokamak::InvalidArgument("plan: there is no step number " + std::to_string(step));
    tokamak::Split(plan->plan->Why(step), plan->why_text, plan->why_json);
    if (text != nullptr) *text = plan->why_text.c_str();
    if (json != nullptr) *json = plan->why_json.c_str();
    return nullptr;
  });
}

tok_error* tok_plan_boundary(tok_plan* plan, int64_t producer, int64_t consumer, const char** text,
                             const char** json) {
  return Guarded([&]() -> tok_error* {
    if (plan == nullptr) return NullPlan();
    tokamak::Split(plan->plan->Boundary(producer, consumer), plan->boundary_text,
                   plan->boundary_json);
    if (text != nullptr) *text = plan->boundary_text.c_str();
    if (json != nullptr) *json = plan->boundary_json.c_str();
    return nullptr;
  });
}

tok_error* tok_plan_json(tok_plan* plan, const char** json) {
  return Guarded([&]() -> tok_error* {
    if (plan == nullptr || json == nullptr) return NullPlan();
    if (plan->json.empty()) plan->json = tokamak::LineOfJson(plan->plan->Json());
    *json = plan->json.c_str();
    return nullptr;
  });
}

tok_error* tok_plan_decisions(tok_plan* plan, const char** json) {
  return Guarded([&]() -> tok_error* {
    if (plan == nullptr || json == nullptr) return NullPlan();
    if (plan->decisions.empty()) plan->decisions = tokamak::LineOfJson(plan->plan->Decisions());
    *json = plan->decisions.c_str();
    return nullptr;
  });
}

tok_error* tok_plan_explain(tok_plan* plan, const tok_option* options, size_t num_options,
                            const char** text) {
  return Guarded([&]() -> tok_error* {
    if (plan == nullptr || text == nullptr || (options == nullptr && num_options > 0))
      return NullPlan();
    *text = nullptr;
    tokamak::ExplainRequest request = plan->plan->request();
    tokamak::Status set = tokamak::SetOptions(request, {options, num_options});
    if (!set.ok()) return tokamak::InC(set.error());
    tokamak::Result<std::string> explained =
        tokamak::Explained(plan->plan->report().compilation, request,
                           request.compare ? &plan->plan->before() : nullptr);
    if (!explained.ok()) return tokamak::InC(explained.error());
    plan->explained = std::move(explained.value());
    *text = plan->explained.c_str();
    return nullptr;
  });
}

tok_error* tok_plan_diff(tok_plan* plan, const tok_plan* other, const char** text,
                         const char** json) {
  return Guarded([&]() -> tok_error* {
    if (plan == nullptr || other == nullptr) return NullPlan();
    const tokamak::CompileReport& a = plan->plan->report();
    const tokamak::CompileReport& b = other->plan->report();
    plan->diff_text = DiffText(a, b, "before", "after");
    plan->diff_json = tokamak::LineOfJson(DiffJson(a, b, "before", "after"));
    if (text != nullptr) *text = plan->diff_text.c_str();
    if (json != nullptr) *json = plan->diff_json.c_str();
    return nullptr;
  });
}

tok_error* tok_plan_compile(const tok_plan* plan, tok_executable** executable) {
  return Guarded([&]() -> tok_error* {
    if (plan == nullptr || executable == nullptr) return NullPlan();
    *executable = nullptr;
    return tokamak::CompilePlan(*plan->plan, executable);
  });
}
