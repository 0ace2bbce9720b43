#include "driver/report/lint_event.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "driver/report/explain.h"

namespace tokamak {
namespace {

// Programs whose lints were not taken yet; more are dropped (chosen: bounds the memory).
constexpr size_t kMostKeptLints = 256;

struct KeptLints {
  std::atomic<bool> wanted = false;
  std::mutex mutex;
  nlohmann::json list = nlohmann::json::array();
};

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

void KeepLints(const std::shared_ptr<const Compilation>& compilation, const Module* before) {
  ExplainRequest request;
  request.lints = true;
  request.json = true;
  Result<std::string> output = Explained(compilation, request, before);
  if (!output.ok()) return;
  nlohmann::json found = nlohmann::json::parse(output.value(), nullptr, /*allow_exceptions=*/false);
  if (!found.is_object() || found["lints"].empty()) return;
  found["name"] = compilation->module->name();
  KeptLints& kept = LintsOfProcess();
  std::lock_guard lock(kept.mutex);
  if (kept.list.size() < kMostKeptLints) kept.list.push_back(std::move(found));
}

std::string TakeLints() {
  KeptLints& kept = LintsOfProcess();
  kept.wanted = true;
  std::lock_guard lock(kept.mutex);
  nlohmann::json taken = std::exchange(kept.list, nlohmann::json::array());
  return taken.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tokamak
