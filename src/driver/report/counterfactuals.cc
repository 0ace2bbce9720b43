#include "driver/report/counterfactuals.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "cost/rates.h"
#include "driver/report/write.h"
#include "explain/rules.h"

namespace tokamak {
namespace {

// A move must save at least this fraction of the time (same value as in fusion/search.cc).
constexpr double kMinFraction = 0.02;
// Size factors beyond this limit are not reported (chosen: too far to be useful).
constexpr double kFarthest = 100;

bool MakesOneLess(std::string_view rule) {
  return rule == "fusion.vertical" || rule == "fusion.merge" || rule == "fusion.sibling" ||
         rule == "fusion.dissolve";
}

// "the region reads 70 arrays, 62 at most": 8 too many.
std::optional<int64_t> OverLimit(std::string_view because) {
  size_t end = because.find(" at most");
  if (end == std::string_view::npos) return std::nullopt;
  auto number_before = [&](size_t at) -> std::pair<int64_t, size_t> {
    while (at > 0 && (because[at - 1] < '0' || because[at - 1] > '9')) --at;
    size_t begin = at;
    while (begin > 0 && because[begin - 1] >= '0' && because[begin - 1] <= '9') --begin;
    if (begin == at || at - begin > 15) return {-1, 0};
    return {std::stoll(std::string(because.substr(begin, at - begin))), begin};
  };
  auto [most, at] = number_before(end);
  auto [is, ignored] = number_before(at);
  if (most < 0 || is <= most) return std::nullopt;
  return is - most;
}

class CounterfactualFinder {
 public:
  explicit CounterfactualFinder(const CompileReport& report) {
    const Rates& rates = RatesOf(report.machine());
    launch_ = report.machine().is_gpu() ? rates.graph_gap_us : rates.step_us;
    for (const StepReport& step : report.steps)
      for (const Instr* value : step.made) producers_[LabelOf(*value)] = &step;
    for (const StepReport& step : report.steps)
      for (const Instr* value : step.read) ++consumers_[LabelOf(*value)];
    for (const Decision& decision : report.log().all())
      if (decision.rule == "fusion.recompute" && decision.verdict == Verdict::kRejected)
        recompute_[decision.subject] = &decision;
  }

  std::string Of(const Decision& decision) const {
    if (decision.verdict == Verdict::kAccepted) return "";
    if (const FusionRuleInfo* rule = FindFusionRule(decision.rule))
      return rule->kind == RuleKind::kFactor && decision.rule.starts_with("xla.")
                 ? fmt::format("would fuse with --lift={}", rule->name.substr(4))
                 : "";
    if (decision.because.find(" constraint ") != std::string::npos ||
        decision.because.ends_with(" requires one kernel"))
      return "would be evaluated without the constraint";
    if (std::optional<int64_t> over = OverLimit(decision.because))
      return fmt::format("would fuse with {} less", *over);
    bool has_estimate = decision.before_us > 0 && decision.after_us > 0;
    if (!has_estimate || !MakesOneLess(decision.rule)) return "";
    if (std::string one = WithOneUser(decision); !one.empty()) return one;
    return WouldPayIf(decision.before_us, decision.after_us, launch_);
  }

 private:
  // If it were computed in only one of its users, it would cost one recomputation there and save
  // its own kernel.
  std::string WithOneUser(const Decision& decision) const {
    auto consumers = consumers_.find(decision.subject);
    auto producer = producers_.find(decision.subject);
    auto again = recompute_.find(decision.subject);
    if (decision.rule != "fusion.vertical" || consumers == consumers_.end() ||
        consumers->second < 2 || producer == producers_.end() ||
        producer->second->made.size() > 1 || again == recompute_.end())
      return "";
    double before = producer->second->predicted_us.value_or(0) + again->second->before_us;
    double after = again->second->after_us;
    if (again->second->before_us <= 0 || after >= (1 - kMinFraction) * before) return "";
    return fmt::format("would fuse if it had one user, not {}", consumers->second);
  }

  double launch_ = 0;
  std::map<std::string, const StepReport*> producers_;
  std::map<std::string, int64_t> consumers_;
  std::map<std::string, const Decision*> recompute_;
};

}  // namespace

// Launches cost the same at any size; everything else scales with it. At size factor s the move
// pays if (2 launch + s b) (1 - fraction) > launch + s a.
std::string WouldPayIf(double before, double after, double launch) {
  double wanted = (1 - kMinFraction) * before;
  if (after < wanted) return "";
  double fixed = (1 - kMinFraction) * 2 * launch - launch;
  double slope = (after - launch) - (1 - kMinFraction) * (before - 2 * launch);
  if (before > 2 * launch && after > launch && slope > 0) {
    double scale = fixed / slope;
    if (scale < 1 && scale * kFarthest > 1)
      return fmt::format("would fuse if its arrays were {:.2g} times smaller", 1 / scale);
  }
  return fmt::format("would fuse if that took {} us less", NumberText(after - wanted));
}

std::vector<std::string> CounterFacts(const CompileReport& report) {
  CounterfactualFinder finder(report);
  std::vector<std::string> facts;
  for (const Decision& decision : report.log().all()) facts.push_back(finder.Of(decision));
  return facts;
}

}  // namespace tokamak
