#include "driver/report/lints.h"

#include <algorithm>

#include "driver/compile/written_program.h"
#include "driver/report/lint/lint_rules.h"
#include "driver/report/lint/lint_subject.h"
#include "driver/report/lint/suppressions.h"

namespace tokamak {
namespace {

using LintFamily = void (*)(LintSubject&);
// In the order of precedence: a microsecond is claimed by the first rule that explains it.
constexpr LintFamily kLintFamilies[] = {
    LintConcatenations, LintDonation,  LintLoops,         LintIndexing,       LintStoredValues,
    LintProducts,       LintFloat64,   LintUnrolledLoops, LintSmallBatches,   LintDispatch,
    LintConstants,      LintPrecision, LintRandomKeys,    LintWhereGradients,
};

bool IsWanted(const Lint& lint, const LintSelection& wanted) {
  auto has = [&](const std::vector<std::string>& rules) {
    return std::find(rules.begin(), rules.end(), lint.rule) != rules.end();
  };
  return (wanted.rules.empty() || has(wanted.rules)) && !has(wanted.ignore);
}

void Select(Lints& lints, const LintSelection& wanted, const std::string& program_file) {
  std::erase_if(lints.all, [&](const Lint& lint) { return !IsWanted(lint, wanted); });
  if (!wanted.suppressions) return;
  Suppressions suppressions(program_file);
  lints.suppressed = static_cast<int64_t>(
      std::erase_if(lints.all, [&](const Lint& lint) { return suppressions.Suppress(lint); }));
}

}  // namespace

bool Lints::HasWarnings() const {
  return std::ranges::any_of(
      all, [](const Lint& lint) { return lint.severity == LintSeverity::kWarning; });
}

double Lints::WarnedUs() const {
  double us = 0;
  for (const Lint& lint : all)
    if (lint.severity == LintSeverity::kWarning) us += lint.us;
  return us;
}

Lints LintsOf(const CompileReport& report, const Module* before, const LintSelection& wanted) {
  if (!report.why_interpreted().empty())
    return LintsOfInterpreted(report.why_interpreted(), wanted);
  WrittenProgram program;
  if (before != nullptr) program = ReadWrittenProgram(*before);
  LintSubject subject(report, program.inlined.get(), program.folded.get());
  if (!report.steps.empty())
    for (LintFamily family : kLintFamilies) family(subject);
  Lints lints = subject.Take();
  Select(lints, wanted, report.module().file);
  return lints;
}

Lints LintsOfInterpreted(const std::string& why, const LintSelection& wanted) {
  Lints lints;
  lints.all.push_back(
      {.rule = "lint.interpreted",
       .text = "the reference interpreter runs the whole program, which is slow: " + why});
  Select(lints, wanted, "");
  return lints;
}

}  // namespace tokamak
