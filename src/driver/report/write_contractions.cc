// Text and JSON of the contractions of a compile report.
//
//   contractions, with the ways to compute each
//   dot.3  21.7 GFLOP, 50.3 MB, at best 27.2 us (compute), 12 times
//           bf16[8192,768] x bf16[768,2304] -> bf16[8192,2304]
//     chosen  33.1 us predicted, 31.9 measured, 910 TFLOP/s, 85 % of the roofline: contract
//     tile=...
//             35.0 us predicted, ...

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "driver/report/contractions.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

using nlohmann::json;

std::string LineOf(const ContractionReport& report, const ContractionCandidate& candidate) {
  constexpr double kPercent = 100;
  std::string text = fmt::format("  {:<6}  {} us predicted", candidate.is_chosen ? "chosen" : "",
                                 NumberText(candidate.predicted_us));
  if (candidate.measured_us)
    text += fmt::format(", {} measured", NumberText(*candidate.measured_us));
  if (!candidate.why_not.empty()) text += fmt::format(", not measured ({})", candidate.why_not);
  return text + fmt::format(", {} TFLOP/s, {:.0f} % of the roofline: {}\n",
                            NumberText(report.TflopsOf(candidate)),
                            kPercent * report.ShareOf(candidate), candidate.form);
}

}  // namespace

std::string TextOf(const std::vector<ContractionReport>& contractions) {
  constexpr double kGiga = 1e9;
  if (contractions.empty()) return "no contractions\n";
  std::string text = "contractions, with the ways to compute each\n";
  for (const ContractionReport& report : contractions) {
    text += fmt::format(
        "{}  {} GFLOP, {}, at best {} us ({}){}\n", report.name, NumberText(report.flops / kGiga),
        BytesText(static_cast<int64_t>(report.bytes)), NumberText(report.bound_us), report.bound_by,
        report.count == 1 ? "" : fmt::format(", {} times", report.count));
    for (const std::string& shape : report.shapes) text += "          " + shape + "\n";
    for (const ContractionCandidate& candidate : report.candidates)
      text += LineOf(report, candidate);
  }
  return text;
}

json JsonOf(const std::vector<ContractionReport>& contractions) {
  json list = json::array();
  for (const ContractionReport& report : contractions) {
    json entry = {{"name", report.name},         {"shapes", report.shapes},
                  {"count", report.count},       {"flops", report.flops},
                  {"bytes", report.bytes},       {"bound_us", report.bound_us},
                  {"bound_by", report.bound_by}, {"candidates", json::array()}};
    for (const ContractionCandidate& candidate : report.candidates) {
      json one = {{"form", candidate.form},
                  {"chosen", candidate.is_chosen},
                  {"own", candidate.is_own},
                  {"predicted_us", candidate.predicted_us},
                  {"measured_us", candidate.measured_us ? json(*candidate.measured_us) : json()},
                  {"tflops", report.TflopsOf(candidate)},
                  {"roofline_share", report.ShareOf(candidate)}};
      if (!candidate.why_not.empty()) one["not_measured"] = candidate.why_not;
      entry["candidates"].push_back(std::move(one));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace tokamak
