#include "driver/compile/event_sink.h"

#include <atomic>
#include <mutex>
#include <string>

#include <nlohmann/json.hpp>

#include "driver/compile/host_calls.h"
#include "support/json_text.h"

namespace tokamak {
namespace {

std::atomic<bool> reporting{false};

struct Listener {
  std::mutex mutex;
  EventFn fn = nullptr;
  void* user = nullptr;
};

Listener& TheListener() {
  static auto* listener = new Listener;
  return *listener;
}

}  // namespace

void SetEventSink(EventFn fn, void* user) {
  std::lock_guard<std::mutex> lock(TheListener().mutex);
  TheListener().fn = fn;
  TheListener().user = user;
  reporting.store(fn != nullptr, std::memory_order_relaxed);
}

bool HasEventSink() {
  return reporting.load(std::memory_order_relaxed);
}

void EmitEvent(const nlohmann::json& event) {
  EventFn fn = nullptr;
  void* user = nullptr;
  {
    std::lock_guard<std::mutex> lock(TheListener().mutex);
    fn = TheListener().fn;
    user = TheListener().user;
  }
  std::string text = JsonText(event);
  HostVisit visit;
  if (fn != nullptr && visit.is_welcome()) fn(text.c_str(), user);
}

}  // namespace tokamak
