#include "driver/plugins/callback.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace tokamak {
namespace {

// Wall time is longer than processor time by this factor, and at least this long: a busy machine is
// no fault of a plugin. Chosen.
constexpr int kWallFactor = 6;
constexpr std::chrono::milliseconds kLeastWallTime{15'000};

// The failure text of the call that this thread runs; null if there is none.
thread_local std::string* t_failure = nullptr;

}  // namespace

void PluginCallback::Run() {
  std::string* outer = std::exchange(t_failure, &failure_);
  try {
    Call();
  } catch (const std::exception& error) {
    failure_ = std::string("it throws an exception: ") + error.what();
  } catch (...) {
    failure_ = "it throws an exception";
  }
  t_failure = outer;
}

CallOutcome Invoke(const std::shared_ptr<PluginCallback>& call, std::chrono::milliseconds limit) {
  std::string why = RunGuarded(
      call, {.processor_time = limit, .wall_time = std::max(limit * kWallFactor, kLeastWallTime)});
  if (why.empty()) return {.why = call->failure()};
  // A signal has a name only.
  return {.why = why.starts_with("SIG") ? "it crashes with " + why : why, .is_abandoned = true};
}

void FailCallback(std::string why) {
  if (t_failure != nullptr)
    *t_failure = why.empty() ? "it fails without a message" : std::move(why);
}

}  // namespace tokamak
