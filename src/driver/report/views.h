#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driver/report/compile_report.h"

// Views of a compile report besides the table: single kernels, Graphviz, differences.

namespace tokamak {

// A kernel as kernel IR and as target code.
struct KernelView {
  std::string name, form;
  std::string code, language;  // "llvm" or "cuda"
};
// All kernels of this name. A horizontally fused launch is selected by the name of one of its
// kernels, or by "N", the Nth step counted from 1. Returns TK6107 with similar names if there is
// none.
Result<std::vector<KernelView>> KernelsNamed(const CompileReport& report, std::string_view name);

// Kernel IR of a kernel of the program, with notes on the instructions behind it.
std::string KernelFormOf(const CompileReport& report, size_t kernel);

// Graphviz text: a cluster per kernel, edges between them labelled with bytes.
std::string DotOf(const CompileReport& report, const std::string& title);

// A difference between the steps of two reports. Steps of equal structure are matched.
struct StepDiff {
  const StepReport* step = nullptr;  // a representative
  int64_t count = 0;                 // steps of equal structure
  double us = 0;                     // of all of them
};
struct ReportDiff {
  int64_t in_both = 0;
  std::vector<StepDiff> only_a, only_b;
};
ReportDiff DiffOf(const CompileReport& a, const CompileReport& b);

}  // namespace tokamak
