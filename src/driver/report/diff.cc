#include <algorithm>
#include <map>

#include "driver/report/views.h"

namespace tokamak {
namespace {

using ByHash = std::map<uint64_t, std::vector<const StepReport*>>;

ByHash StepsByHash(const CompileReport& report) {
  ByHash steps;
  for (const StepReport& step : report.steps) steps[step.hash].push_back(&step);
  return steps;
}

// Steps that `own` has more often than `other`, most expensive first.
std::vector<StepDiff> Only(const ByHash& own, const ByHash& other) {
  std::vector<StepDiff> only;
  for (const auto& [hash, steps] : own) {
    auto found = other.find(hash);
    size_t matched = found == other.end() ? 0 : std::min(steps.size(), found->second.size());
    if (matched == steps.size()) continue;
    StepDiff diff{steps[matched], static_cast<int64_t>(steps.size() - matched), 0};
    for (size_t i = matched; i < steps.size(); ++i) diff.us += steps[i]->us();
    only.push_back(diff);
  }
  std::sort(only.begin(), only.end(), [](const StepDiff& x, const StepDiff& y) {
    return x.us != y.us ? x.us > y.us : x.step->name < y.step->name;
  });
  return only;
}

}  // namespace

ReportDiff DiffOf(const CompileReport& a, const CompileReport& b) {
  ByHash in_a = StepsByHash(a), in_b = StepsByHash(b);
  ReportDiff diff;
  diff.only_a = Only(in_a, in_b);
  diff.only_b = Only(in_b, in_a);
  diff.in_both = static_cast<int64_t>(a.steps.size());
  for (const StepDiff& only : diff.only_a) diff.in_both -= only.count;
  return diff;
}

}  // namespace tokamak
