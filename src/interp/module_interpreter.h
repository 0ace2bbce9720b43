#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "interp/context.h"
#include "interp/interp.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Evaluates one instruction with the evaluator of its op. `operands` may be moved from. Errors are
// located at the instruction.
Result<Value> Evaluate(const Instr& instr, std::vector<Value>& operands, Context& context);

// The execution plan of one computation: its instructions in order, and for each operand whether
// this is its last use. Immutable once built, so any number of runs can share it.
class WalkPlan {
 public:
  enum class Pass : uint8_t {
    kCopy,         // the value has later uses
    kMove,         // its last use
    kMoveElement,  // get-tuple-element: the last use of this tuple element
    kNothing,      // tuple: this element is unused
  };
  struct Step {
    const Instr* instr;
    std::vector<Pass> operands;
    bool unused = false;       // the result is dropped immediately
    bool closed = false;       // depends on no parameter, device or effect: the same in every call
    bool frees_tuple = false;  // kMoveElement, and the tuple has no later use
    bool is_known = false;     // closed, and precomputed:
    Value known{};
  };
  explicit WalkPlan(const Computation& computation);
  const std::vector<Step>& steps() const { return steps_; }
  // Precomputes closed instructions within a budget of `elements` elements; returns the remaining
  // budget.
  int64_t ComputeClosed(int64_t elements, NumericMode mode);

 private:
  std::vector<Step> steps_;
};

// The plans of all computations of a module, built once for any number of concurrent runs.
class WalkPlans {
 public:
  WalkPlans(const Module& module, NumericMode mode);
  const WalkPlan* Find(const Computation& computation) const {
    auto it = plans_.find(&computation);
    return it == plans_.end() ? nullptr : it->second.get();
  }

 private:
  std::unordered_map<const Computation*, std::unique_ptr<WalkPlan>> plans_;
};

// State shared by all devices of a run, each with its own ModuleInterpreter.
struct RunTally {
  std::mutex mutex;
  int64_t checks_passed = 0;
  std::vector<Error> failures;
};

// Runs computations on one device.
class ModuleInterpreter final : public Context {
 public:
  ModuleInterpreter(NumericMode mode, RunTally* tally) : Context(mode), tally_(tally) {}
  // Out of line: for an inline destructor, g++ omits the deleting variant in files without a
  // delete, and the linker may pick such a copy.
  ~ModuleInterpreter() override;

  Result<Value> Call(const Computation& computation, std::vector<Value>&& arguments) override;
  void ReportCheck(std::optional<Error> failure) override;
  std::unique_ptr<Context> ForDevice(int64_t replica, int64_t partition, Devices* devices) override;

  // Set by the outermost call: see RunOptions.
  const RunOptions* options = nullptr;
  // Prebuilt plans. If null, or for a computation without one, plans are built here.
  const WalkPlans* shared_plans = nullptr;

 private:
  // A plan and its state in this run.
  struct PlanInRun {
    const WalkPlan* plan = nullptr;
    std::unique_ptr<WalkPlan> own;
    int64_t calls = 0;
    // Values of closed instructions, cached from the second execution of the computation on: a loop
    // computes its invariant values once.
    std::unordered_map<const Instr*, Value> kept;
    int64_t kept_elements = 0;
  };
  Result<Value> Walk(PlanInRun& run, const Computation& computation, std::vector<Value>& values);
  Status CountStep(const Instr& instr, size_t done, size_t total);
  PlanInRun& PlanOf(const Computation& computation);
  static void Keep(PlanInRun& run, const Instr& instr, const Value& value);

  RunTally* tally_;
  std::unordered_map<const Computation*, PlanInRun> plans_;
  int depth_ = 0;
  int64_t steps_ = 0;
};

}  // namespace tokamak
