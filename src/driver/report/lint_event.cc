#include "driver/report/lint_event.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "driver/report/lint/write_lints.h"
#include "support/json_text.h"

namespace tokamak {
namespace {

// Programs whose lints were not taken yet; more are dropped (chosen: bounds the memory).
constexpr size_t kMostKeptLints = 256;

// Part of the compile time that unrequested lints may take (chosen: too little to notice).
constexpr double kLintShare = 0.02;

struct KeptLints {
  std::atomic<bool> wanted = false;
  std::mutex mutex;
  nlohmann::json list = nlohmann::json::array();
  // Microseconds of compiling and of looking for lints, and instructions that were looked at.
  double compile_us = 0, lint_us = 0, instrs = 0;
};

// What a report costs whatever its program, in instructions (measured: 60 to 100 us for programs of
// one instruction, 15 us per instruction of large ones).
constexpr size_t kInstrsOfAnyReport = 8;

// Adds the compile time of a program. Returns whether looking for its lints stays within
// kLintShare, at the rate so far.
bool CanAffordLints(KeptLints& kept, double compile_us, double instrs) {
  std::lock_guard lock(kept.mutex);
  kept.compile_us += compile_us;
  double us_per_instr = kept.instrs > 0 ? kept.lint_us / kept.instrs : 0;
  return kept.lint_us + us_per_instr * instrs <= kLintShare * kept.compile_us;
}

KeptLints& LintsOfProcess() {
  static auto* kept = new KeptLints;
  return *kept;
}

}  // namespace

LintEvents WantedLintEvents() {
  if (!LintsOfProcess().wanted) return LintEvents::kNone;
  const char* asked = std::getenv("TOKAMAK_LINT");
  std::string_view word = asked == nullptr ? "" : asked;
  if (word == "0") return LintEvents::kNone;
  return word == "1" ? LintEvents::kAll : LintEvents::kCostly;
}

void KeepLints(const std::shared_ptr<const Compilation>& compilation, const Module* before,
               double compile_us) {
  KeptLints& kept = LintsOfProcess();
  auto instrs = static_cast<double>(kInstrsOfAnyReport + compilation->module->CountInstrs());
  if (!CanAffordLints(kept, compile_us, instrs) && before == nullptr) return;
  auto begin = std::chrono::steady_clock::now();
  Lints lints;
  if (Result<CompileReport> report = ReportOf(compilation); report.ok())
    lints = LintsOf(report.value(), before, {});
  std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  std::lock_guard lock(kept.mutex);
  kept.lint_us += took.count();
  kept.instrs += instrs;
  if (lints.all.empty() || kept.list.size() >= kMostKeptLints) return;
  nlohmann::json found = AnswerOf(lints);
  found["name"] = compilation->module->name();
  kept.list.push_back(std::move(found));
}

std::string TakeLints() {
  KeptLints& kept = LintsOfProcess();
  kept.wanted = true;
  std::lock_guard lock(kept.mutex);
  return JsonText(std::exchange(kept.list, nlohmann::json::array()));
}

}  // namespace tokamak
