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
// last use. Made once per run and computation.
class WalkPlan {
 public:
  enum class Pass : uint8_t {
    kCopy,         // others read the value later
    kMove,         // its last use
    kMoveElement,  // get-tuple-element: the last look at this element of a tuple
  };
  struct Step {
    const Instr* instr;
    std::vector<Pass> operands;
    bool unused = false;       // the result is dropped at once
    bool closed = false;       // depends on no parameter, device or effect: the same in every call
    bool frees_tuple = false;  // kMoveElement, and nobody looks at the tuple again
  };
  explicit WalkPlan(const Computation& computation);
  const std::vector<Step>& steps() const { return steps_; }

  int64_t calls = 0;
  // Values of closed instructions, kept once the computation has run before: a loop computes what
  // does not change in it once.
  std::unordered_map<const Instr*, Value> kept;
  int64_t kept_elements = 0;

 private:
  std::vector<Step> steps_;
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

  Result<Value> Call(const Computation& computation, std::vector<Value>&& arguments) override;
  void ReportCheck(std::optional<Error> failure) override;
  std::unique_ptr<Context> ForDevice(int64_t replica, int64_t partition, Devices* devices) override;

  // Of the outermost call: see RunOptions.
  const RunOptions* options = nullptr;

 private:
  Result<Value> Walk(WalkPlan& plan, const Computation& computation, std::vector<Value>& values);
  Status CountStep(const Instr& instr, size_t done, size_t total);
  WalkPlan& PlanOf(const Computation& computation);

  RunTally* tally_;
  std::unordered_map<const Computation*, std::unique_ptr<WalkPlan>> plans_;
  int depth_ = 0;
  int64_t steps_ = 0;
};

}  // namespace tokamak
