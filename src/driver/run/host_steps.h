#pragma once

#include <memory>
#include <vector>

#include "driver/run/executable.h"
#include "interp/instr_runner.h"
#include "runtime/steps.h"

// Host steps: instructions of a compiled program that the interpreter or LAPACK runs on the host.

namespace tokamak {

// The interpreter instance that the host functions of one run share.
class InterpretedSteps final : public HostRun {
 public:
  explicit InterpretedSteps(const RunOptions& options) : options_(options) {}

  InstrRunner& runner();
  // Reports the program's checks to `checks`. If it is null, the first failed check is the error.
  Status Finish(CheckTally* checks);

 private:
  const RunOptions& options_;
  std::unique_ptr<InstrRunner> runner_;  // created on first use
};

// Host steps that interpret one instruction each. The instructions must outlive them.
class HostFunctions {
 public:
  HostFunctions() = default;
  explicit HostFunctions(const std::vector<const Instr*>& instrs);
  const std::vector<const HostFunction*>& all() const { return all_; }

 private:
  std::vector<std::unique_ptr<HostFunction>> steps_;
  std::vector<const HostFunction*> all_;
};

}  // namespace tokamak
