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
  AttrDict attrs;                  // the same, with their types
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

// Called with the attribute `id` of each call to `target` in a program, and +1 when the program was
// compiled, -1 when it is gone. Null: nobody is told.
using HoldFn = void (*)(int64_t id, int change, void* user);
void SetHostHold(const std::string& target, HoldFn fn, void* user);

// The holds of one program, for as long as this lives.
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

// When it returns, no function of the host is running and none will be called any more: calls fail
// with TK6103, holds and reports are not told.
void StopHostCalls();
// One call of a function of the host: StopHostCalls waits until it is over, by whatever end.
class HostVisit {
 public:
  HostVisit();
  ~HostVisit();
  HostVisit(const HostVisit&) = delete;
  HostVisit& operator=(const HostVisit&) = delete;
  // Whether the host may be called.
  bool is_welcome() const { return is_welcome_; }

 private:
  bool is_welcome_;
};

// For runs of the interpreter: custom calls to what is registered.
HostCalls& RegisteredHostCalls();

}  // namespace tokamak
