#pragma once

#include <string>
#include <vector>

#include "driver/report/compile_report.h"

namespace tokamak {

// Lines of the user's program that cost more than an equivalent formulation.
struct Lint {
  std::string rule;                // "lint.unrolled-loop"
  std::vector<std::string> lines;  // of the user's program; empty for "lint.dispatch-bound"
  double us = 0;                   // per call; counted by no other lint
  std::string text;                // the problem, and what to write instead
};

struct Lints {
  std::vector<Lint> all;  // by us, largest first
  // Microseconds per call: of execution, or of the call from Python if that takes longer. The
  // microseconds of all lints add up to no more.
  double call_us = 0;
};
Lints LintsOf(const Module& module, const CompileReport& report);

}  // namespace tokamak
