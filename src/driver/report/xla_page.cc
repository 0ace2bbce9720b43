#include "driver/report/xla_page.h"

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "driver/report/page.h"
#include "driver/report/write.h"
#include "explain/rules.h"
#include "support/json_text.h"

namespace tokamak {
namespace {

using nlohmann::json;

// The kernels of a dump that each step of ours does work of.
class DumpedKernelSteps {
 public:
  explicit DumpedKernelSteps(const CompileReport& ours) : ours_(ours), counts_(ours.steps.size()) {
    for (size_t i = 0; i < ours.steps.size(); ++i)
      for (const Instr* instr : InstrsOf(ours.steps[i])) AddInstr(*instr, i);
    for (const Decision& decision : ours.log().all())
      if (decision.verdict == Verdict::kRejected && IsOfKernels(decision)) AddRejection(decision);
  }

  // Instructions of a step, by kernel of the dump.
  const std::map<size_t, int64_t>& CountsOf(size_t step) const { return counts_[step]; }

  bool AreFused(size_t from, size_t to) const {
    return std::ranges::any_of(counts_, [&](const std::map<size_t, int64_t>& kernels) {
      return kernels.contains(from) && kernels.contains(to);
    });
  }

  // A rejected fusion of a step that does work of `from` with one that does work of `to`.
  const Decision* WhyNot(size_t from, size_t to) const {
    auto found = rejections_.find({from, to});
    return found == rejections_.end() ? nullptr : found->second;
  }

 private:
  std::vector<const Instr*> InstrsOf(const StepReport& step) const {
    return step.kernels.empty() ? step.made : ours_.KernelInstrsOf(step);
  }

  void AddInstr(const Instr& instr, size_t step) {
    for (size_t kernel : DumpedKernelsOf(instr)) {
      ++counts_[step][kernel];
      kernels_of_[LabelOf(instr)].insert(kernel);
    }
    // A loop that is one kernel does the work of its body.
    for (const Computation* called : instr.called())
      for (const Instr* in : called->PostOrder()) AddInstr(*in, step);
  }

  void AddRejection(const Decision& decision) {
    auto from = kernels_of_.find(decision.subject), to = kernels_of_.find(decision.other);
    if (from == kernels_of_.end() || to == kernels_of_.end()) return;
    for (size_t a : from->second)
      for (size_t b : to->second) rejections_[{a, b}] = &decision;
  }

  const CompileReport& ours_;
  std::vector<std::map<size_t, int64_t>> counts_;       // by step
  std::map<std::string, std::set<size_t>> kernels_of_;  // by instruction
  std::map<std::pair<size_t, size_t>, const Decision*> rejections_;
};

void AddOurs(const DumpedProgram& dumped, const DumpedKernelSteps& steps, json& boundaries) {
  for (size_t i = 0; i < dumped.boundaries.size(); ++i) {
    const DumpedBoundary& boundary = dumped.boundaries[i];
    json &ours = boundaries[i]["ours"], &why = boundaries[i]["why"];
    if (!boundary.consumer) continue;
    bool fused = steps.AreFused(boundary.producer, *boundary.consumer);
    ours = fused ? "fused" : "stored";
    const Decision* decision = steps.WhyNot(boundary.producer, *boundary.consumer);
    if (!fused && decision != nullptr)
      why = {{"rule", decision->rule},
             {"because", decision->because},
             {"before_us", decision->before_us},
             {"after_us", decision->after_us}};
  }
}

json CountsJson(const DumpedKernelSteps& steps, size_t step, size_t kernels) {
  json counts = json::array();
  for (auto [kernel, count] : steps.CountsOf(step))
    if (kernel < kernels) counts.push_back({kernel, count});
  return counts;
}

json XlaStepsJson(const DumpedProgram& dumped, const Result<CompileReport>& given) {
  if (!given.ok()) return given.error().message;
  const CompileReport& report = given.value();
  if (!report.why_interpreted().empty()) return report.why_interpreted();
  DumpedKernelSteps steps(report);
  json list = json::array();
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const StepReport& step = report.steps[i];
    list.push_back({{"name", step.name},
                    {"kind", step.library.empty() ? step.generator : step.library},
                    {"us", step.us()},
                    {"given", CountsJson(steps, i, dumped.kernels.size())}});
  }
  return list;
}

// A line of the dump's own text says less than a source line.
void DropDumpLines(const std::string& file, json& lines) {
  json kept = json::array();
  for (const json& line : lines)
    if (!line.get<std::string>().starts_with(file + ":")) kept.push_back(line);
  if (!kept.empty()) lines = std::move(kept);
}

}  // namespace

json JsonOf(const DumpedProgram& dumped) {
  json kernels = json::array(), boundaries = json::array();
  for (const DumpedKernel& kernel : dumped.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"computation", kernel.computation},
                       {"kind", kernel.kind},
                       {"ops", kernel.ops},
                       {"lines", kernel.lines},
                       {"reads_bytes", kernel.reads},
                       {"writes_bytes", kernel.writes},
                       {"predicted_us", OrNull(kernel.us)}});
  for (const DumpedBoundary& boundary : dumped.boundaries)
    boundaries.push_back({{"from", boundary.from},
                          {"to", boundary.to},
                          {"cause", boundary.cause},
                          {"rule", boundary.rule},
                          {"because", boundary.because},
                          {"bytes", boundary.bytes},
                          {"producer", boundary.producer},
                          {"consumer", OrNull(boundary.consumer)},
                          {"apart_us", OrNull(boundary.apart_us)},
                          {"fused_us", OrNull(boundary.fused_us)}});
  return {{"fusions", dumped.fusions},
          {"library", dumped.library},
          {"kernels", std::move(kernels)},
          {"boundaries", std::move(boundaries)}};
}

json XlaPageData(const DumpedProgram& dumped, const DumpPlans& plans) {
  const CompileReport& ours = plans.ours;
  json tokamak = JsonOf(ours, ours.compilation->target.name);
  tokamak.erase("decisions");
  DumpedKernelSteps steps(ours);
  for (size_t i = 0; i < ours.steps.size(); ++i) {
    json& step = tokamak["kernels"][i];
    step["given"] = CountsJson(steps, i, dumped.kernels.size());
    DropDumpLines(ours.module().file, step["lines"]);
  }
  json given = JsonOf(dumped);
  if (ours.why_interpreted().empty()) AddOurs(dumped, steps, given["boundaries"]);
  json rules = json::object();
  for (const DumpedBoundary& boundary : dumped.boundaries)
    if (const FusionRuleInfo* rule = FindFusionRule(boundary.rule); rule != nullptr)
      rules[boundary.rule] = rule->meaning;
  return {{"given", std::move(given)},
          {"tokamak", std::move(tokamak)},
          {"rules", std::move(rules)},
          {"xla_steps", XlaStepsJson(dumped, plans.given)}};
}

std::string XlaPage(const DumpedProgram& dumped, const DumpPlans& plans, const std::string& title) {
  return PageFrom("xla.html", title, XlaPageData(dumped, plans));
}

}  // namespace tokamak
