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

// The reference interpreter: slow, obvious, one function per op. It is the law
// that every pass, plan and backend is compared with.

namespace tokamak {

class HostCalls;  // host.h
class WalkPlans;

enum class NumericMode : uint8_t {
  kLaw,     // numbers are rounded to their type after every op
  kOracle,  // reals stay double to the end: what an exact backend would give
};

// Is told how far a run is.
class ProgressListener {
 public:
  // Of the entry's instructions; called now and then.
  virtual void OnProgress(int64_t done, int64_t total) = 0;

 protected:
  ~ProgressListener() = default;
};

struct RunOptions {
  NumericMode mode = NumericMode::kLaw;
  // Take subnormal numbers of f32, f64, bf16 and their complex kinds for 0, as arguments and after
  // every op: what XLA CPU computes. For comparisons with it.
  bool flush_subnormals = false;
  // Where interpreter.probe writes and check.expect_serialized_eq reads; "": a fresh temporary
  // folder.
  std::string probe_dir;
  // Arrays that infeed gives, in order.
  std::vector<Value> infeed;
  ProgressListener* progress = nullptr;  // may be null
  // Instructions that may run, loops included (TK5004 beyond); 0: any number. For fuzzers.
  int64_t max_steps = 0;
  // Once it holds true the run ends soon, with TK6103; may be null.
  const std::atomic<bool>* stop = nullptr;
  // Functions of the host that custom calls reach; may be null.
  HostCalls* host_calls = nullptr;
};

// Adds the arrays of a value, depth first.
void AddLeaves(const Value& value, std::vector<Value>& leaves);

struct RunOutcome {
  std::vector<Value> results;  // of the entry, tuples flattened depth first
  int64_t checks_passed = 0;
  std::vector<Error> failures;  // one per failed check, TK6012
};

// Runs the entry of a verified module on one device (a program with several
// partitions runs unpartitioned; collectives see one device).
Result<RunOutcome> Interpret(const Module& module, std::span<const Value> arguments,
                             const RunOptions& options = {});
// A module made ready to be run often, by any number of threads at a time. The module is verified
// and must outlive this.
class PreparedModule {
 public:
  explicit PreparedModule(const Module& module, NumericMode mode = NumericMode::kLaw);
  ~PreparedModule();
  PreparedModule(const PreparedModule&) = delete;
  PreparedModule& operator=(const PreparedModule&) = delete;

  // The arguments have the shapes of the entry's parameters; they are given away. The results of
  // the entry, tuples flattened depth first. A check that fails is an error. `options.mode` is that
  // of the preparation.
  Result<std::vector<Value>> Run(std::vector<Value>&& arguments, const RunOptions& options) const;

 private:
  const Module& module_;
  NumericMode mode_;
  std::unique_ptr<WalkPlans> plans_;
};

// Runs any computation of the module; its result as it is.
Result<Value> InterpretComputation(const Computation& computation, std::span<const Value> arguments,
                                   NumericMode mode = NumericMode::kLaw);
// Evaluates one instruction on given operands: constant folding is this.
// Refuses what needs a device, a host or a side effect.
Result<Value> EvaluateInstr(const Instr& instr, std::span<const Value> operands,
                            NumericMode mode = NumericMode::kLaw);

}  // namespace tokamak
