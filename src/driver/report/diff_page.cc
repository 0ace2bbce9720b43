#include "driver/report/diff_page.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <nlohmann/json.hpp>

#include "driver/report/page.h"
#include "driver/report/page_data.h"
#include "driver/report/views.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

using nlohmann::json;

// ---- equal steps

// Steps of equal structure are paired in order of execution, as DiffOf counts them.
json PairsOf(const CompileReport& a, const CompileReport& b) {
  std::map<uint64_t, std::vector<size_t>> steps_of_b;
  for (size_t i = b.steps.size(); i-- > 0;) steps_of_b[b.steps[i].hash].push_back(i);
  json pairs = json::array();
  for (size_t i = 0; i < a.steps.size(); ++i) {
    std::vector<size_t>& equal = steps_of_b[a.steps[i].hash];
    if (equal.empty()) continue;
    pairs.push_back({i, equal.back()});
    equal.pop_back();
  }
  return pairs;
}

// ---- source lines

using LineMicros = std::map<std::string, double>;

// The time of a step is divided among its lines in proportion to its instructions from each.
LineMicros MicrosOfLines(const CompileReport& report) {
  LineMicros micros;
  if (!report.why_interpreted().empty()) return micros;
  json graph = GraphOf(report);
  for (size_t i = 0; i < report.steps.size(); ++i) {
    std::map<size_t, double> instrs;  // by number of the line
    const json& step = graph["steps"][i];
    for (const json& instr : step["instrs"]) {
      const json& entry = graph["instrs"][instr.get<size_t>()];
      if (entry.contains("line")) instrs[entry["line"].get<size_t>()] += 1;
    }
    if (instrs.empty())
      for (const json& line : step["lines"]) instrs[line.get<size_t>()] = 1;
    double all = 0;
    for (const auto& [line, count] : instrs) all += count;
    for (const auto& [line, count] : instrs)
      micros[graph["lines"][line].get<std::string>()] += report.steps[i].us() * count / all;
  }
  return micros;
}

json DiffLinesOf(const CompileReport& a, const CompileReport& b) {
  std::map<std::string, std::pair<double, double>> both;
  for (const auto& [line, us] : MicrosOfLines(a)) both[line].first = us;
  for (const auto& [line, us] : MicrosOfLines(b)) both[line].second = us;
  json lines = json::array();
  for (const auto& [line, us] : both)
    lines.push_back({{"line", line}, {"a", us.first}, {"b", us.second}});
  return lines;
}

// ---- decisions

using DecisionKey = std::tuple<std::string_view, std::string_view, std::string, std::string>;
using DecisionsByKey = std::map<DecisionKey, const Decision*>;

// The last decision of each pair of instructions by each rule.
DecisionsByKey DecisionsByKeyOf(const CompileReport& report) {
  DecisionsByKey decisions;
  for (const Decision& decision : report.log().all())
    if (IsOfKernels(decision))
      decisions[{decision.pass, decision.rule, decision.subject, decision.other}] = &decision;
  return decisions;
}

bool IsSameDecision(const Decision& a, const Decision& b) {
  return a.verdict == b.verdict && a.before_us == b.before_us && a.after_us == b.after_us &&
         a.because == b.because;
}

json SideJson(const Decision* decision) {
  if (decision == nullptr) return nullptr;
  return {{"verdict", NameOf(decision->verdict)},
          {"before_us", decision->before_us},
          {"after_us", decision->after_us},
          {"because", decision->because}};
}

json OtherDecisions(const CompileReport& a, const CompileReport& b) {
  DecisionsByKey in_a = DecisionsByKeyOf(a), in_b = DecisionsByKeyOf(b);
  std::map<DecisionKey, std::pair<const Decision*, const Decision*>> both;
  for (const auto& [key, decision] : in_a) both[key].first = decision;
  for (const auto& [key, decision] : in_b) both[key].second = decision;
  json list = json::array();
  for (const auto& [key, sides] : both) {
    const auto& [of_a, of_b] = sides;
    if (of_a != nullptr && of_b != nullptr && IsSameDecision(*of_a, *of_b)) continue;
    const auto& [pass, rule, subject, other] = key;
    list.push_back({{"pass", pass},
                    {"rule", rule},
                    {"subject", subject},
                    {"other", other},
                    {"a", SideJson(of_a)},
                    {"b", SideJson(of_b)}});
  }
  return list;
}

json ReportWithoutDecisions(const CompileReport& report) {
  json data = JsonOf(report, report.compilation->target.name);
  data.erase("decisions");
  return data;
}

}  // namespace

json DiffPageData(const CompileReport& a, const CompileReport& b, const std::string& name_a,
                  const std::string& name_b) {
  json data = DiffJson(a, b, name_a, name_b);
  data["a"]["report"] = ReportWithoutDecisions(a);
  data["b"]["report"] = ReportWithoutDecisions(b);
  data["pairs"] = PairsOf(a, b);
  data["lines"] = DiffLinesOf(a, b);
  data["decisions"] = OtherDecisions(a, b);
  return data;
}

std::string DiffPage(const CompileReport& a, const CompileReport& b, const std::string& name_a,
                     const std::string& name_b) {
  return PageFrom("diff.html", name_a + " and " + name_b, DiffPageData(a, b, name_a, name_b));
}

}  // namespace tokamak
