#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/json.h"
#include "cost/rates.h"
#include "driver/report/counterfactuals.h"
#include "driver/report/write.h"
#include "support/json_text.h"

namespace tokamak {
namespace {

using nlohmann::json;

json JsonOf(const StepReport& step) {
  json entry = {{"name", step.name},
                {"generator", step.generator},
                {"phase", NameOf(step.phase)},
                {"hash", fmt::format("{:016x}", step.code)},
                {"ops", step.ops},
                {"instrs", step.instrs},
                {"lines", step.lines},
                {"reads_bytes", step.reads},
                {"writes_bytes", step.writes},
                {"library", step.library.empty() ? json(nullptr) : json(step.library)}};
  entry["also_phases"] = json::array();
  for (Phase phase : step.also) entry["also_phases"].push_back(NameOf(phase));
  if (!step.why.empty()) entry["why"] = step.why;
  if (!step.schedule.empty()) entry["schedule"] = step.schedule;
  return entry;
}

// A step with its times and resources.
json FullJsonOf(const StepReport& step, const Machine& machine) {
  json entry = JsonOf(step);
  entry["calls"] = OrNull(step.calls);
  entry["predicted_us"] = OrNull(step.predicted_us);
  entry["measured_us"] = OrNull(step.measured_us);
  if (step.estimate) {
    entry["cost"] = {{"launch", step.estimate->launch},
                     {"memory", step.estimate->memory},
                     {"compute", step.estimate->compute},
                     {"binding", step.estimate->binding},
                     {"threads", step.estimate->threads}};
  }
  if (step.work) {
    entry["work"] = json::parse(ToJson(*step.work));
    entry["registers"] = machine.is_gpu() ? step.work->thread_registers : step.work->registers;
    entry["shared_bytes"] = step.work->shared_bytes;
  }
  for (const StepReport& part : step.parts) entry["parts"].push_back(JsonOf(part));
  return entry;
}

json DecisionsOf(const CompileReport& report) {
  json decisions = json::array();
  std::vector<std::string> facts = CounterFacts(report);
  for (const Decision& decision : report.log().all())
    decisions.push_back({{"pass", decision.pass},
                         {"rule", decision.rule},
                         {"verdict", NameOf(decision.verdict)},
                         {"subject", decision.subject},
                         {"other", decision.other},
                         {"before_us", decision.before_us},
                         {"after_us", decision.after_us},
                         {"because", decision.because},
                         {"counterfactual", facts[decisions.size()]}});
  return decisions;
}

// Calls after which the plan has paid for its planning time; null if never.
void AddBreakEven(const CompileReport& report, json& out) {
  for (const auto& [name, other] :
       {std::pair("greedy", &report.greedy), std::pair("unfused", &report.unfused)}) {
    if (!*other) continue;
    double more = report.totals.planning_ms - (*other)->planning_ms;
    double saves = (*other)->us - report.totals.us;
    out["break_even"][name] = {
        {"more_ms", more},
        {"saves_us", saves},
        {"calls", saves > 0 ? json(std::max(0.0, more * 1000 / saves)) : json(nullptr)}};
  }
}

}  // namespace

json JsonOf(const Totals& totals) {
  return {{"kernels", totals.kernels},
          {"library_calls", totals.library},
          {"host_steps", totals.host},
          {"copies", totals.copies},
          {"steps", totals.steps()},
          {"bytes", totals.bytes},
          {"predicted_us", totals.us},
          {"measured_us", OrNull(totals.measured_us)},
          {"temporary_bytes", totals.temporary_bytes},
          {"peak_bytes", totals.peak_bytes},
          {"planning_ms", totals.planning_ms},
          {"data_dependent", totals.data_decides}};
}

json JsonOf(const CompileReport& report, const std::string& target) {
  json steps = json::array(), phases = json::object();
  for (const StepReport& step : report.steps) steps.push_back(FullJsonOf(step, report.machine()));
  for (int i = 0; i < kPhases; ++i) {
    Totals totals = TotalsOf(report.steps, static_cast<Phase>(i));
    if (totals.steps() == 0) continue;
    phases[std::string(NameOf(static_cast<Phase>(i)))] = {
        {"steps", totals.steps()},
        {"bytes", totals.bytes},
        {"predicted_us", totals.us},
        {"measured_us", OrNull(totals.measured_us)}};
  }
  const Rates& rates = RatesOf(report.machine());
  json out = {{"target", target == "host" ? "cpu" : target},
              {"kernels", std::move(steps)},
              {"phases", std::move(phases)},
              {"decisions", DecisionsOf(report)},
              {"host_steps", report.totals.host},
              {"temporary_bytes", report.totals.temporary_bytes},
              {"machine", {{"name", rates.name}, {"rates", rates.source}}}};
  if (!report.why_interpreted().empty()) {
    out["interpreted"] = report.why_interpreted();
    return out;
  }
  out["fused"] = JsonOf(report.totals);
  if (report.unfused) out["unfused"] = JsonOf(*report.unfused);
  if (report.greedy) out["greedy"] = JsonOf(*report.greedy);
  AddBreakEven(report, out);
  return out;
}

}  // namespace tokamak
