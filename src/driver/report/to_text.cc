// Prints the compile report for people: totals, then the steps by phase with their instructions and
// source lines, the machine's rates, and on request the decisions.
//
//   2 kernels, 0 host steps, 0 copies; 0 bytes of temporary memory
//                 steps  bytes moved   us predicted ...
//   fused             2 ...
//   loop     relu  3 ops, reads 1048576 bytes, writes 1048576, runs once: 4.1 us predicted (memory)
//
// Times have about three significant digits, because a prediction has no more; byte counts of
// single steps are exact. The JSON form (report/to_json.cc) has all fields.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "cost/rates.h"
#include "driver/report/counterfactuals.h"
#include "driver/report/write.h"
#include "rewrite/pipeline.h"

namespace tokamak {
namespace {

// Source lines and instructions listed per step (chosen).
constexpr size_t kTextShownLines = 6, kShownInstrs = 24;

// "1 kernel", "2 kernels".
std::string CountText(int64_t count, const std::string& one, const std::string& many = "") {
  return fmt::format("{} {}", count, count == 1 ? one : many.empty() ? one + "s" : many);
}

// "once", "100 times".
std::string OftenText(const StepReport& step) {
  if (!step.calls) return "a data-dependent number of times";
  return *step.calls == 1 ? "once" : std::to_string(*step.calls) + " times";
}

// ": 12.3 us predicted (memory), 11.8 measured".
std::string TimesText(const StepReport& step) {
  if (!step.predicted_us) return "";
  std::string text = fmt::format(": {} us predicted", NumberText(*step.predicted_us));
  if (step.estimate) text += fmt::format(" ({})", step.estimate->binding);
  if (step.measured_us) text += fmt::format(", {} measured", NumberText(*step.measured_us));
  return text;
}

// ", also backward".
std::string AlsoText(const StepReport& step) {
  std::string text;
  for (Phase phase : step.also) text += ", also " + std::string(NameOf(phase));
  return text;
}

// Registers, shared memory and other resources of its code.
std::string ResourcesText(const StepReport& step, const Machine& machine) {
  if (!step.work || step.kernels.empty()) return "";
  double registers = machine.is_gpu() ? step.work->thread_registers : step.work->registers;
  std::string text;
  if (registers > 0) text += fmt::format(", {:.0f} registers", registers);
  if (step.work->shared_bytes > 0)
    text += fmt::format(", {:.0f} bytes of shared memory", step.work->shared_bytes);
  return text;
}

}  // namespace

// Whether a decision concerns kernels and their form, or a user's rule, not the rewrites before
// fusion.
bool IsOfKernels(const Decision& decision) {
  std::optional<Pass> of = PassFromName(decision.pass);
  if (of == Pass::kApplyRegisteredRules) return true;
  if (of && InfoOf(*of).targets != kNoTarget) return true;
  constexpr std::string_view kPasses[] = {"fuse",
                                          "lower",
                                          "instruction-fusion",
                                          "fusion-merger",
                                          "multi-output-fusion",
                                          "horizontal-fusion"};
  return std::find(std::begin(kPasses), std::end(kPasses), decision.pass) != std::end(kPasses);
}

namespace {

class TextWriter {
 public:
  explicit TextWriter(const CompileReport& report) : report_(report) {}

  std::string Write(Records records) {
    if (!report_.why_interpreted().empty())
      return "the whole program is interpreted: " + report_.why_interpreted() + "\n";
    AddHeading();
    AddSteps();
    AddMachine();
    if (records != Records::kNone)
      AddDecisions(records);
    else
      AddUserRules();
    return std::move(out_);
  }

 private:
  void AddDecisions(Records records) {
    std::vector<std::string> facts = CounterFacts(report_);
    std::map<std::string_view, int> rewrites;
    for (size_t i = 0; i < facts.size(); ++i) {
      const Decision& decision = report_.log().all()[i];
      if (records == Records::kOfKernels && !IsOfKernels(decision))
        ++rewrites[decision.pass];
      else
        out_ += ToString(decision) + (facts[i].empty() ? "" : "; " + facts[i]) + "\n";
    }
    if (rewrites.empty()) return;
    out_ += "rewrites by earlier passes:";
    for (const auto& [pass, count] : rewrites) out_ += fmt::format(" {} {},", pass, count);
    out_.back() = ' ';
    out_ += "(`tokamak explain --decisions` lists them, `tokamak explain RULE` describes a rule)\n";
  }

  // Records of the user's own rules are always shown.
  void AddUserRules() {
    for (const Decision& decision : report_.log().all())
      if (PassFromName(decision.pass) == Pass::kApplyRegisteredRules)
        out_ += ToString(decision) + "\n";
  }

  void AddHeading() {
    const Totals& all = report_.totals;
    std::string calls = all.library == 0 ? "" : " " + CountText(all.library, "library call") + ",";
    out_ += fmt::format("{},{} {}, {}; {} of temporary memory\n", CountText(all.kernels, "kernel"),
                        calls, CountText(all.host, "host step"),
                        CountText(all.copies, "copy", "copies"),
                        CountText(all.temporary_bytes, "byte"));
    out_ += fmt::format("{:>19} {:>12} {:>14} {:>12} {:>12} {:>12}\n", "steps", "bytes moved",
                        "us predicted", "temporary", "peak memory", "planning ms");
    AddTotals(report_.unfused ? "fused" : "in all", all);
    if (report_.greedy) AddTotals("greedy", *report_.greedy);
    if (report_.unfused) AddTotals("unfused", *report_.unfused);
    if (report_.greedy) AddBreakEven("for greedy", *report_.greedy);
    if (report_.unfused) AddBreakEven("for unfused", *report_.unfused);
    if (all.data_decides) out_ += "steps with a data-dependent trip count are counted once\n";
  }

  void AddBreakEven(std::string_view than, const Totals& other) {
    const Totals& all = report_.totals;
    out_ +=
        BreakEvenText("planning", {all.planning_ms, all.us}, than, {other.planning_ms, other.us});
  }

  void AddTotals(std::string_view name, const Totals& totals) {
    out_ += fmt::format("{:<8} {:>10} {:>12} {:>14} {:>12} {:>12} {:>12}\n", name, totals.steps(),
                        BytesText(totals.bytes), NumberText(totals.us),
                        BytesText(totals.temporary_bytes), BytesText(totals.peak_bytes),
                        NumberText(totals.planning_ms));
  }

  // Grouped by phase if there are several.
  void AddSteps() {
    bool grouped =
        std::any_of(report_.steps.begin(), report_.steps.end(),
                    [&](const StepReport& s) { return s.phase != report_.steps[0].phase; });
    for (int i = 0; i < kPhases; ++i) {
      auto phase = static_cast<Phase>(i);
      Totals totals = TotalsOf(report_.steps, phase);
      if (grouped && totals.steps() > 0) {
        out_ += fmt::format("{}: {} steps, {} moved, {} us predicted", NameOf(phase),
                            totals.steps(), BytesText(totals.bytes), NumberText(totals.us));
        if (totals.measured_us)
          out_ += fmt::format(", {} measured", NumberText(*totals.measured_us));
        out_ += "\n";
      }
      for (const StepReport& step : report_.steps)
        if (step.phase == phase) AddStep(step);
    }
  }

  void AddStep(const StepReport& step) {
    out_ +=
        fmt::format("{:<8} {}  {} ops, reads {} bytes, writes {}{}{}, runs {}{}\n", step.generator,
                    step.name, step.ops, step.reads, step.writes, AlsoText(step),
                    ResourcesText(step, report_.machine()), OftenText(step), TimesText(step));
    if (!step.why.empty()) out_ += "           " + step.why + "\n";
    for (const StepReport& part : step.parts) {
      out_ += fmt::format("  {:<8} {}\n", part.generator, part.name);
      AddLists(part);
    }
    if (step.parts.empty()) AddLists(step);
  }

  void AddLists(const StepReport& step) {
    if (!step.schedule.empty()) out_ += "           schedule: " + step.schedule + "\n";
    if (!step.instrs.empty()) out_ += "           " + ShortList(step.instrs, kShownInstrs) + "\n";
    if (!step.lines.empty()) out_ += "           " + ShortList(step.lines, kTextShownLines) + "\n";
  }

  // The source of the cost model's rates.
  void AddMachine() {
    const Rates& rates = RatesOf(report_.machine());
    out_ += rates.is_default ? "rates: this processor was not measured; using slow defaults; "
                               "`tokamak calibrate` measures it\n"
                             : "rates: " + rates.name + " (" + rates.source + ")\n";
  }

  const CompileReport& report_;
  std::string out_;
};

}  // namespace

std::string TextOf(const CompileReport& report, Records records) {
  return TextWriter(report).Write(records);
}

std::string BytesText(int64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 999.5 && unit + 1 < std::size(kUnits)) {
    size /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", size, kUnits[unit]);
}

std::string NumberText(double number) {
  return number >= 1000 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}

std::string BreakEvenText(std::string_view doing, CallCost own, std::string_view than,
                          CallCost other) {
  double more = own.before_ms - other.before_ms, saves = other.call_us - own.call_us;
  std::string text = more > 0 ? fmt::format("{} {} ms more than {} ", doing, NumberText(more), than)
                              : fmt::format("{} takes no longer than {}, and ", doing, than);
  // Savings below a thousandth are rounding noise of the sums.
  if (saves <= 1e-3 * other.call_us) return text + "saves nothing\n";
  text += fmt::format("saves {} us per call", NumberText(saves));
  if (more <= 0) return text + ": it pays off at once\n";
  return text + fmt::format(": it pays off after {:.0f} calls\n", std::ceil(more * 1000 / saves));
}

std::string ShortList(const std::vector<std::string>& thread_registers, size_t shown) {
  std::string text;
  for (size_t i = 0; i < std::min(thread_registers.size(), shown); ++i)
    text += (text.empty() ? "" : ", ") + thread_registers[i];
  if (thread_registers.size() > shown)
    text += fmt::format(" and {} more", thread_registers.size() - shown);
  return text;
}

}  // namespace tokamak
