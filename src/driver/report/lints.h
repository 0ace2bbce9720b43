#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "driver/report/compile_report.h"

namespace tokamak {

// kNote: Tokamak already removes the cost, or the line is worth knowing and costs nothing.
enum class LintSeverity { kWarning, kNote };

// A change of the user's source that a program can make. `kind` names the field that says what to
// change; docs/lint.md lists the kinds.
struct LintFix {
  std::string kind;  // "donate_argnums", "scan", "dtype" ...; empty: no fix is known
  std::vector<int64_t> numbers = {};  // donate_argnums: parameters of the program, tuples flattened
  std::vector<std::string> names = {};  // donate_argnums: their names, such as "params['w']"
  std::string text = {};                // dtype, precision: the type or precision to ask for
};

// Lines of the user's program that cost more than an equivalent formulation, or that are probably
// not what the user meant.
struct Lint {
  std::string rule;  // "lint.unrolled-loop": a row of lint_rules.def
  LintSeverity severity = LintSeverity::kWarning;
  std::vector<std::string> lines = {};  // of the user's program; empty: the program as a whole
  double us = 0;                        // warning: per call; counted by no other lint
  double saved_us = 0;                  // note: predicted time per call that Tokamak saves
  std::string text = {};                // the problem, and what to write instead
  LintFix fix = {};
  int64_t count = 1;  // equal findings of the same lines
};

struct Lints {
  std::vector<Lint> all;  // warnings before notes; by us, then saved_us, largest first
  // Microseconds per call: of execution, or of the call from Python if that takes longer. The
  // microseconds of all lints add up to no more.
  double call_us = 0;
  int64_t suppressed = 0;  // findings that comments of the source suppress

  bool HasWarnings() const;
  double WarnedUs() const;  // microseconds per call of all warnings
};

// Which findings are wanted.
struct LintSelection {
  std::vector<std::string> rules, ignore;  // full names; no `rules`: all
  bool suppressions = true;  // honour `# tokamak: ignore[lint.RULE]` in the user's source
};
// Adds the rules of a comma-separated list, "lint.float64,upcast". Returns TK6107 with the nearest
// names for an unknown one. `option` names the list in the message.
Status AddLintRules(std::vector<std::string>& to, std::string_view list, std::string_view option);

// `before`: the module as the user wrote it; null if only the compiled program is known, which
// shows fewer findings.
Lints LintsOf(const CompileReport& report, const Module* before, const LintSelection& wanted);
// The lints of a program whose results no buffer can hold, so that only the interpreter runs it.
Lints LintsOfInterpreted(const std::string& why, const LintSelection& wanted);

}  // namespace tokamak
