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

// What makes a program of plans; for the files of this folder.

namespace tokamak {

using Leaves = std::vector<MemoryValue>;

inline int64_t BytesOfLeaf(const Shape& shape) {
  return shape.IsArray() ? shape.ByteSize() : 0;
}

class Lowerer {
 public:
  Lowerer(const Module& module, const LowerOptions& options, DecisionLog& log)
      : module_(module), options_(options), log_(log), effects_(module) {}

  // Whether kernels of the plan need each other's results.
  bool is_cyclic() const { return is_cyclic_; }

  // Lowers the plan's computation by it (tests; else all are planned when they are met).
  void Take(ComputationPlan plan) { plans_.emplace(plan.computation, std::move(plan)); }

  LoweredProgram Run();

 private:
  // All rounds of a loop as one kernel.
  struct PlannedRounds {
    RoundsRegion region;
    PlannedKernel kernel;
    // Whether it looks at the first value of a carry, or leaves parts of it as they are.
    bool Needs(size_t carry) const;
  };

  // A computation that is being lowered.
  struct Frame {
    const Computation* computation;
    const ComputationPlan* plan;
    std::vector<RunStep>* steps;
    InstrMap<Leaves> leaves;
    InstrMap<bool> done, waiting;
    InstrMap<const Instr*> earlier;  // of what has effects: the one before
    std::vector<bool> launched;
    std::vector<int> pack_of;  // by kernel: the pack that it is launched with, or -1
    std::unordered_map<const Instr*, PlannedRounds> rounds;  // loops that are one kernel

    Frame(const Computation& of, const ComputationPlan& with, std::vector<RunStep>& into);
    // The kernels that are launched with this one, itself among them.
    std::vector<int> LaunchOf(int kernel) const;
  };

  // ---- computations (lower.cc)
  const ComputationPlan& PlanOf(const Computation& computation);
  Leaves LowerComputation(const Computation& computation, const std::vector<Leaves>& arguments,
                          std::vector<RunStep>& steps);
  // What the value needs, then the value, without recursion over long chains.
  void Emit(Frame& frame, const Instr& wanted);
  // Calls need(instr) for all that must be there before an instruction, a kernel.
  template <typename Need>
  static void ForNeeds(const Frame& frame, const Instr& instr, Need&& need);
  template <typename Need>
  static void ForNeedsOfKernel(const Frame& frame, int kernel, Need&& need);
  // Each of `cycle` waits for the next. Takes a pack apart that is to blame; false when none is.
  bool TakePackApart(Frame& frame, const std::vector<const Instr*>& cycle);
  void SayCyclic(const std::vector<const Instr*>& cycle);
  void EmitOne(Frame& frame, const Instr& instr, int kernel);
  void AddAlias(Frame& frame, const Instr& instr);
  const Leaves& ConstantOf(const Instr& instr);
  Leaves NewLeaves(const Shape& shape);

  // ---- steps (launches.cc, calls.cc). Until Settle, the offset of a place is the number of the
  // value.
  static Place Unsettled(MemoryValue value) { return {-1, value}; }
  static MemoryValue ValueOf(const Place& place) { return static_cast<MemoryValue>(place.offset); }
  void Copy(std::vector<RunStep>& steps, MemoryValue to, MemoryValue from);
  void Launch(Frame& frame, int kernel);
  // Kernels that run as one launch.
  void LaunchTogether(Frame& frame, const std::vector<const PlannedKernel*>& parts);
  // The launch of a kernel, whose results have places.
  RunStep StepOf(Frame& frame, const PlannedKernel& planned);
  void UseArguments(const std::vector<const PlannedKernel*>& parts,
                    const std::vector<RunStep>& steps);
  // Whether all arguments that are the same value as an input (an alias of it, say) may be written
  // over, too.
  static bool IsReadOnlyThere(const BuiltKernel& built, const std::vector<Place>& places,
                              size_t input, size_t output);
  // Loops as kernels: which are, and their launch.
  void PlanRounds(Frame& frame, const Instr& instr);
  void LaunchRounds(Frame& frame, const Instr& instr, const PlannedRounds& rounds);
  // What the kernels of a loop's body and condition would take in all rounds, predicted.
  double StepsMicros(const Instr& loop, std::optional<int64_t> rounds) const;
  void CallLibrary(Frame& frame, const Instr& dot);
  void CallRuntime(Frame& frame, const Instr& instr);
  void CallHost(Frame& frame, const Instr& instr);

  // ---- control flow (control_flow.cc)
  // Splits the leaves of a while's state into those of its parameters.
  static std::vector<Leaves> Split(const Computation& computation, const Leaves& all);
  void LowerWhile(Frame& frame, const Instr& instr);
  // The values for the next round go to where they are carried. One that is itself carried, and
  // perhaps overwritten by now, goes by way of another place.
  void CloseBody(const Leaves& carries, const Leaves& next, RunStep& loop);
  void LowerConditional(Frame& frame, const Instr& instr);

  // ---- results (places.cc)
  void PlaceResults(const Leaves& roots, const std::vector<Shape>& shapes,
                    const std::vector<MemoryValue>& parameters);
  // Values become places; copies of what is one memory go.
  void Settle(std::vector<RunStep>& steps);
  // Tells the kernel which of its arguments are, or may be, one memory.
  void MarkAliases(const RunStep& step);
  bool MayMeet(const Place& x, const Place& y) const;

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
