#include "driver/report.h"

#include <atomic>
#include <mutex>
#include <string>

#include <nlohmann/json.hpp>

#include "driver/host_calls.h"

namespace tokamak {
namespace {

std::atomic<bool> reporting{false};

struct Listener {
  std::mutex mutex;
  ReportFn fn = nullptr;
  void* user = nullptr;
};

Listener& TheListener() {
  static auto* listener = new Listener;
  return *listener;
}

}  // namespace

void SetReport(ReportFn fn, void* user) {
  std::lock_guard<std::mutex> lock(TheListener().mutex);
  TheListener().fn = fn;
  TheListener().user = user;
  reporting.store(fn != nullptr, std::memory_order_relaxed);
}

bool IsReporting() {
  return reporting.load(std::memory_order_relaxed);
}

void Report(const nlohmann::json& event) {
  ReportFn fn = nullptr;
  void* user = nullptr;
  {
    std::lock_guard<std::mutex> lock(TheListener().mutex);
    fn = TheListener().fn;
    user = TheListener().user;
  }
  std::string text = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  HostVisit visit;
  if (fn != nullptr && visit.is_welcome()) fn(text.c_str(), user);
}

}  // namespace tokamak
