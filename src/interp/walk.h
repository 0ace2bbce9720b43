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

// Evaluates one instruction with the evaluator of its op. `operands` may be moved from. Errors get
// the place of the instruction.
Result<Value> Evaluate(const Instr& instr, std::vector<Value>& operands, Context& context);

// How one computation is run: its instructions in order, and which operands of each are at their
// last use. Does not change once it is made, so that any number of runs may share it.
class WalkPlan {
 public:
  enum class Pass : uint8_t {
    kCopy,         // others read the value later
    kMove,         // its last use
    kMoveElement,  // get-tuple-element: the last look at this element of a tuple
    kNothing,      // tuple: nobody looks at this element
  };
  struct Step {
    const Instr* instr;
    std::vector<Pass> operands;
    bool unused = false;       // the result is dropped at once
    bool closed = false;       // depends on no parameter, device or effect: the same in every call
    bool frees_tuple = false;  // kMoveElement, and nobody looks at the tuple again
    bool is_known = false;     // closed, and computed beforehand:
    Value known{};
  };
  explicit WalkPlan(const Computation& computation);
  const std::vector<Step>& steps() const { return steps_; }
  // Computes closed instructions beforehand, as long as `elements` last; gives what is left of
  // them.
  int64_t ComputeClosed(int64_t elements, NumericMode mode);

 private:
  std::vector<Step> steps_;
};

// The plans of all computations of a module, made once for any number of runs at a time.
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

// What all devices of a run share, each through its own Walker.
struct RunTally {
  std::mutex mutex;
  int64_t checks_passed = 0;
  std::vector<Error> failures;
};

// Runs computations on one device.
class Walker final : public Context {
 public:
  Walker(NumericMode mode, RunTally* tally) : Context(mode), tally_(tally) {}
  // Out of line: g++ leaves the deleting destructor out of an inline one where nobody deletes, and
  // the linker may pick just that copy.
  ~Walker() override;

  Result<Value> Call(const Computation& computation, std::vector<Value>&& arguments) override;
  void ReportCheck(std::optional<Error> failure) override;
  std::unique_ptr<Context> ForDevice(int64_t replica, int64_t partition, Devices* devices) override;

  // Of the outermost call: see RunOptions.
  const RunOptions* options = nullptr;
  // Plans made beforehand; null, and for computations that are not there: made here.
  const WalkPlans* shared_plans = nullptr;

 private:
  // A plan in this run.
  struct PlanInRun {
    const WalkPlan* plan = nullptr;
    std::unique_ptr<WalkPlan> own;
    int64_t calls = 0;
    // Values of closed instructions, kept once the computation has run before: a loop computes what
    // does not change in it once.
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
