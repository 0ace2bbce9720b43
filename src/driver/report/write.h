#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "driver/report/compile_report.h"

// Text and JSON writers of compile reports.

namespace tokamak {

// Which decision records the text has. kOfKernels: rewrites before fusion are only counted.
enum class Records { kNone, kOfKernels, kAll };
// Whether a decision concerns kernels and their form, not the rewrites before fusion.
bool IsOfKernels(const Decision& decision);
// Text for people: totals, fused against unfused; a row per step, grouped by phase; the decisions,
// if requested.
std::string TextOf(const CompileReport& report, Records records);

// The whole report as JSON.
nlohmann::json JsonOf(const CompileReport& report, const std::string& target);
nlohmann::json JsonOf(const Totals& totals);

// The common and differing steps of two plans; `name_a`, `name_b` are their names in the text.
std::string DiffText(const CompileReport& a, const CompileReport& b, const std::string& name_a,
                     const std::string& name_b);
nlohmann::json DiffJson(const CompileReport& a, const CompileReport& b, const std::string& name_a,
                        const std::string& name_b);

// "1.5 MB": bytes with three significant digits.
std::string BytesText(int64_t bytes);
// "0.213", "15010000": at least three significant digits, no exponents for large numbers.
std::string NumberText(double number);
// The cost of one way to run a program: milliseconds before the first call, microseconds per call.
struct CallCost {
  double before_ms = 0, call_us = 0;
};
// "planning 38 ms more than for greedy saves 0.21 us a call: pays after 181 calls"; `doing`:
// "planning", `than`: "for greedy".
std::string BreakEvenText(std::string_view doing, CallCost own, std::string_view than,
                          CallCost other);
// "a, b, c and 4 more".
std::string ShortList(const std::vector<std::string>& words, size_t shown);

}  // namespace tokamak
