#include "driver/plugins/compile_extensions.h"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include <fmt/format.h>

#include "support/check.h"

namespace tokamak {
namespace {

// Prints a warning, once for each text.
void WarnOnce(const Error& error) {
  static auto* mutex = new std::mutex;
  static auto* printed = new std::set<std::string>;
  std::lock_guard<std::mutex> lock(*mutex);
  if (!printed->insert(error.message).second) return;
  std::fputs(fmt::format("warning[{}]: {}\n", CodeText(error.code), error.message).c_str(), stderr);
}

}  // namespace

CompileExtensions::CompileExtensions(std::shared_ptr<const ExtensionSet> all, PluginMode mode,
                                     TargetKind target, const Machine& machine)
    : all_(std::move(all)), mode_(mode), target_(target), machine_(machine) {}

bool CompileExtensions::IsForTarget(uint32_t targets) const {
  return targets == TOK_ANY_TARGET || (targets & static_cast<uint32_t>(target_)) != 0;
}

bool CompileExtensions::IsUsable(const PluginItem& item) const {
  return !failed_.contains(&item) && !item.is_abandoned->load();
}

template <typename Items>
bool CompileExtensions::AnyUsable(const Items& items) const {
  return std::ranges::any_of(items, [&](const auto& item) { return IsUsable(item); });
}

bool CompileExtensions::HasFusionPolicy() const {
  return AnyUsable(all_->fusion_policies);
}
bool CompileExtensions::HasOrderPolicy() const {
  return AnyUsable(all_->order_policies);
}
bool CompileExtensions::HasCostHook() const {
  return AnyUsable(all_->cost_hooks);
}
bool CompileExtensions::HasGenerator() const {
  return AnyUsable(all_->generators);
}

Status CompileExtensions::status() const {
  if (mode_.strict && first_failure_ != nullptr) return *first_failure_;
  return Ok();
}

void CompileExtensions::LogTo(DecisionLog& log) const {
  for (Decision& decision : failures_) log.Add(std::move(decision));
  failures_.clear();
}

void CompileExtensions::Fail(const PluginItem& item, std::string_view kind, Error error,
                             bool is_abandoned) const {
  error.message = item.Describe(kind) + ": " + error.message;
  failed_.insert(&item);
  if (is_abandoned) item.is_abandoned->store(true);
  failures_.push_back({.pass = "plugin",
                       .rule = "plugin.failed",
                       .verdict = Verdict::kRejected,
                       .subject = item.name,
                       .because = error.message + "; compiled without it"});
  if (first_failure_ == nullptr) first_failure_ = std::make_unique<Error>(error);
  if (!mode_.strict) WarnOnce(error);
}

std::shared_ptr<CompileExtensions> MakeExtensions(PluginMode mode, TargetKind target,
                                                  const Machine& machine) {
  std::shared_ptr<const ExtensionSet> all = CurrentExtensions();
  if (all->empty()) return nullptr;
  return std::make_shared<CompileExtensions>(std::move(all), mode, target, machine);
}

}  // namespace tokamak
