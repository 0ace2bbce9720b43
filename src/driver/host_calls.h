#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interp/host.h"
#include "support/result.h"

namespace tokamak {

// An array that a function of the host reads or fills: dense, row-major.
struct HostArrayView {
  void* data = nullptr;
  size_t bytes = 0;
  std::string type;  // as HLO names it
  Dims dims;
};

// A call of a function of the host.
struct HostCallFrame {
  std::string target, attributes;  // attributes: a JSON object
  std::string opaque;
  std::vector<HostArrayView> inputs, outputs;
  int64_t device = 0;
};

// A function of the host: gives "" or what went wrong. A plain pointer, as C has them.
using HostFn = std::string (*)(const HostCallFrame& frame, void* fn, void* user);

// The functions of this process. Any thread may add and take away at any time.
void RegisterHostCall(const std::string& target, HostFn caller, void* fn, void* user);
void UnregisterHostCall(const std::string& target);
bool IsHostCall(const std::string& target);

// For runs of the interpreter: custom calls to what is registered.
HostCalls& RegisteredHostCalls();

}  // namespace tokamak
