#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "driver/report/compile_report.h"

// The contractions of a compile report (dots, convolutions, chains of dots such as attention), each
// with the kernels and library calls that could compute it: `tokamak explain --contractions`.

namespace tokamak {

// One way to compute a contraction and what is fused with it.
struct ContractionCandidate {
  // The schedule of a kernel of our own, or the steps of a plan: "1 library call, 1 kernel".
  std::string form;
  bool is_chosen = false;
  bool is_own = true;  // one kernel of our own
  double predicted_us = 0;
  std::optional<double> measured_us = {};
  std::string why_not = {};  // why it was not measured although that was requested; may be empty

  // Measured if possible.
  double us() const { return measured_us.value_or(predicted_us); }
};

struct ContractionReport {
  std::string name;  // of the step
  // Per dot or convolution: "bf16[8,16] x bf16[16,4] -> f32[8,4]".
  std::vector<std::string> shapes = {};
  int64_t count = 1;  // equal steps of the program
  double flops = 0;   // two per multiplication, of all its dots and convolutions
  double bytes = 0;   // of the arrays that it reads and writes
  // The least microseconds that the machine's rates allow, and what bounds it: "memory", "compute".
  double bound_us = 0;
  std::string bound_by = {};
  std::vector<ContractionCandidate> candidates = {};  // the chosen one first, then by time

  double TflopsOf(const ContractionCandidate& candidate) const;
  // The fraction of the roofline: bound_us over the candidate's time.
  double ShareOf(const ContractionCandidate& candidate) const;
};

// The contractions of the report's steps, those that take longest first; equal steps once. With a
// measurer, also runs each candidate alone, for about options.seconds.
Result<std::vector<ContractionReport>> ContractionsOf(const CompileReport& report,
                                                      const ReportOptions& options);

std::string TextOf(const std::vector<ContractionReport>& contractions);
nlohmann::json JsonOf(const std::vector<ContractionReport>& contractions);

}  // namespace tokamak
