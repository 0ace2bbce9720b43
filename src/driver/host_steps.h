#pragma once

#include <memory>

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

// A host step that interprets one instruction, which must outlive it.
std::unique_ptr<HostFunction> MakeHostStep(const Instr& instr);

}  // namespace tokamak
