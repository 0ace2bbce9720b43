#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/effects.h"
#include "lower/lower.h"
#include "lower/memory.h"

// Implementation class of Lower(), shared by the files of this folder. It walks each computation in
// dependence order, emits steps, and records definitions, uses and copies in the MemoryPlan.

namespace tokamak {

// Blocks of a while step: condition, body, copies of carries (structure of RunStep::blocks).
inline constexpr size_t kWhileBlocks = 3;

using Leaves = std::vector<MemoryValue>;

inline int64_t BytesOfLeaf(const Shape& shape) {
  return shape.IsArray() ? shape.ByteSize() : 0;
}

class Lowerer {
 public:
  Lowerer(const Module& module, const LowerOptions& options, DecisionLog& log)
      : module_(module), options_(options), log_(log), effects_(module) {}

  // Whether kernels of the plan depend on each other cyclically.
  bool is_cyclic() const { return is_cyclic_; }

  // Uses this plan for its computation. For tests; otherwise computations are planned when first
  // reached.
  void Take(ComputationPlan plan) { plans_.emplace(plan.computation, std::move(plan)); }

  LoweredProgram Run();

 private:
  // A whole-loop kernel: one launch runs all iterations.
  struct PlannedWholeLoop {
    WholeLoopRegion region;
    PlannedKernel kernel;
    // Whether the kernel reads the initial value of a carry, or leaves some of its elements
    // unchanged.
    bool Needs(size_t carry) const;
  };

  // State of a computation that is being lowered.
  struct Frame {
    const Computation* computation;
    const ComputationPlan* plan;
    std::vector<RunStep>* steps;
    InstrMap<Leaves> leaves;
    InstrMap<bool> done, waiting;
    InstrMap<const Instr*> earlier;  // per instruction with side effects: the preceding one
    std::vector<bool> launched;
    std::vector<int> launch_group_of;  // per kernel: its horizontally fused launch, or -1
    std::unordered_map<const Instr*, PlannedWholeLoop> fused_loops;  // loops that become one kernel

    Frame(const Computation& of, const ComputationPlan& with, std::vector<RunStep>& into);
    // The kernels of the launch that contains this kernel, including itself.
    std::vector<int> LaunchOf(int kernel) const;
  };

  // ---- computations (lower.cc)
  const ComputationPlan& PlanOf(const Computation& computation);
  Leaves LowerComputation(const Computation& computation, const std::vector<Leaves>& arguments,
                          std::vector<RunStep>& steps);
  // Like Emit, for everything that the computation needs, in the order that the policies want
  // (fusion/extensions.h). May emit only a part, if kernels depend on each other cyclically.
  struct OrderedStep;
  void EmitByPriority(Frame& frame, const std::vector<Instr*>& order);
  std::vector<OrderedStep> StepsInOrder(const Frame& frame, const std::vector<Instr*>& order);
  void AskPriority(const Frame& frame, OrderedStep& step, int position, int ready);
  // Emits a value after its operands. Uses an explicit stack, because chains can be long.
  void Emit(Frame& frame, const Instr& wanted);
  // Calls need(instr) for everything that must be emitted before an instruction or kernel.
  template <typename Need>
  static void ForNeeds(const Frame& frame, const Instr& instr, Need&& need);
  template <typename Need>
  static void ForNeedsOfKernel(const Frame& frame, int kernel, Need&& need);
  // Each element of `cycle` waits for the next. Splits a horizontally fused launch that causes the
  // cycle. False if there is none.
  bool SplitHorizontal(Frame& frame, const std::vector<const Instr*>& cycle);
  void SayCyclic(const std::vector<const Instr*>& cycle);
  void EmitOne(Frame& frame, const Instr& instr, int kernel);
  void AddAlias(Frame& frame, const Instr& instr);
  const Leaves& ConstantOf(const Instr& instr);
  Leaves NewLeaves(const Shape& shape);

  // ---- steps (launches.cc, calls.cc). Before Settle, BufferSlice::offset holds the number of the
  // MemoryValue.
  static BufferSlice Unassigned(MemoryValue value) { return {-1, value}; }
  static MemoryValue ValueOf(const BufferSlice& slice) {
    return static_cast<MemoryValue>(slice.offset);
  }
  void Copy(std::vector<RunStep>& steps, MemoryValue to, MemoryValue from);
  void Launch(Frame& frame, int kernel);
  // Emits a horizontally fused launch.
  void LaunchTogether(Frame& frame, const std::vector<const PlannedKernel*>& entries);
  // Logs that a plugin's generator built the kernel, if one did.
  void LogGenerator(const PlannedKernel& planned);
  // The cost of a kernel that a plugin's hook predicts, which is logged; < 0 if none does.
  double HookedCost(const PlannedKernel& planned);
  // The launch step of a kernel whose results already have memory values.
  RunStep StepOf(Frame& frame, const PlannedKernel& planned);
  void UseArguments(const std::vector<const PlannedKernel*>& entries,
                    const std::vector<RunStep>& steps);
  // Whether `output` may overwrite `input` although other arguments are the same value (aliases):
  // all of them must permit it.
  static bool IsReadOnlyThere(const BuiltKernel& built, const std::vector<BufferSlice>& slices,
                              size_t input, size_t output);
  // Whole-loop kernels: selection and launch.
  void PlanWholeLoop(Frame& frame, const Instr& instr);
  void LaunchWholeLoop(Frame& frame, const Instr& instr, const PlannedWholeLoop& planned_loop);
  // Predicted time of all iterations if the kernels of the loop's body and condition are launched
  // separately.
  double StepsMicros(const Instr& loop, std::optional<int64_t> trip_count) const;
  void CallLibrary(Frame& frame, const Instr& dot);
  void CallRuntime(Frame& frame, const Instr& instr);
  void CallHost(Frame& frame, const Instr& instr);
  // The operands of a call or host step. One that a custom kernel updates in place is its result,
  // which starts as a copy; MemoryPlan drops the copy if both share memory. Requires the leaves of
  // the result.
  std::vector<Leaves> OperandsOf(Frame& frame, const Instr& instr);

  // ---- control flow (control_flow.cc)
  // Splits the leaves of a while's state into those of the computation's parameters.
  static std::vector<Leaves> Split(const Computation& computation, const Leaves& all);
  void LowerWhile(Frame& frame, const Instr& instr);
  // Copies the values for the next iteration into the carried buffers. A value that is itself
  // carried, and may already be overwritten, goes through a temporary.
  void CloseBody(const Leaves& carries, const Leaves& next, RunStep& loop);
  void LowerConditional(Frame& frame, const Instr& instr);

  // ---- results (buffer_slices.cc)
  void AssignResults(const Leaves& roots, const std::vector<Shape>& shapes,
                     const std::vector<MemoryValue>& parameters);
  // Replaces value numbers by buffer slices, and drops copies whose source and destination are the
  // same memory.
  void Settle(std::vector<RunStep>& steps);
  // Marks the kernel arguments that alias or may alias.
  void MarkAliases(const RunStep& step);
  bool MayOverlap(const BufferSlice& x, const BufferSlice& y) const;

  const Module& module_;
  const LowerOptions& options_;
  DecisionLog& log_;
  Effects effects_;
  MemoryPlan memory_;
  LoweredProgram program_;
  std::unordered_map<const Computation*, ComputationPlan> plans_;
  std::unordered_map<const Instr*, Leaves> constants_;
  bool is_cyclic_ = false;
  int32_t first_result_ = 1, first_constant_ = 1;
};

}  // namespace tokamak
