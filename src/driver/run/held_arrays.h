#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "driver/run/executable.h"
#include "interp/value.h"
#include "runtime/device.h"
#include "support/result.h"

namespace tokamak {

// Arguments and results of a program in host memory, in the layout that Run() expects. A result
// that aliases a donated parameter shares its memory.
class HeldArrays {
 public:
  // `leaves`: one array per parameter. Returns TK4003 if they do not match, TK5002 if memory is
  // short; `root` is the location of the latter error.
  static Result<HeldArrays> Make(const Executable& executable, std::span<const Value> leaves,
                                 const TextSpan& root);

  std::span<const void* const> inputs() const { return inputs_; }
  std::span<void* const> outputs() const { return outputs_; }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::vector<std::unique_ptr<void, Free>> memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

// The same arrays, copied to the memory of the program's device for Issue(). Results that share
// host memory with an input share device memory with it.
class DeviceArrays {
 public:
  static Result<DeviceArrays> Make(const Executable& executable,
                                   std::span<const void* const> inputs,
                                   std::span<void* const> outputs);

  std::span<const void* const> inputs() const { return inputs_; }
  std::span<void* const> outputs() const { return outputs_; }

 private:
  std::vector<DeviceMemory> memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace tokamak
