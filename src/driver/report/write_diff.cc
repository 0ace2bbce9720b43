#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "driver/report/views.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

using nlohmann::json;

// Source lines listed per step (chosen).
constexpr size_t kDiffShownLines = 4;

std::string TextOf(const std::vector<StepDiff>& only, const std::string& name) {
  std::string text = fmt::format("only in {}:\n", name);
  if (only.empty()) text += "  nothing\n";
  for (const StepDiff& diff : only) {
    const StepReport& step = *diff.step;
    std::string often = diff.count == 1 ? "" : fmt::format(" and {} like it", diff.count - 1);
    text += fmt::format("  {:<8} {}{}  {} ops, {} moved, {:.4g} us in all\n", step.generator,
                        step.name, often, step.ops, BytesText(step.reads + step.writes), diff.us);
    if (!step.lines.empty())
      text += "             " + ShortList(step.lines, kDiffShownLines) + "\n";
  }
  return text;
}

json JsonOf(const std::vector<StepDiff>& only) {
  json list = json::array();
  for (const StepDiff& diff : only)
    list.push_back({{"name", diff.step->name},
                    {"generator", diff.step->generator},
                    {"ops", diff.step->ops},
                    {"instrs", diff.step->instrs},
                    {"lines", diff.step->lines},
                    {"reads_bytes", diff.step->reads},
                    {"writes_bytes", diff.step->writes},
                    {"hash", fmt::format("{:016x}", diff.step->hash)},
                    {"count", diff.count},
                    {"predicted_us", diff.us}});
  return list;
}

}  // namespace

std::string DiffText(const CompileReport& a, const CompileReport& b, const std::string& name_a,
                     const std::string& name_b) {
  ReportDiff diff = DiffOf(a, b);
  std::string text = TextOf(diff.only_a, name_a) + TextOf(diff.only_b, name_b);
  text += fmt::format("in both: {}\n", diff.in_both);
  for (const auto& [report, name] : {std::pair(&a, &name_a), std::pair(&b, &name_b)})
    text += fmt::format("{}: {} steps, {} moved, {:.4g} us predicted, peak {}\n", *name,
                        report->totals.steps(), BytesText(report->totals.bytes), report->totals.us,
                        BytesText(report->totals.peak_bytes));
  double more = b.totals.us - a.totals.us;
  double fraction = a.totals.us > 0 ? 100 * more / a.totals.us : 0;
  return text + fmt::format("{} is {:.4g} us {} than {} ({:+.1f} %)\n", name_b,
                            more < 0 ? -more : more, more > 0 ? "slower" : "faster", name_a,
                            fraction);
}

json DiffJson(const CompileReport& a, const CompileReport& b, const std::string& name_a,
              const std::string& name_b) {
  ReportDiff diff = DiffOf(a, b);
  return {{"a", {{"name", name_a}, {"totals", JsonOf(a.totals)}, {"only", JsonOf(diff.only_a)}}},
          {"b", {{"name", name_b}, {"totals", JsonOf(b.totals)}, {"only", JsonOf(diff.only_b)}}},
          {"in_both", diff.in_both},
          {"b_minus_a_us", b.totals.us - a.totals.us}};
}

}  // namespace tokamak
