#include "driver/report/lint/write_lints.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "driver/report/explain.h"
#include "driver/report/lint/lint_rules.h"
#include "driver/report/lint/suppressions.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

using nlohmann::json;

constexpr size_t kShownLines = 6;  // source lines listed per entry (chosen)
constexpr const char* kSarifSchema = "https://json.schemastore.org/sarif-2.1.0.json";

const char* SeverityName(const Lint& lint) {
  return lint.severity == LintSeverity::kWarning ? "warning" : "note";
}

double ShareOf(const Lint& lint, const Lints& lints) {
  return lints.call_us > 0 ? lint.us / lints.call_us : 0;
}

json LinesOf(const Lint& lint) {
  json lines = json::array();
  for (const std::string& text : lint.lines) {
    LintPlace place = LintPlaceOf(text);
    lines.push_back({{"file", place.file}, {"line", place.line}, {"text", text}});
  }
  return lines;
}

// The fix as an object whose `kind` names the field that says what to change.
json FixOf(const Lint& lint) {
  const LintFix& fix = lint.fix;
  if (fix.kind.empty()) return nullptr;
  json out = {{"kind", fix.kind}};
  if (fix.kind == "donate_argnums") {
    out["donate_argnums"] = fix.numbers;
    out["names"] = fix.names;
  } else if (fix.kind == "scan") {
    out["scan"] = LinesOf(lint);
    out["iterations"] = fix.numbers.empty() ? json(nullptr) : json(fix.numbers[0]);
  } else {
    out[fix.kind] = fix.text;
  }
  return out;
}

json SarifRules() {
  json rules = json::array();
  for (const LintRule& rule : AllLintRules())
    rules.push_back({{"id", rule.name},
                     {"shortDescription", {{"text", rule.meaning}}},
                     {"fullDescription", {{"text", rule.why}}},
                     {"help", {{"text", TextOf(rule)}}}});
  return rules;
}

json SarifResult(const Lint& lint, const Lints& lints, const std::string& program_file) {
  json locations = json::array();
  for (const std::string& text : lint.lines) {
    LintPlace place = LintPlaceOf(text);
    locations.push_back({{"physicalLocation",
                          {{"artifactLocation", {{"uri", place.file}}},
                           {"region", {{"startLine", std::max<int64_t>(1, place.line)}}}}}});
  }
  if (locations.empty())
    locations.push_back({{"physicalLocation", {{"artifactLocation", {{"uri", program_file}}}}}});
  const LintRule* rule = FindLintRule(lint.rule);
  json properties = {{"us", lint.us}, {"share", ShareOf(lint, lints)}, {"saved_us", lint.saved_us}};
  if (!lint.fix.kind.empty()) properties["fix"] = FixOf(lint);
  return {{"ruleId", lint.rule},
          {"ruleIndex", rule - AllLintRules().data()},
          {"level", SeverityName(lint)},
          {"message", {{"text", lint.text}}},
          {"locations", std::move(locations)},
          {"properties", std::move(properties)}};
}

}  // namespace

std::string TextOf(const Lints& lints, bool notes) {
  std::string text;
  for (const Lint& lint : lints.all) {
    bool is_note = lint.severity == LintSeverity::kNote;
    if (is_note && !notes) continue;
    std::string where = lint.lines.empty() ? "the program" : ShortList(lint.lines, kShownLines);
    std::string cost = fmt::format("{} us", NumberText(lint.us));
    if (is_note)
      cost =
          lint.saved_us > 0 ? fmt::format("note: saves {} us", NumberText(lint.saved_us)) : "note";
    text += fmt::format("{}  {}  {}\n           {}\n", lint.rule, cost, where, lint.text);
  }
  return text;
}

json JsonOf(const Lints& lints) {
  json list = json::array();
  for (const Lint& lint : lints.all)
    list.push_back({{"rule", lint.rule},
                    {"severity", SeverityName(lint)},
                    {"lines", LinesOf(lint)},
                    {"us", lint.us},
                    {"share", ShareOf(lint, lints)},
                    {"saved_us", lint.saved_us},
                    {"count", lint.count},
                    {"text", lint.text},
                    {"fix", FixOf(lint)}});
  return list;
}

json AnswerOf(const Lints& lints) {
  return {{"lints", JsonOf(lints)}, {"call_us", lints.call_us}, {"suppressed", lints.suppressed}};
}

std::string LintAnswer(const Lints& lints, bool as_json) {
  if (as_json) return LineOfJson(AnswerOf(lints));
  std::string text = TextOf(lints, /*notes=*/true);
  if (lints.HasWarnings())
    text += fmt::format("{} of {} us per call\n", NumberText(lints.WarnedUs()),
                        NumberText(lints.call_us));
  else
    text += lints.all.empty() ? "no lints\n" : "no warnings\n";
  if (lints.suppressed > 0) text += fmt::format("{} suppressed by comments\n", lints.suppressed);
  return text;
}

std::string SarifOf(const std::vector<LintedProgram>& programs) {
  json results = json::array();
  for (const LintedProgram& program : programs)
    for (const Lint& lint : program.lints.all)
      results.push_back(SarifResult(lint, program.lints, program.file));
  json driver = {{"name", "tokamak"}, {"rules", SarifRules()}};
  json run = {{"tool", {{"driver", std::move(driver)}}}, {"results", std::move(results)}};
  return LineOfJson(
      {{"$schema", kSarifSchema}, {"version", "2.1.0"}, {"runs", json::array({std::move(run)})}});
}

}  // namespace tokamak
