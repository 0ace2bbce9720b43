#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/json.h"
#include "cost/rates.h"
#include "driver/account/counterfacts.h"
#include "driver/account/write.h"

namespace tokamak {
namespace {

using nlohmann::json;

template <typename T>
json OrNull(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json JsonOf(const StepAccount& step) {
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
  return entry;
}

// A step that runs, with what it takes.
json FullJsonOf(const StepAccount& step, const Machine& machine) {
  json entry = JsonOf(step);
  entry["calls"] = OrNull(step.calls);
  entry["predicted_us"] = OrNull(step.predicted_us);
  entry["measured_us"] = OrNull(step.measured_us);
  if (step.price) {
    entry["price"] = {{"launch", step.price->launch},
                      {"memory", step.price->memory},
                      {"compute", step.price->compute},
                      {"binding", step.price->binding},
                      {"threads", step.price->threads}};
  }
  if (step.work) {
    entry["work"] = json::parse(ToJson(*step.work));
    entry["registers"] = machine.is_gpu() ? step.work->words : step.work->registers;
    entry["team_bytes"] = step.work->team_bytes;
  }
  for (const StepAccount& part : step.parts) entry["parts"].push_back(JsonOf(part));
  return entry;
}

json DecisionsOf(const ProgramAccount& account) {
  json decisions = json::array();
  std::vector<std::string> facts = CounterFacts(account);
  for (const Decision& decision : account.log().all())
    decisions.push_back({{"pass", decision.pass},
                         {"rule", decision.rule},
                         {"verdict", decision.verdict == Verdict::kTaken ? "taken" : "rejected"},
                         {"subject", decision.subject},
                         {"other", decision.other},
                         {"before_us", decision.before_us},
                         {"after_us", decision.after_us},
                         {"because", decision.because},
                         {"would_if", facts[decisions.size()]}});
  return decisions;
}

// Calls after which the plan has paid for itself; null: never.
void AddBreakEven(const ProgramAccount& account, json& out) {
  for (const auto& [name, other] :
       {std::pair("greedy", &account.greedy), std::pair("unfused", &account.unfused)}) {
    if (!*other) continue;
    double more = account.totals.planning_ms - (*other)->planning_ms;
    double saves = (*other)->us - account.totals.us;
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
          {"data_decides", totals.data_decides}};
}

json JsonOf(const ProgramAccount& account, const std::string& target) {
  json steps = json::array(), phases = json::object();
  for (const StepAccount& step : account.steps)
    steps.push_back(FullJsonOf(step, account.machine()));
  for (int i = 0; i < kPhases; ++i) {
    Totals totals = TotalsOf(account.steps, static_cast<Phase>(i));
    if (totals.steps() == 0) continue;
    phases[std::string(NameOf(static_cast<Phase>(i)))] = {
        {"steps", totals.steps()},
        {"bytes", totals.bytes},
        {"predicted_us", totals.us},
        {"measured_us", OrNull(totals.measured_us)}};
  }
  const Rates& rates = RatesOf(account.machine());
  json out = {{"target", target == "host" ? "cpu" : target},
              {"kernels", std::move(steps)},
              {"phases", std::move(phases)},
              {"decisions", DecisionsOf(account)},
              {"host_steps", account.totals.host},
              {"temporary_bytes", account.totals.temporary_bytes},
              {"machine", {{"name", rates.name}, {"rates", rates.source}}}};
  if (!account.why_interpreted().empty()) {
    out["interpreted"] = account.why_interpreted();
    return out;
  }
  out["fused"] = JsonOf(account.totals);
  if (account.unfused) out["unfused"] = JsonOf(*account.unfused);
  if (account.greedy) out["greedy"] = JsonOf(*account.greedy);
  AddBreakEven(account, out);
  return out;
}

}  // namespace tokamak
