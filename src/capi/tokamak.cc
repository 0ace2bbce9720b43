#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <tokamak/c_api.h>

#include "driver/compile/backend.h"
#include "driver/compile/devices.h"
#include "driver/compile/event_sink.h"
#include "driver/compile/host_calls.h"
#include "driver/compile/named_options.h"
#include "driver/report/lint_event.h"
#include "driver/run/ffi_calls.h"
#include "interp/lapack_routines.h"
#include "runtime/process.h"
#include "runtime/worker.h"
#include "support/interned.h"
#include "support/version.h"

namespace tokamak {
namespace {

// A frame as the C caller sees it, with the error message that the callback sets.
struct CallInC {
  tok_host_call call{};  // first member: a pointer to it is also one to the struct
  std::string failure;
  std::vector<tok_array> arrays;
};

tok_array ArrayInC(const HostArrayView& view) {
  return {view.data, view.bytes, view.type.c_str(), static_cast<int64_t>(view.dims.size()),
          view.dims.data()};
}

std::string CallC(const HostCallFrame& frame, void* fn, void* user) {
  CallInC in_c;
  for (const HostArrayView& input : frame.inputs) in_c.arrays.push_back(ArrayInC(input));
  for (const HostArrayView& output : frame.outputs) in_c.arrays.push_back(ArrayInC(output));
  in_c.call.struct_size = sizeof(tok_host_call);
  in_c.call.target = frame.target.c_str();
  in_c.call.attributes = frame.attributes.c_str();
  in_c.call.opaque = frame.opaque.data();
  in_c.call.opaque_size = frame.opaque.size();
  in_c.call.num_inputs = frame.inputs.size();
  in_c.call.inputs = in_c.arrays.data();
  in_c.call.num_outputs = frame.outputs.size();
  in_c.call.outputs = in_c.arrays.data() + frame.inputs.size();
  in_c.call.device = frame.device;
  int code = reinterpret_cast<tok_host_fn>(fn)(&in_c.call, user);
  if (code == 0) return in_c.failure;
  return in_c.failure.empty() ? "it returned " + std::to_string(code) : in_c.failure;
}

std::string DevicesJson() {
  nlohmann::json out{{"devices", nlohmann::json::array()}};
  Result<CompileOptions> environment = OptionsOfEnvironment();
  if (!environment.ok()) {
    out["reason"] = environment.error().message;
    return out.dump();
  }
  Result<const BackendInfo*> backend = FindBackend(environment.value().backend);
  Result<Device*> device = DeviceOf(backend.value()->name);
  if (!device.ok()) {
    out["reason"] = device.error().message;
    return out.dump();
  }
  bool on_host = device.value() == nullptr;
  std::string kind = on_host ? std::string(backend.value()->name) : device.value()->info().name;
  const char* number = std::getenv("TOKAMAK_NUM_DEVICES");
  long count = number == nullptr || *number == '\0' ? 1 : std::strtol(number, nullptr, 10);
  for (long i = 0; i < std::clamp(count, 1L, 64L); ++i)
    out["devices"].push_back(
        {{"kind", kind},
         {"name", std::string(on_host ? "TokamakCpuDevice" : "TokamakCudaDevice") +
                      "(id=" + std::to_string(i) + ")"}});
  return out.dump();
}

std::atomic<tok_lapack_fn> g_lapack{nullptr};

void* FindInHost(const char* name) {
  HostVisit visit;
  tok_lapack_fn fn = g_lapack;
  return visit.is_welcome() && fn != nullptr ? fn(name) : nullptr;
}

}  // namespace
}  // namespace tokamak

const char* tok_version(void) {
  return tokamak::kVersion.data();
}

const char* tok_build_info(void) {
  static const auto* text = [] {
    nlohmann::json backends = nlohmann::json::array();
    for (const tokamak::BackendInfo& backend : tokamak::AllBackends())
      if (backend.built) backends.push_back(std::string(backend.name));
    nlohmann::json info{{"version", tok_version()},
                        {"build", tokamak::BuildId()},
                        {"backends", backends},
                        {"lapack", tokamak::HaveLapack()}};
    return new std::string(info.dump());
  }();
  return text->c_str();
}

const char* tok_devices(void) {
  return tokamak::Interned(tokamak::DevicesJson()).c_str();
}

const char* tok_options(void) {
  static const auto* text = [] {
    nlohmann::json list = nlohmann::json::array();
    for (const tokamak::NamedOption& option : tokamak::AllOptions())
      list.push_back({{"name", std::string(option.name)},
                      {"type", std::string(option.type)},
                      {"default", std::string(option.standard)},
                      {"meaning", std::string(option.meaning)}});
    return new std::string(list.dump());
  }();
  return text->c_str();
}

int tok_register_host_call(const char* target, tok_host_fn fn, void* user) {
  if (target == nullptr || *target == '\0') return 1;
  if (fn == nullptr) {
    tokamak::UnregisterHostCall(target);
  } else {
    tokamak::RegisterHostCall(target, tokamak::CallC, reinterpret_cast<void*>(fn), user);
  }
  return 0;
}

const char* tok_register_ffi_target(const char* target, void* handler) {
  if (target == nullptr || *target == '\0' || handler == nullptr)
    return "it has no name or no code";
  tokamak::Status status = tokamak::RegisterFfiTarget(target, handler);
  return status.ok() ? nullptr : tokamak::Interned(status.error().message).c_str();
}

void tok_host_call_fail(const tok_host_call* call, const char* message) {
  if (call == nullptr) return;
  auto* in_c = reinterpret_cast<tokamak::CallInC*>(const_cast<tok_host_call*>(call));
  in_c->failure = message == nullptr || *message == '\0' ? "no reason given" : message;
}

int tok_set_host_hold(const char* target, tok_hold_fn fn, void* user) {
  if (target == nullptr || *target == '\0') return 1;
  tokamak::SetHostHold(target, fn, user);
  return 0;
}

void tok_set_lapack(tok_lapack_fn fn) {
  tokamak::g_lapack = fn;
  tokamak::SetLapackFinder(fn == nullptr ? nullptr : tokamak::FindInHost);
}

void tok_stop_host_calls(void) {
  tokamak::StopHostCalls();
}

int tok_wait_idle(int64_t milliseconds) {
  return tokamak::WaitAllIdle(milliseconds) ? 1 : 0;
}

void tok_set_report(tok_report_fn fn, void* user) {
  tokamak::SetEventSink(fn, user);
}

const char* tok_take_lints(void) {
  thread_local std::string taken;
  taken = tokamak::TakeLints();
  return taken.c_str();
}
