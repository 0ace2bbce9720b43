#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "driver/executable.h"
#include "interp/value.h"
#include "runtime/device.h"
#include "support/result.h"

namespace tokamak {

// Arguments and results of a program in memory of the host, as its Run() wants them. A result that
// a donated parameter aliases lies where the parameter does.
class HeldArrays {
 public:
  // `leaves`: one array a parameter. TK4003 when there are others, TK5002 when memory is short;
  // `root` is where that is said to be.
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

// The same in memory of the program's device, copied there: as its Issue() wants them. Where the
// host's memory of a result is that of an input, the device's is, too.
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
