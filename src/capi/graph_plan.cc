#include "capi/graph_plan.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "driver/report/counterfactuals.h"
#include "driver/report/page_data.h"
#include "driver/report/stored_values.h"
#include "driver/report/write.h"
#include "explain/decision.h"
#include "explain/planner_rules.h"
#include "ir/clone.h"

namespace tokamak {
namespace {

using nlohmann::json;

// The mark that holds an instruction's number.
constexpr std::string_view kGraphMark = "tokamak.graph=";
// Decisions listed in a text (chosen: half a screen); the JSON has all of them.
constexpr size_t kShownDecisions = 20;
// A label that more steps have belongs to a value that they recompute; its decisions are about none
// of their pairs (chosen: the number of pairs stays linear).
constexpr size_t kPairedSteps = 8;

void MarkInstrs(const GraphProgram& program, Module& copy) {
  OriginTable& table = copy.origins();
  for (size_t c = 0; c < copy.computations().size(); ++c) {
    std::vector<Instr*> from = program.module().computations()[c]->Instrs();
    std::vector<Instr*> to = copy.computations()[c]->Instrs();
    for (size_t i = 0; i < from.size(); ++i) {
      OriginId mark = table.AddMark(kGraphMark, program.IdOf(*from[i]));
      to[i]->set_origins(table.Merge(to[i]->origins(), mark));
    }
  }
}

template <typename T>
void SortUnique(std::vector<T>& list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

bool IsRejected(const Decision& decision) {
  return decision.verdict == Verdict::kRejected;
}

}  // namespace

Result<std::unique_ptr<GraphPlan>> GraphPlan::Make(const GraphProgram& program,
                                                   const ExplainRequest& request) {
  if (program.module().entry() == nullptr)
    return MakeError(
        ErrorCode::kNoEntry,
        "plan: the module has neither a function main nor exactly one public function");
  if (!request.targets.empty())
    return MakeError(ErrorCode::kOptionValue, "plan: target: a plan has one target");
  TOK_TRY(Target target, TargetOf(request));
  std::unique_ptr<Module> marked = CloneModule(program.module());
  MarkInstrs(program, *marked);
  TOK_TRY(std::shared_ptr<const Compilation> made,
          Compile(std::move(marked), target, request.compile));
  std::unique_ptr<GraphPlan> plan(new GraphPlan);
  plan->request_ = request;
  plan->before_ = CloneModule(program.module());
  TOK_TRY(plan->report_, ReportOf(std::move(made), request.report));
  plan->facts_ = CounterFacts(plan->report_);
  plan->IndexInstrs();
  plan->IndexEdges();
  plan->IndexDecisions();
  return plan;
}

const std::vector<int64_t>& GraphPlan::SourcesOf(OriginId origins) const {
  auto [at, is_new] = sources_.try_emplace(origins);
  if (is_new) at->second = report_.module().origins().MarksOf(origins, kGraphMark);
  return at->second;
}

void GraphPlan::AddMember(const Instr& instr, size_t step) {
  std::vector<size_t>& named = named_[LabelOf(instr)];
  if (named.empty() || named.back() != step) named.push_back(step);
  const std::vector<int64_t>& sources = SourcesOf(instr.origins());
  instrs_of_[step].insert(instrs_of_[step].end(), sources.begin(), sources.end());
  // A loop that is one kernel computes its body.
  for (const Computation* callee : instr.called())
    for (const Instr* inner : callee->Instrs()) AddMember(*inner, step);
}

void GraphPlan::IndexInstrs() {
  instrs_of_.resize(report_.steps.size());
  for (size_t i = 0; i < report_.steps.size(); ++i) {
    const StepReport& step = report_.steps[i];
    for (size_t kernel : step.kernels)
      for (const Instr* instr : report_.program().sources[kernel].region.instrs)
        AddMember(*instr, i);
    if (step.kernels.empty())
      for (const Instr* instr : step.made) AddMember(*instr, i);
    SortUnique(instrs_of_[i]);
    for (int64_t number : instrs_of_[i]) steps_of_[number].push_back(i);
  }
  // A loop or branch that the host drives runs the steps of its computations.
  for (const auto& computation : report_.module().computations())
    for (const Instr* caller : computation->Callers()) {
      std::vector<size_t> inner;
      for (const Computation* callee : caller->called())
        for (const Instr* instr : callee->Instrs())
          for (int64_t number : SourcesOf(instr->origins())) {
            const std::vector<size_t>& steps = StepsOf(number);
            inner.insert(inner.end(), steps.begin(), steps.end());
          }
      for (int64_t number : SourcesOf(caller->origins())) {
        std::vector<size_t>& steps = steps_of_[number];
        if (!steps.empty()) continue;
        steps = inner;
        SortUnique(steps);
        for (size_t step : steps) instrs_of_[step].push_back(number);
      }
    }
  for (std::vector<int64_t>& instrs : instrs_of_) SortUnique(instrs);
}

void GraphPlan::IndexEdges() {
  StoredValues stored(report_);
  std::unordered_set<const Instr*> seen;
  for (size_t i = 0; i < report_.steps.size(); ++i) {
    seen.clear();
    for (const Instr* value : report_.steps[i].read) {
      const Instr* array = stored.StoredAs(value);
      std::optional<size_t> producer = stored.StepOf(array);
      if (producer && *producer != i && seen.insert(array).second)
        edges_.push_back({*producer, i, array});
    }
  }
}

void GraphPlan::IndexDecisions() {
  inside_.resize(report_.steps.size());
  size_t number = 0;
  for (const Decision& decision : report_.log().all()) {
    size_t own = number++;
    const std::vector<size_t>& subjects = StepsNamed(decision.subject);
    const std::vector<size_t>& others = StepsNamed(decision.other);
    bool is_local = subjects.size() <= kPairedSteps && others.size() <= kPairedSteps;
    for (size_t a : subjects) {
      if (others.empty() || std::ranges::binary_search(others, a)) inside_[a].push_back(own);
      if (!is_local) continue;
      for (size_t b : others)
        if (a != b) between_[{a, b}].push_back(own);
    }
  }
}

const std::vector<size_t>& GraphPlan::StepsOf(int64_t instr) const {
  static const std::vector<size_t> kNone;
  auto found = steps_of_.find(instr);
  return found == steps_of_.end() ? kNone : found->second;
}

const std::vector<size_t>& GraphPlan::StepsNamed(const std::string& label) const {
  static const std::vector<size_t> kNone;
  auto found = named_.find(label);
  return found == named_.end() ? kNone : found->second;
}

const std::vector<size_t>& GraphPlan::Between(size_t producer, size_t consumer) const {
  static const std::vector<size_t> kNone;
  auto found = between_.find({producer, consumer});
  return found == between_.end() ? kNone : found->second;
}

std::string GraphPlan::TextOfDecision(size_t number) const {
  std::string text = ToString(report_.log().all()[number]);
  return facts_[number].empty() ? text : text + "; " + facts_[number];
}

// What follows from the kinds of the steps.
std::string GraphPlan::KindReason(size_t producer, size_t consumer) const {
  for (size_t i : {producer, consumer}) {
    const StepReport& step = report_.steps[i];
    if (!step.why.empty()) return step.name + " runs on the host: " + step.why;
    if (step.generator == "copy") return "a copy of an array is a step of its own";
    if (step.library.empty()) continue;
    std::string text = step.name + " is a call of the library " + step.library;
    for (size_t number : inside_[i])
      if (!IsRejected(report_.log().all()[number]) &&
          report_.log().all()[number].rule.starts_with("library."))
        text += ": " + TextOfDecision(number);
    return text;
  }
  std::optional<int64_t> before = report_.steps[producer].calls;
  std::optional<int64_t> after = report_.steps[consumer].calls;
  if (before != after) {
    auto times = [](std::optional<int64_t> calls) {
      return calls ? fmt::format("{} times", *calls) : std::string("as often as the data decides");
    };
    return fmt::format("{} runs {}, {} runs {}", report_.steps[producer].name, times(before),
                       report_.steps[consumer].name, times(after));
  }
  return {};
}

std::string GraphPlan::Reason(size_t producer, size_t consumer, const std::string& array) const {
  const std::deque<Decision>& all = report_.log().all();
  const std::vector<size_t>& about = Between(producer, consumer);
  // The last rejection is of the plan that was chosen, or of what was tried to improve it. Those
  // that name the array say more than those about other instructions of the steps.
  for (bool names_array : {true, false})
    for (size_t i = about.size(); i-- > 0;)
      if (IsRejected(all[about[i]]) && (!names_array || all[about[i]].subject == array))
        return TextOfDecision(about[i]);
  if (std::string kind = KindReason(producer, consumer); !kind.empty()) return kind;
  return fmt::format("no plan that the planner compared was cheaper with {} and {} in one kernel",
                     report_.steps[producer].name, report_.steps[consumer].name);
}

json GraphPlan::Apart(const StepEdge& edge, bool reads) const {
  size_t other = reads ? edge.producer : edge.consumer;
  return {{"step", other},
          {"reads", reads},
          {"array", LabelOf(*edge.array)},
          {"bytes", BytesOfLeaves(edge.array->shape())},
          {"text", Reason(edge.producer, edge.consumer, LabelOf(*edge.array))},
          {"decisions", Between(edge.producer, edge.consumer)}};
}

json GraphPlan::Why(size_t step) const {
  const StepReport& own = report_.steps[step];
  json together = json::array(), apart = json::array();
  std::string text = fmt::format("{} step {}: {} {}", own.generator, own.name, own.ops,
                                 own.ops == 1 ? "op" : "ops");
  if (own.predicted_us) text += fmt::format(", {} us predicted", NumberText(*own.predicted_us));
  text += "\ntogether:\n";
  for (size_t number : inside_[step]) {
    const Decision& decision = report_.log().all()[number];
    if (IsRejected(decision) || FindPlannerRule(decision.rule) == nullptr) continue;
    if (together.size() < kShownDecisions) text += "  " + TextOfDecision(number) + "\n";
    together.push_back(number);
  }
  if (together.size() > kShownDecisions)
    text += fmt::format("  and {} more decisions\n", together.size() - kShownDecisions);
  if (together.empty())
    text += own.ops > 1 ? "  no choice: values that are free to recompute join what uses them\n"
                        : "  one operation\n";
  text += "apart:\n";
  for (const StepEdge& edge : edges_) {
    if (edge.producer != step && edge.consumer != step) continue;
    bool reads = edge.consumer == step;
    json entry = Apart(edge, reads);
    const std::string& other = report_.steps[entry["step"].get<size_t>()].name;
    if (apart.size() < kShownDecisions)
      text += fmt::format(
          "  {} {} ({}, {}): {}\n", reads ? "from" : "to", other, entry["array"].get<std::string>(),
          BytesText(entry["bytes"].get<int64_t>()), entry["text"].get<std::string>());
    apart.push_back(std::move(entry));
  }
  if (apart.size() > kShownDecisions)
    text += fmt::format("  and {} more arrays\n", apart.size() - kShownDecisions);
  if (apart.empty()) text += "  no array passes between it and another step\n";
  return {{"text", text}, {"together", std::move(together)}, {"apart", std::move(apart)}};
}

json GraphPlan::Boundary(int64_t producer, int64_t consumer) const {
  const std::vector<size_t>& from = StepsOf(producer);
  const std::vector<size_t>& to = StepsOf(consumer);
  if (from.empty() || to.empty()) return nullptr;
  std::vector<size_t> both;
  std::ranges::set_intersection(from, to, std::back_inserter(both));
  if (!both.empty()) return nullptr;
  std::pair<size_t, size_t> pair = {from.back(), to.front()};
  const StepEdge* array = nullptr;
  for (const StepEdge& edge : edges_)
    if (array == nullptr && std::ranges::binary_search(from, edge.producer) &&
        std::ranges::binary_search(to, edge.consumer))
      array = &edge;
  if (array != nullptr) pair = {array->producer, array->consumer};
  json out = {{"from", pair.first},
              {"to", pair.second},
              {"text", Reason(pair.first, pair.second,
                              array == nullptr ? std::string() : LabelOf(*array->array))},
              {"decisions", Between(pair.first, pair.second)}};
  if (array != nullptr) {
    out["array"] = LabelOf(*array->array);
    out["bytes"] = BytesOfLeaves(array->array->shape());
  }
  return out;
}

json GraphPlan::Json() const {
  json report = JsonOf(report_, report_.compilation->target.name);
  report.erase("decisions");
  std::vector<const Instr*> order;
  json graph = report_.why_interpreted().empty() ? GraphOf(report_, &order) : json::object();
  json sources = json::array();
  for (const Instr* instr : order) sources.push_back(SourcesOf(instr->origins()));
  graph["sources"] = std::move(sources);
  graph["members"] = instrs_of_;
  return {{"report", std::move(report)}, {"graph", std::move(graph)}};
}

json GraphPlan::Decisions() const {
  json list = json::array();
  for (const Decision& decision : report_.log().all()) {
    std::vector<int64_t> instrs = SourcesOf(decision.origins);
    json steps = StepsNamed(decision.subject);
    for (size_t step : StepsNamed(decision.other)) steps.push_back(step);
    list.push_back({{"pass", decision.pass},
                    {"rule", decision.rule},
                    {"verdict", NameOf(decision.verdict)},
                    {"subject", decision.subject},
                    {"other", decision.other},
                    {"before_us", decision.before_us},
                    {"after_us", decision.after_us},
                    {"because", decision.because},
                    {"counterfactual", facts_[list.size()]},
                    {"instrs", std::move(instrs)},
                    {"steps", std::move(steps)}});
  }
  return list;
}

}  // namespace tokamak
