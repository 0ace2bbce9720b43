#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "driver/account/account.h"

namespace tokamak {

enum class Records { kNone, kOfKernels, kAll };  // kOfKernels: rewrites before fusion are counted
// As a person reads it: what there is in all, fused against unfused; a row for each step, grouped
// by phase; the decisions, where they are asked for.
std::string TextOf(const ProgramAccount& account, Records records);

// The same for programs: all of it.
nlohmann::json JsonOf(const ProgramAccount& account, const std::string& target);
nlohmann::json JsonOf(const Totals& totals);

// What two plans have in common and what each has alone; `a`, `b`: what they are called.
std::string DiffText(const ProgramAccount& a, const ProgramAccount& b, const std::string& name_a,
                     const std::string& name_b);
nlohmann::json DiffJson(const ProgramAccount& a, const ProgramAccount& b, const std::string& name_a,
                        const std::string& name_b);

// "1.5 MB": bytes for people, three digits.
std::string BytesText(int64_t bytes);
// "0.213", "15010000": three digits at least, and no exponents of what is large.
std::string NumberText(double number);
// A way to run a program: milliseconds before the first call, microseconds of each.
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
