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

// Whether some product uses only 11 significand bits of its f32 operands, or has sums of f8 with as
// few.
bool MultipliesTf32(const StmtList& block);

// TOKAMAK_CHECK=kernels: after each kernel and each library call, the interpreter recomputes the
// step from the same input arrays. The first step that differs ends the run with TK4006. One
// checker serves one run.
//
// An element is correct if it is within the tolerance of either reference: the reference
// semantics, with every op rounded, or the oracle, with one rounding at the end. The tolerance is
// that of `run --expect` (f64: 1e-9) plus 8 times the change of the result when each input is
// perturbed by a few roundings. Elements on which the references themselves disagree by more than
// the tolerance are not checked, nor are infinities of sums that may overflow. Integers and preds
// must be equal.
class KernelChecker final : public StepWatcher {
 public:
  // All must outlive the checker. `library_tf32`: the library multiplies f32 with the significand
  // bits of TF32 where a dot allows it (AllowsTf32).
  KernelChecker(const LoweredProgram& program, const Module& module,
                std::span<const HostFunction* const> functions, bool library_tf32 = false);

  Status Before(const RunStep& step, std::span<void* const> arguments) override;
  Status After(const RunStep& step, std::span<void* const> arguments) override;

 private:
  using Values = std::unordered_map<const Instr*, Value>;
  // The instructions that a step computes, and its arguments.
  struct Work {
    std::vector<const Instr*> instrs;
    std::vector<KernelArgument> arguments;
    std::vector<std::pair<size_t, const Instr*>> updates;
    std::string name;
    bool tf32 = false;  // dot products use only 11 significand bits of an f32
  };
  Work WorkOf(const RunStep& step) const;
  Work HorizontalWorkOf(const RunStep& step) const;
  bool IsWatched(const RunStep& step) const;
  // Evaluates the instructions, taking inputs from `values` and adding all results to it. With a
  // `draw` (a random seed) every rounded value is also perturbed by a few roundings.
  Status Evaluate(const Work& work, InstrRunner& runner, Values& values,
                  std::optional<uint64_t> draw) const;
  // Returns TK4006 if a result matches none of the references.
  Status CompareWithReference(const Work& work, std::span<void* const> arguments,
                              const Values& reference, const Values& oracle,
                              std::span<const Values> moved) const;
  Error Differs(const Work& work, const Instr& instr, std::string words) const;

  const LoweredProgram& program_;
  const Module& module_;
  std::span<const HostFunction* const> functions_;
  bool library_tf32_;
  RunOptions reference_, oracle_;
  InstrRunner reference_runner_, oracle_runner_;
  Values inputs_;  // inputs of the current step
};

}  // namespace tokamak
