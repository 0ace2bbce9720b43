#pragma once

#include <memory>
#include <vector>

#include "driver/executable.h"
#include "interp/instr_runner.h"
#include "runtime/steps.h"

namespace tokamak {

// The interpreter as the host functions of one run use it.
class InterpretedSteps final : public HostRun {
 public:
  explicit InterpretedSteps(const RunOptions& options) : options_(options) {}

  InstrRunner& runner();
  // The checks of the program: told to `checks`, or the first that failed is the error.
  Status Finish(CheckTally* checks);

 private:
  const RunOptions& options_;
  std::unique_ptr<InstrRunner> runner_;  // made when it is asked for
};

// Whether a step of the host is a call of LAPACK on the arrays as they lie.
bool IsLapackStep(const Instr& instr);
// Which results of a call somebody reads.
std::vector<bool> WantedResults(const Instr& instr);

// Host steps that interpret an instruction each, which must outlive them.
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
