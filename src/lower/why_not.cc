// Programs that cannot be lowered.

#include <algorithm>
#include <unordered_map>

#include "lower/lower.h"
#include "support/limits.h"

namespace tokamak {
namespace {

// Maximum number of steps; loop bodies are inlined at each call. Chosen: bounds compile time.
constexpr int64_t kWhyNotMaxSteps = 200000;

// Visits every computation that is executed directly, once.
class LowerCheck {
 public:
  std::string Why(const Module& module) {
    int64_t steps = StepsOf(*module.entry(), 0);
    if (why_.empty() && steps > kWhyNotMaxSteps)
      why_ = "it would have more than " + std::to_string(kWhyNotMaxSteps) + " steps";
    return why_;
  }

 private:
  int64_t StepsOf(const Computation& computation, int depth) {
    if (depth > kMaxCallDepth) why_ = "its loops are nested too deeply";
    if (!why_.empty()) return 0;
    auto known = steps_.find(&computation);
    if (known != steps_.end()) return known->second;
    int64_t steps = 0;
    for (const Instr* instr : computation.Instrs()) {
      ++steps;
      Look(*instr);
      if (instr->op() != Op::kWhile && instr->op() != Op::kConditional) continue;
      for (const Computation* called : instr->called())
        steps = std::min(steps + StepsOf(*called, depth + 1), kWhyNotMaxSteps + 1);
    }
    steps_[&computation] = steps;
    return steps;
  }

  void Look(const Instr& instr) {
    if (!why_.empty()) return;
    for (const Shape& leaf : LeavesOf(instr.shape())) {
      bool fixed = leaf.IsStaticArray() || leaf.IsToken();
      if (!fixed) why_ = LabelOf(instr) + " is " + ToString(leaf) + ", which has no static shape";
    }
    if (instr.op() == Op::kConstant && !instr.shape().IsArray())
      why_ = LabelOf(instr) + " is a constant tuple";
  }

  std::string why_;
  std::unordered_map<const Computation*, int64_t> steps_;
};

}  // namespace

std::string WhyNotLowered(const Module& module) {
  return LowerCheck().Why(module);
}

}  // namespace tokamak
