#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interp/host.h"
#include "support/result.h"

// Registry of the host functions (callbacks) that programs call through custom calls.

namespace tokamak {

// An array that a host function reads or fills: dense, row-major.
struct HostArrayView {
  void* data = nullptr;
  size_t bytes = 0;
  std::string type;  // HLO name of the element type
  Dims dims;
};

// The arguments of one call of a host function.
struct HostCallFrame {
  std::string target, attributes;  // attributes: a JSON object
  AttrDict attrs;                  // the attributes with their types
  std::string opaque;
  std::vector<HostArrayView> inputs, outputs;
  int64_t device = 0;
};

// Calls a host function. Returns an empty string, or an error message. A plain pointer, for C.
using HostFn = std::string (*)(const HostCallFrame& frame, void* fn, void* user);

// The registry of this process. Thread-safe.
void RegisterHostCall(const std::string& target, HostFn caller, void* fn, void* user);
void UnregisterHostCall(const std::string& target);
bool IsHostCall(const std::string& target);

// Called with the attribute `id` of each call to `target` in a program: with +1 when the program is
// compiled, with -1 when it is destroyed. May be null.
using HoldFn = void (*)(int64_t id, int change, void* user);
void SetHostHold(const std::string& target, HoldFn fn, void* user);

// Holds the callbacks of one program while this object lives.
class HostHolds {
 public:
  explicit HostHolds(const Module& module);
  ~HostHolds();
  HostHolds(const HostHolds&) = delete;
  HostHolds& operator=(const HostHolds&) = delete;

 private:
  struct Hold {
    HoldFn fn;
    void* user;
    int64_t id;
  };
  std::vector<Hold> holds_;
};

// Waits until no host function is running and prevents further calls: they fail with TK6103, and
// hold functions and event sinks are no longer called.
void StopHostCalls();
// RAII guard of one host call. StopHostCalls waits until all guards are destroyed.
class HostVisit {
 public:
  HostVisit();
  ~HostVisit();
  HostVisit(const HostVisit&) = delete;
  HostVisit& operator=(const HostVisit&) = delete;
  // Whether host functions may still be called.
  bool is_welcome() const { return is_welcome_; }

 private:
  bool is_welcome_;
};

// The interface through which interpreter runs reach registered custom calls.
HostCalls& RegisteredHostCalls();

}  // namespace tokamak
