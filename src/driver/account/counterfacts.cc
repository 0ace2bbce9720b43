#include "driver/account/counterfacts.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "cost/rates.h"
#include "driver/account/write.h"
#include "explain/rules.h"

namespace tokamak {
namespace {

// A move must save this share (fusion/search.cc).
constexpr double kLeastShare = 0.02;
// A size that is farther off says nothing to anybody.
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

class Finder {
 public:
  explicit Finder(const ProgramAccount& account) {
    const Rates& rates = RatesOf(account.machine());
    launch_ = account.machine().is_gpu() ? rates.graph_gap_us : rates.step_us;
    for (const StepAccount& step : account.steps)
      for (const Instr* value : step.made) makers_[LabelOf(*value)] = &step;
    for (const StepAccount& step : account.steps)
      for (const Instr* value : step.read) ++readers_[LabelOf(*value)];
    for (const Decision& decision : account.log().all())
      if (decision.rule == "fusion.again" && decision.verdict == Verdict::kRejected)
        again_[decision.subject] = &decision;
  }

  std::string Of(const Decision& decision) const {
    if (decision.verdict == Verdict::kTaken) return "";
    if (const FusionRuleInfo* rule = FindFusionRule(decision.rule))
      return rule->kind == RuleKind::kFactor && decision.rule.starts_with("xla.")
                 ? fmt::format("would fuse with --lift={}", rule->name.substr(4))
                 : "";
    if (decision.because.find(" pin ") != std::string::npos ||
        decision.because.ends_with(" keeps it together"))
      return "would be looked at without the pin";
    if (std::optional<int64_t> over = OverLimit(decision.because))
      return fmt::format("would fuse with {} less", *over);
    bool is_priced = decision.before_us > 0 && decision.after_us > 0;
    if (!is_priced || !MakesOneLess(decision.rule)) return "";
    if (std::string one = WithOneUser(decision); !one.empty()) return one;
    return WouldPayIf(decision.before_us, decision.after_us, launch_);
  }

 private:
  // Computed in one of its users, and nowhere else, it would cost what it costs there again, and
  // save its own kernel.
  std::string WithOneUser(const Decision& decision) const {
    auto readers = readers_.find(decision.subject);
    auto maker = makers_.find(decision.subject);
    auto again = again_.find(decision.subject);
    if (decision.rule != "fusion.vertical" || readers == readers_.end() || readers->second < 2 ||
        maker == makers_.end() || maker->second->made.size() > 1 || again == again_.end())
      return "";
    double before = maker->second->predicted_us.value_or(0) + again->second->before_us;
    double after = again->second->after_us;
    if (again->second->before_us <= 0 || after >= (1 - kLeastShare) * before) return "";
    return fmt::format("would fuse if it had one user, not {}", readers->second);
  }

  double launch_ = 0;
  std::map<std::string, const StepAccount*> makers_;
  std::map<std::string, int64_t> readers_;
  std::map<std::string, const Decision*> again_;
};

}  // namespace

// Launches cost the same at any size, all else grows with it: s times the size, the move pays when
// (2 launch + s b) (1 - share) > launch + s a.
std::string WouldPayIf(double before, double after, double launch) {
  double wanted = (1 - kLeastShare) * before;
  if (after < wanted) return "";
  double fixed = (1 - kLeastShare) * 2 * launch - launch;
  double slope = (after - launch) - (1 - kLeastShare) * (before - 2 * launch);
  if (before > 2 * launch && after > launch && slope > 0) {
    double scale = fixed / slope;
    if (scale < 1 && scale * kFarthest > 1)
      return fmt::format("would fuse if its arrays were {:.2g} times smaller", 1 / scale);
  }
  return fmt::format("would fuse if that took {} us less", NumberText(after - wanted));
}

std::vector<std::string> CounterFacts(const ProgramAccount& account) {
  Finder finder(account);
  std::vector<std::string> facts;
  for (const Decision& decision : account.log().all()) facts.push_back(finder.Of(decision));
  return facts;
}

}  // namespace tokamak
