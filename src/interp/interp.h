#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

// The reference interpreter: slow, obvious, one function per op. It is the law
// that every pass, plan and backend is compared with.

namespace tokamak {

enum class NumericMode : uint8_t {
  kLaw,     // numbers are rounded to their type after every op
  kOracle,  // reals stay double to the end: what an exact backend would give
};

struct RunOptions {
  NumericMode mode = NumericMode::kLaw;
  // Where interpreter.probe writes and check.expect_serialized_eq reads; "": a fresh temporary
  // folder.
  std::string probe_dir;
  // Arrays that infeed gives, in order.
  std::vector<Value> infeed;
  // Called with the done and total instructions of the entry now and then; may be empty.
  std::function<void(int64_t done, int64_t total)> progress;
  // Instructions that may run, loops included (TK5004 beyond); 0: any number. For fuzzers.
  int64_t max_steps = 0;
};

struct RunOutcome {
  std::vector<Value> results;  // of the entry, tuples flattened depth first
  int64_t checks_passed = 0;
  std::vector<Error> failures;  // one per failed check, TK6012
};

// Runs the entry of a verified module on one device (a program with several
// partitions runs unpartitioned; collectives see one device).
Result<RunOutcome> Interpret(const Module& module, std::span<const Value> arguments,
                             const RunOptions& options = {});
// Runs any computation of the module; its result as it is.
Result<Value> InterpretComputation(const Computation& computation, std::span<const Value> arguments,
                                   NumericMode mode = NumericMode::kLaw);
// Evaluates one instruction on given operands: constant folding is this.
// Refuses what needs a device, a host or a side effect.
Result<Value> EvaluateInstr(const Instr& instr, std::span<const Value> operands,
                            NumericMode mode = NumericMode::kLaw);

}  // namespace tokamak
