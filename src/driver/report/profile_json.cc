// The compile-time profile of a page: a tree of {"name", "ms", "note", "children"}. A node's time
// includes that of its children; what they leave is the rest of the stage.

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "driver/report/page_data.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

using nlohmann::json;

json NodeOf(std::string_view name, double ms, std::string note = "") {
  return {{"name", name}, {"ms", ms}, {"note", std::move(note)}, {"children", json::array()}};
}

json PassNode(const PassRun& run) {
  std::string note = fmt::format("{} to {} instructions, {} changes", run.instrs_before,
                                 run.instrs_after, run.changes);
  if (run.iteration > 0) note += fmt::format(", repetition {}", run.iteration + 1);
  json node = NodeOf(InfoOf(run.pass).name, run.ms + run.verify_ms, std::move(note));
  node["pass"] = true;
  return node;
}

void AddPasses(const std::vector<PassRun>& runs, size_t begin, size_t end, json& node) {
  for (size_t i = begin; i < std::min(end, runs.size()); ++i)
    node["children"].push_back(PassNode(runs[i]));
}

// CPU milliseconds of the thread that planned, as PlanningStats has them.
json PlanNode(const Computation& computation, const PlanningStats& stats) {
  json node = NodeOf(
      "plan " + computation.name(),
      stats.baseline_ms + stats.greedy_ms + stats.search_ms + stats.build_ms + stats.schedule_ms,
      fmt::format("{} moves, {} kernels built for their costs", stats.moves_enumerated,
                  stats.kernels_built_for_costs));
  auto add = [&](std::string_view name, double ms, std::string note = "") {
    if (ms > 0) node["children"].push_back(NodeOf(name, ms, std::move(note)));
  };
  auto costs = [](double us) { return us > 0 ? NumberText(us) + " us planned" : std::string(); };
  add("first plan by rules", stats.baseline_ms, costs(stats.baseline_us));
  add("first plan, greedy", stats.greedy_ms, costs(stats.greedy_us));
  add("search", stats.search_ms, costs(stats.chosen_us));
  add("kernels of the plan", stats.build_ms);
  add("schedules", stats.schedule_ms);
  return node;
}

json PlanningNode(const Compilation& made) {
  const CompileTimes& times = made.times;
  json planning = NodeOf("planning", times.planning_ms, "from the optimized program to steps");
  json target = NodeOf("passes of the target", times.target_passes_ms);
  AddPasses(made.pass_runs, times.target_runs, made.pass_runs.size(), target);
  planning["children"].push_back(std::move(target));
  json lowering = NodeOf("plans and steps", times.lowering_ms, "plans, order of the steps, memory");
  for (const auto& [computation, stats] : made.program.planning)
    lowering["children"].push_back(PlanNode(*computation, stats));
  planning["children"].push_back(std::move(lowering));
  return planning;
}

// What was generated and compiled for the page, kernel by kernel.
json PageNode(const CompileReport& report, const json& codes) {
  json page = NodeOf("code for this page", 0, "the kernels of the code view, one after the other");
  double all = 0;
  for (const auto& [number, entry] : codes["steps"].items()) {
    if (!entry.is_object() || !entry.contains("generate_ms")) continue;
    double generate = entry["generate_ms"].get<double>();
    double compile = entry.value("compile_ms", 0.0);
    size_t step = std::stoul(number);
    json kernel = NodeOf(report.steps[step].name, generate + compile);
    kernel["step"] = step;
    kernel["children"].push_back(NodeOf(codes["language"].get<std::string>(), generate));
    if (compile > 0)
      kernel["children"].push_back(NodeOf(codes["compiler"].get<std::string>(), compile));
    all += generate + compile;
    page["children"].push_back(std::move(kernel));
  }
  page["ms"] = all;
  return page;
}

}  // namespace

json ProfileOf(const CompileReport& report, const PageOptions& options, const json& codes) {
  const Compilation& made = *report.compilation;
  const CompileTimes& times = made.times;
  json stages = json::array();
  double all = 0;
  auto add = [&](json node) {
    all += node["ms"].get<double>();
    stages.push_back(std::move(node));
  };
  if (options.read_ms > 0) add(NodeOf("read", options.read_ms, "parsing the program's file"));
  if (!made.options.verified) add(NodeOf("verify", times.verify_ms));
  json passes = NodeOf("passes", times.passes_ms, "of all targets");
  AddPasses(made.pass_runs, 0, times.target_runs, passes);
  add(std::move(passes));
  add(NodeOf("describe", times.describe_ms, "arguments, results, operations"));
  add(PlanningNode(made));
  if (options.loading_ms > 0)
    add(NodeOf("code generation", options.loading_ms, "of the program that ran"));
  return {{"name", "compilation"},
          {"ms", all},
          {"note", ""},
          {"children", std::move(stages)},
          {"page", PageNode(report, codes)}};
}

}  // namespace tokamak
