#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

// The reference interpreter: slow, simple, one function per op. It defines the reference semantics
// that every pass, plan and backend is compared with.

namespace tokamak {

class HostCalls;  // host.h
class WalkPlans;

enum class NumericMode : uint8_t {
  kReference,  // numbers are rounded to their type after every op
  kOracle,     // reals stay double to the end: the result of an exact backend
};

// Receives the progress of a run.
class ProgressListener {
 public:
  // Counts instructions of the entry; called occasionally.
  virtual void OnProgress(int64_t done, int64_t total) = 0;

 protected:
  ~ProgressListener() = default;
};

struct RunOptions {
  NumericMode mode = NumericMode::kReference;
  // Treats subnormal f32, f64 and bf16 numbers (and complex parts) as 0, in arguments and after
  // every op, like XLA CPU. For comparisons with it.
  bool flush_subnormals = false;
  // Directory where interpreter.probe writes and check.expect_serialized_eq reads; "": a fresh
  // temporary directory.
  std::string probe_dir;
  // Arrays for infeed, in order.
  std::vector<Value> infeed;
  ProgressListener* progress = nullptr;  // may be null
  // The maximum number of instructions to run, loops included (TK5004 beyond); 0: unlimited. For
  // fuzzers.
  int64_t max_steps = 0;
  // When set to true, the run ends soon with TK6103; may be null.
  const std::atomic<bool>* stop = nullptr;
  // Host functions for custom calls; may be null.
  HostCalls* host_calls = nullptr;
};

// Appends the arrays of a value, depth first.
void AddLeaves(const Value& value, std::vector<Value>& leaves);

struct RunOutcome {
  std::vector<Value> results;  // of the entry, tuples flattened depth first
  int64_t checks_passed = 0;
  std::vector<Error> failures;  // one per failed check, TK6012
};

// Runs the entry of a verified module on one device (a program with several partitions runs
// unpartitioned; collectives see one device).
Result<RunOutcome> Interpret(const Module& module, std::span<const Value> arguments,
                             const RunOptions& options = {});
// A module prepared for repeated runs by any number of threads concurrently. The module must be
// verified and must outlive this.
class PreparedModule {
 public:
  explicit PreparedModule(const Module& module, NumericMode mode = NumericMode::kReference);
  ~PreparedModule();
  PreparedModule(const PreparedModule&) = delete;
  PreparedModule& operator=(const PreparedModule&) = delete;

  // Consumes the arguments, which must have the shapes of the entry's parameters. Returns the
  // results of the entry, tuples flattened depth first. A failing check is an error. `options.mode`
  // must be that of the preparation.
  Result<std::vector<Value>> Run(std::vector<Value>&& arguments, const RunOptions& options) const;

 private:
  const Module& module_;
  NumericMode mode_;
  std::unique_ptr<WalkPlans> plans_;
};

// Runs any computation of the module and returns its result without flattening.
Result<Value> InterpretComputation(const Computation& computation, std::span<const Value> arguments,
                                   NumericMode mode = NumericMode::kReference);
// Evaluates one instruction on the given operands, as constant folding does. Rejects instructions
// that need a device, a host or a side effect.
Result<Value> EvaluateInstr(const Instr& instr, std::span<const Value> operands,
                            NumericMode mode = NumericMode::kReference);

}  // namespace tokamak
