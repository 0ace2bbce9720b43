#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "interp/instr_runner.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "runtime/steps.h"
#include "support/result.h"

namespace tokamak {

// TOKAMAK_CHECK=kernels: the interpreter does again what each kernel and each library's function
// did, on the very arrays that it read, and the first that differs ends the run (TK4006). For one
// run.
//
// A number is right when it lies within the tolerance of what the interpreter has, with every op
// rounded (the law) or with one rounding at the end (the oracle). The tolerance is that of
// `run --expect` (f64: 1e-9), and besides 8 times what the result moves by when each input is moved
// by a few roundings. Where the interpreter's own opinions disagree by more than the tolerance
// nothing is judged, and infinities of sums that may overflow are not. Integers and preds must be
// equal.
class KernelChecker final : public StepWatcher {
 public:
  // All must outlive this.
  KernelChecker(const LoweredProgram& program, const Module& module,
                std::span<const HostFunction* const> functions);

  Status Before(const RunStep& step, std::span<void* const> arguments) override;
  Status After(const RunStep& step, std::span<void* const> arguments) override;

 private:
  using Values = std::unordered_map<const Instr*, Value>;
  // The instructions that the step does, and their values.
  struct Work {
    std::vector<const Instr*> instrs;
    std::vector<KernelArgument> arguments;
    std::vector<std::pair<size_t, const Instr*>> updates;
    std::string name;
    bool tf32 = false;  // products look at 11 bits of an f32
  };
  Work WorkOf(const RunStep& step) const;
  bool IsWatched(const RunStep& step) const;
  // Evaluates the instructions from `values`, which gets them all. With a `draw` what is rounded is
  // also moved by a few roundings.
  Status Evaluate(const Work& work, InstrRunner& runner, Values& values,
                  std::optional<uint64_t> draw) const;
  // TK4006 when a result is none of the interpreter's.
  Status Judge(const Work& work, std::span<void* const> arguments, const Values& law,
               const Values& oracle, std::span<const Values> moved) const;
  Error Differs(const Work& work, const Instr& instr, std::string words) const;

  const LoweredProgram& program_;
  const Module& module_;
  std::span<const HostFunction* const> functions_;
  RunOptions law_, oracle_;
  InstrRunner law_runner_, oracle_runner_;
  Values given_;  // what the step at hand reads
};

}  // namespace tokamak
