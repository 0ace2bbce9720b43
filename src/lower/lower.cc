// Plans to steps. Every computation is lowered where it is called: a loop's body stands once,
// inside of its step. The order is that of the program, kernels as early as their first root.

#include "lower/lower.h"

#include <algorithm>
#include <tuple>

#include "analysis/loops.h"
#include "fusion/contraction.h"
#include "fusion/sorts.h"
#include "fusion/values.h"
#include "lower/library_calls.h"
#include "lower/memory.h"
#include "lower/poison.h"
#include "support/check.h"
#include "support/limits.h"

namespace tokamak {
namespace {

using Leaves = std::vector<MemoryValue>;

int64_t BytesOfLeaf(const Shape& shape) {
  return shape.IsArray() ? shape.ByteSize() : 0;
}

// Arrays of no elements: there is nothing to compute.
bool HasNoBytes(const Shape& shape) {
  std::vector<Shape> leaves = LeavesOf(shape);
  return !leaves.empty() && std::all_of(leaves.begin(), leaves.end(), [](const Shape& leaf) {
    return leaf.IsArray() && leaf.ElementCount() == 0;
  });
}

MatrixProduct ProductOf(const Contraction& from) {
  MatrixProduct product;
  std::tie(product.m, product.n, product.k) = std::tie(from.m, from.n, from.k);
  product.type = from.type == ElementType::kF32   ? MatrixType::kF32
                 : from.type == ElementType::kF64 ? MatrixType::kF64
                 : from.type == ElementType::kC64 ? MatrixType::kC64
                                                  : MatrixType::kC128;
  product.lhs = {from.lhs.row, from.lhs.column};
  product.rhs = {from.rhs.row, from.rhs.column};
  for (const Contraction::Batch& batch : from.batch)
    product.batch.push_back({batch.count, batch.lhs, batch.rhs});
  return product;
}

class Lowerer {
 public:
  Lowerer(const Module& module, const LowerOptions& options, DecisionLog& log)
      : module_(module), options_(options), log_(log), effects_(module) {}

  // Whether kernels of the plan need each other's results.
  bool is_cyclic() const { return is_cyclic_; }

  LoweredProgram Run() {
    const Computation& entry = *module_.entry();
    int32_t memory = 1;
    std::vector<Leaves> parameters;
    std::vector<MemoryValue> flat;
    for (const Instr* parameter : entry.parameters()) {
      Leaves leaves;
      for (const Shape& leaf : LeavesOf(parameter->shape())) {
        leaves.push_back(leaf.IsArray() ? memory_.NewFixed(BytesOfLeaf(leaf), memory) : kNoMemory);
        flat.push_back(leaves.back());
        ++memory;
      }
      parameters.push_back(std::move(leaves));
    }
    std::vector<Shape> results = LeavesOf(entry.root()->shape());
    first_result_ = memory;
    first_constant_ = memory + static_cast<int32_t>(results.size());
    Leaves roots = LowerComputation(entry, parameters, program_.steps);
    if (is_cyclic_) return std::move(program_);
    PlaceResults(roots, results, flat);
    memory_.Assign();
    std::string fault = memory_.Check();
    TOK_CHECK(fault.empty(), fault.c_str());
    Settle(program_.steps);
    if (options_.poison) PoisonFreed(program_.steps, memory_);
    program_.arena_bytes = memory_.arena_bytes();
    return std::move(program_);
  }

 private:
  // ---- computations

  struct Frame {
    const Computation* computation;
    const ComputationPlan* plan;
    std::vector<RunStep>* steps;
    InstrMap<Leaves> leaves;
    InstrMap<bool> done, waiting;
    std::vector<bool> launched;

    Frame(const Computation& of, const ComputationPlan& with, std::vector<RunStep>& into)
        : computation(&of),
          plan(&with),
          steps(&into),
          leaves(of),
          done(of, false),
          waiting(of, false),
          launched(with.kernels.size()) {}
  };

  const ComputationPlan& PlanOf(const Computation& computation) {
    auto it = plans_.find(&computation);
    if (it == plans_.end())
      it = plans_
               .emplace(&computation,
                        PlanComputation(computation, options_.machine, options_.plan, log_))
               .first;
    return it->second;
  }

  Leaves LowerComputation(const Computation& computation, const std::vector<Leaves>& arguments,
                          std::vector<RunStep>& steps) {
    Frame frame(computation, PlanOf(computation), steps);
    for (size_t i = 0; i < arguments.size(); ++i) {
      frame.leaves[computation.parameter(i)] = arguments[i];
      frame.done[computation.parameter(i)] = true;
    }
    for (const Instr* instr : computation.PostOrder()) {
      bool needed = instr == computation.root() || effects_.Of(*instr);
      if (needed && !is_cyclic_) Emit(frame, *instr);
    }
    if (is_cyclic_) return NewLeaves(computation.root()->shape());
    return frame.leaves[computation.root()];
  }

  // What the value needs, then the value, without recursion over long chains.
  void Emit(Frame& frame, const Instr& wanted) {
    std::vector<const Instr*> open = {&wanted};
    while (!open.empty()) {
      const Instr& instr = *open.back();
      if (frame.done[&instr]) {
        open.pop_back();
        continue;
      }
      size_t before = open.size();
      auto need = [&](const Instr* other) {
        if (!frame.done[other]) open.push_back(other);
      };
      int kernel = frame.plan->kernel_of[&instr];
      if (kernel >= 0) {
        const PlannedKernel& planned = frame.plan->kernels[static_cast<size_t>(kernel)];
        for (const Instr* input : planned.region.inputs) need(input);
        for (const auto& [argument, old] : planned.built.updates) need(old);
      } else {
        for (const Instr* operand : instr.operands()) need(operand);
      }
      if (instr.has_extras())
        for (const Instr* earlier : instr.extras().control_predecessors) need(earlier);
      if (open.size() > before) {
        // It has waited for all of these: they wait for it.
        if (frame.waiting[&instr]) return SayCyclic(instr);
        frame.waiting[&instr] = true;
        continue;
      }
      open.pop_back();
      EmitOne(frame, instr, kernel);
      frame.done[&instr] = true;
    }
  }

  void SayCyclic(const Instr& instr) {
    is_cyclic_ = true;
    log_.Add({.pass = "lower",
              .rule = "lower.cyclic-plan",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(instr),
              .origins = instr.origins()});
  }

  void EmitOne(Frame& frame, const Instr& instr, int kernel) {
    if (kernel >= 0) return Launch(frame, static_cast<size_t>(kernel));
    if (instr.op() == Op::kConstant) return AddConstant(frame, instr);
    if (instr.op() == Op::kWhile) return LowerWhile(frame, instr);
    if (instr.op() == Op::kConditional) return LowerConditional(frame, instr);
    if (instr.op() == Op::kAfterAll) {
      frame.leaves[&instr] = {kNoMemory};
      return;
    }
    if (IsForLibrary(instr, options_.machine)) return CallLibrary(frame, instr);
    if (IsForRuntime(instr, options_.machine)) return CallRuntime(frame, instr);
    if (IsAlias(instr)) return AddAlias(frame, instr);
    if (HasNoBytes(instr.shape()) && !effects_.Of(instr)) {
      frame.leaves[&instr] = NewLeaves(instr.shape());
      return;
    }
    CallHost(frame, instr);
  }

  void AddAlias(Frame& frame, const Instr& instr) {
    Leaves& leaves = frame.leaves[&instr];
    if (instr.op() == Op::kGetTupleElement) {
      const Shape& tuple = instr.operand(0)->shape();
      auto index = static_cast<size_t>(instr.attrs<TupleIndexAttrs>().index);
      size_t first = 0;
      for (size_t i = 0; i < index; ++i) first += LeavesOf(tuple.elements()[i]).size();
      const Leaves& all = frame.leaves[instr.operand(0)];
      size_t count = LeavesOf(instr.shape()).size();
      leaves.assign(all.begin() + static_cast<int64_t>(first),
                    all.begin() + static_cast<int64_t>(first + count));
      return;
    }
    bool several = instr.op() == Op::kTuple || instr.op() == Op::kOptimizationBarrier;
    for (const Instr* operand : instr.operands()) {
      const Leaves& own = frame.leaves[operand];
      leaves.insert(leaves.end(), own.begin(), own.end());
      if (!several) break;
    }
  }

  void AddConstant(Frame& frame, const Instr& instr) {
    auto [it, is_new] = constants_.try_emplace(&instr);
    if (is_new) {
      for (const Shape& leaf : LeavesOf(instr.shape())) {
        TOK_CHECK(leaf.IsArray() && instr.shape().IsArray(), "a constant that is no array");
        int32_t memory = first_constant_ + static_cast<int32_t>(program_.constants.size());
        it->second.push_back(memory_.NewFixed(BytesOfLeaf(leaf), memory));
        program_.constants.push_back(&instr);
      }
    }
    frame.leaves[&instr] = it->second;
  }

  Leaves NewLeaves(const Shape& shape) {
    Leaves leaves;
    for (const Shape& leaf : LeavesOf(shape))
      leaves.push_back(leaf.IsArray() ? memory_.New(BytesOfLeaf(leaf)) : kNoMemory);
    return leaves;
  }

  // ---- steps. Until Settle, the offset of a place is the number of the value.

  static Place Unsettled(MemoryValue value) { return {-1, value}; }

  void Copy(std::vector<RunStep>& steps, MemoryValue to, MemoryValue from) {
    if (to == kNoMemory || memory_.bytes(to) == 0) return;
    memory_.Tick();
    memory_.Use(from);
    memory_.Define(to);
    memory_.AddCopy(to, from);
    steps.push_back({.kind = StepKind::kCopy,
                     .places = {Unsettled(to), Unsettled(from)},
                     .bytes = memory_.bytes(to),
                     .at = memory_.now()});
  }

  void Launch(Frame& frame, size_t number) {
    if (frame.launched[number]) return;
    frame.launched[number] = true;
    LaunchPlanned(frame, frame.plan->kernels[number]);
  }

  void LaunchPlanned(Frame& frame, const PlannedKernel& planned) {
    const BuiltKernel& built = planned.built;
    for (const Instr* root : planned.region.roots) {
      frame.leaves[root] = NewLeaves(root->shape());
      frame.done[root] = true;
    }
    // What an update leaves alone is copied, unless it is there already (MemoryPlan).
    std::unordered_map<const Instr*, MemoryValue> copied;
    for (const auto& [argument, old] : built.updates) {
      MemoryValue to = frame.leaves[built.arguments[argument].instr][0];
      Copy(*frame.steps, to, frame.leaves[old][0]);
      copied.emplace(old, to);
    }
    memory_.Tick();
    RunStep step{.kind = StepKind::kLaunch, .at = memory_.now()};
    for (const KernelArgument& argument : built.arguments) {
      MemoryValue value = frame.leaves[argument.instr][argument.part];
      auto it = copied.find(argument.instr);
      if (!argument.is_output && it != copied.end()) value = it->second;
      step.places.push_back(Unsettled(value));
      if (!argument.is_output) memory_.Use(value);
    }
    for (size_t i = 0; i < built.arguments.size(); ++i)
      if (built.arguments[i].is_output)
        memory_.Define(static_cast<MemoryValue>(step.places[i].offset));
    for (auto [input, output] : built.in_place)
      if (IsReadOnlyThere(built, step.places, input, output))
        memory_.MayShare(static_cast<MemoryValue>(step.places[output].offset),
                         static_cast<MemoryValue>(step.places[input].offset));
    step.target = program_.kernels.size();
    step.grid = built.grid;
    step.grain = step.grid;  // until somebody knows what an iteration takes
    program_.kernels.push_back(built.kernel);
    program_.sources.push_back({planned.region, planned.kind, built.arguments, built.updates});
    ++program_.launches;
    frame.steps->push_back(std::move(step));
  }

  // Whether all arguments that are the same value as an input (an alias of it, say) may be written
  // over, too.
  static bool IsReadOnlyThere(const BuiltKernel& built, const std::vector<Place>& places,
                              size_t input, size_t output) {
    for (size_t i = 0; i < built.arguments.size(); ++i) {
      if (built.arguments[i].is_output || places[i].offset != places[input].offset) continue;
      if (std::find(built.in_place.begin(), built.in_place.end(), std::pair(i, output)) ==
          built.in_place.end())
        return false;
    }
    return true;
  }

  void CallLibrary(Frame& frame, const Instr& dot) {
    memory_.Tick();
    RunStep step{
        .kind = StepKind::kLibrary, .target = program_.products.size(), .at = memory_.now()};
    for (const Instr* operand : dot.operands()) {
      MemoryValue value = frame.leaves[operand][0];
      memory_.Use(value);
      step.places.push_back(Unsettled(value));
    }
    frame.leaves[&dot] = NewLeaves(dot.shape());
    memory_.Define(frame.leaves[&dot][0]);
    step.places.push_back(Unsettled(frame.leaves[&dot][0]));
    MatrixProduct product = ProductOf(*ContractionOf(dot));
    ProductBlocks blocks = BlocksOf(product);
    log_.Add({.pass = "lower",
              .rule = "library.product",
              .subject = LabelOf(dot),
              .origins = dot.origins(),
              .because = ToString(product) + " in " + std::to_string(blocks.count) + " blocks"});
    program_.products.push_back({std::move(product), blocks});
    program_.product_instrs.push_back(&dot);
    frame.steps->push_back(std::move(step));
  }

  void CallRuntime(Frame& frame, const Instr& instr) {
    std::shared_ptr<const LibraryCall> call = LibraryCallOf(instr);
    memory_.Tick();
    RunStep step{.kind = StepKind::kCall, .target = program_.calls.size(), .at = memory_.now()};
    for (const Instr* operand : instr.operands()) {
      MemoryValue value = frame.leaves[operand][0];
      memory_.Use(value);
      step.places.push_back(Unsettled(value));
    }
    step.inputs = step.places.size();
    frame.leaves[&instr] = NewLeaves(instr.shape());
    Leaves made = frame.leaves[&instr];
    if (call->ScratchBytes() > 0) made.push_back(memory_.New(call->ScratchBytes()));
    for (MemoryValue value : made) {
      memory_.Define(value);
      memory_.Use(value);
      step.places.push_back(Unsettled(value));
    }
    // A scatter may be done where the array is.
    if (instr.op() == Op::kScatter && instr.operand(0) != instr.operand(1) &&
        instr.operand(0) != instr.operand(2))
      memory_.MayShare(made[0], frame.leaves[instr.operand(0)][0]);
    log_.Add({.pass = "lower",
              .rule = "library.call",
              .subject = LabelOf(instr),
              .origins = instr.origins(),
              .because = call->Text()});
    program_.calls.push_back(std::move(call));
    program_.call_instrs.push_back(&instr);
    frame.steps->push_back(std::move(step));
  }

  void CallHost(Frame& frame, const Instr& instr) {
    memory_.Tick();
    RunStep step{.kind = StepKind::kHost, .at = memory_.now()};
    for (const Instr* operand : instr.operands()) {
      for (MemoryValue value : frame.leaves[operand]) {
        if (value == kNoMemory) continue;
        memory_.Use(value);
        step.places.push_back(Unsettled(value));
      }
    }
    step.inputs = step.places.size();
    frame.leaves[&instr] = NewLeaves(instr.shape());
    for (MemoryValue value : frame.leaves[&instr]) {
      if (value == kNoMemory) continue;
      memory_.Define(value);
      step.places.push_back(Unsettled(value));
    }
    step.target = program_.host_instrs.size();
    program_.host_instrs.push_back(&instr);
    std::string why = frame.plan->why_host[&instr];
    if (why.empty()) why = std::string(instr.info().name) + ": has no kernel";
    program_.host_reasons.push_back(why);
    log_.Add({.pass = "lower",
              .rule = "host.step",
              .subject = LabelOf(instr),
              .origins = instr.origins(),
              .because = why});
    frame.steps->push_back(std::move(step));
  }

  // ---- control flow

  // Splits the leaves of a while's state into those of its parameters.
  std::vector<Leaves> Split(const Computation& computation, const Leaves& all) {
    std::vector<Leaves> split;
    size_t next = 0;
    for (const Instr* parameter : computation.parameters()) {
      size_t count = LeavesOf(parameter->shape()).size();
      split.emplace_back(all.begin() + static_cast<int64_t>(next),
                         all.begin() + static_cast<int64_t>(next + count));
      next += count;
    }
    return split;
  }

  // All rounds of a loop as one kernel.
  bool LaunchRounds(Frame& frame, const Instr& instr) {
    if (options_.machine.is_gpu() || options_.plan.mode == FusionMode::kNone) return false;
    std::optional<WhileLoop> loop = LoopOf(const_cast<Instr*>(&instr));  // looks only
    std::optional<uint64_t> rounds = loop ? TripCount(*loop) : std::nullopt;
    if (!rounds || *rounds == 0 || *rounds > INT32_MAX) return false;
    PlannedKernel planned;
    planned.kind = RegionKind::kLoop;
    planned.region = {.computation = frame.computation,
                      .instrs = {&instr},
                      .inputs = InputsOf({&instr}),
                      .roots = {&instr}};
    BuildOutcome outcome =
        BuildRounds(planned.region, static_cast<int64_t>(*rounds), options_.machine,
                    "rounds" + std::to_string(program_.kernels.size()));
    log_.Add({.pass = "lower",
              .rule = "lower.rounds",
              .verdict = outcome.built ? Verdict::kTaken : Verdict::kRejected,
              .subject = LabelOf(instr),
              .origins = instr.origins(),
              .because = outcome.why_not});
    if (!outcome.built) return false;
    planned.built = std::move(*outcome.built);
    LaunchPlanned(frame, planned);
    return true;
  }

  void LowerWhile(Frame& frame, const Instr& instr) {
    if (LaunchRounds(frame, instr)) return;
    Leaves inits;
    for (const Instr* operand : instr.operands()) {
      const Leaves& own = frame.leaves[operand];
      inits.insert(inits.end(), own.begin(), own.end());
    }
    Leaves carries = NewLeaves(instr.shape());
    for (size_t i = 0; i < carries.size(); ++i) Copy(*frame.steps, carries[i], inits[i]);
    int64_t begin = memory_.Tick();
    size_t mark = memory_.BeginLoop();
    for (MemoryValue carry : carries) memory_.Use(carry);
    RunStep step{.kind = StepKind::kWhile, .target = program_.loops.size(), .at = begin};
    program_.loops.push_back(&instr);
    step.blocks.resize(3);
    const Computation &condition = *instr.called(0), &body = *instr.called(1);
    Leaves holds = LowerComputation(condition, Split(condition, carries), step.blocks[0]);
    memory_.Tick();
    memory_.Use(holds[0]);
    step.places = {Unsettled(holds[0])};
    Leaves next = LowerComputation(body, Split(body, carries), step.blocks[1]);
    CloseBody(carries, next, step);
    memory_.Tick();
    for (MemoryValue carry : carries) memory_.Use(carry);
    for (const RunStep& copy : step.blocks[2])
      memory_.Use(static_cast<MemoryValue>(copy.places[1].offset));
    memory_.EndLoop(mark, begin);
    frame.leaves[&instr] = std::move(carries);
    frame.steps->push_back(std::move(step));
  }

  // The values for the next round go to where they are carried. One that is itself carried, and
  // perhaps overwritten by now, goes by way of another place.
  void CloseBody(const Leaves& carries, const Leaves& next, RunStep& loop) {
    std::vector<RunStep>&steps = loop.blocks[1], paired;
    auto is_carry = [&](MemoryValue value) {
      return std::find(carries.begin(), carries.end(), value) != carries.end();
    };
    Leaves from = next;
    for (size_t i = 0; i < carries.size(); ++i) {
      if (carries[i] == kNoMemory || next[i] == carries[i] || !is_carry(next[i])) continue;
      from[i] = memory_.New(memory_.bytes(next[i]));
      Copy(steps, from[i], next[i]);
    }
    std::vector<bool> joined(carries.size());
    for (size_t i = 0; i < carries.size(); ++i) {
      if (carries[i] == kNoMemory || next[i] == carries[i]) continue;
      joined[i] = from[i] == next[i] && memory_.JoinCarry(carries[i], from[i]);
    }
    for (size_t i = 0; i < carries.size(); ++i) {
      if (carries[i] == kNoMemory || next[i] == carries[i] || joined[i]) continue;
      memory_.Tick();
      memory_.Use(from[i]);
      memory_.Use(carries[i]);
      if (memory_.bytes(carries[i]) == 0) continue;
      bool pair = memory_.PairCarry(carries[i], from[i], loop.at);
      (pair ? paired : steps)
          .push_back({.kind = StepKind::kCopy,
                      .places = {Unsettled(carries[i]), Unsettled(from[i])},
                      .bytes = memory_.bytes(carries[i]),
                      .at = memory_.now()});
    }
    // After all others, which may read what these overwrite.
    for (RunStep& copy : paired) {
      copy.at = memory_.Tick();
      for (const Place& place : copy.places) memory_.Use(static_cast<MemoryValue>(place.offset));
      loop.blocks[2].push_back(std::move(copy));
    }
  }

  void LowerConditional(Frame& frame, const Instr& instr) {
    memory_.Tick();
    MemoryValue index = frame.leaves[instr.operand(0)][0];
    memory_.Use(index);
    RunStep step{.kind = StepKind::kConditional, .places = {Unsettled(index)}, .at = memory_.now()};
    step.is_pred = instr.operand(0)->shape().type() == ElementType::kPred;
    step.blocks.resize(instr.called().size());
    Leaves results = NewLeaves(instr.shape());
    size_t operand = 1;
    for (size_t i = 0; i < instr.called().size(); ++i) {
      const Computation& branch = *instr.called(i);
      std::vector<Leaves> arguments;
      for (size_t p = 0; p < branch.parameters().size(); ++p)
        arguments.push_back(frame.leaves[instr.operand(operand++)]);
      int64_t begin = memory_.Tick();
      Leaves values = LowerComputation(branch, arguments, step.blocks[i]);
      Leaves taken;
      for (size_t k = 0; k < results.size(); ++k) {
        if (results[k] == kNoMemory || memory_.bytes(results[k]) == 0) continue;
        memory_.Tick();
        memory_.Use(values[k]);
        bool first = std::find(taken.begin(), taken.end(), values[k]) == taken.end();
        bool joined = first && memory_.JoinBranch(results[k], values[k], begin);
        taken.push_back(values[k]);
        memory_.Define(results[k]);
        if (joined) continue;
        step.blocks[i].push_back({.kind = StepKind::kCopy,
                                  .places = {Unsettled(results[k]), Unsettled(values[k])},
                                  .bytes = memory_.bytes(results[k]),
                                  .at = memory_.now()});
      }
    }
    frame.leaves[&instr] = std::move(results);
    frame.steps->push_back(std::move(step));
  }

  // ---- results

  void PlaceResults(const Leaves& roots, const std::vector<Shape>& shapes,
                    const std::vector<MemoryValue>& parameters) {
    // What may be a parameter's memory, and is another's result, goes by way of the arena.
    auto donor_of = [&](size_t result) {
      for (size_t p = 0; p < parameters.size() && p < options_.alias_results.size(); ++p)
        if (options_.alias_results[p] == static_cast<int64_t>(result)) return parameters[p];
      return kNoMemory;
    };
    Leaves from = roots;
    memory_.Tick();
    for (size_t i = 0; i < roots.size(); ++i) {
      bool is_parameter =
          std::find(parameters.begin(), parameters.end(), roots[i]) != parameters.end();
      if (!is_parameter || roots[i] == kNoMemory || donor_of(i) == roots[i]) continue;
      bool donated = false;
      for (size_t r = 0; r < roots.size(); ++r) donated = donated || donor_of(r) == roots[i];
      if (!donated) continue;
      from[i] = memory_.New(memory_.bytes(roots[i]));
      Copy(program_.steps, from[i], roots[i]);
    }
    Leaves placed;
    for (size_t i = 0; i < roots.size(); ++i) {
      if (!shapes[i].IsArray()) continue;
      auto memory = static_cast<int32_t>(first_result_ + static_cast<int32_t>(i));
      if (from[i] == roots[i] && memory_.PlaceInResult(from[i], memory, donor_of(i))) continue;
      memory_.Tick();
      memory_.Use(from[i]);
      if (memory_.bytes(from[i]) == 0) continue;
      program_.steps.push_back({.kind = StepKind::kCopy,
                                .places = {{memory, 0}, Unsettled(from[i])},
                                .bytes = memory_.bytes(from[i]),
                                .at = memory_.now()});
    }
  }

  // Values become places; copies of what is one memory go.
  void Settle(std::vector<RunStep>& steps) {
    for (RunStep& step : steps) {
      for (Place& place : step.places)
        if (place.memory < 0) place = memory_.PlaceOf(static_cast<MemoryValue>(place.offset));
      for (std::vector<RunStep>& block : step.blocks) Settle(block);
      if (step.kind == StepKind::kLaunch) MarkAliases(step);
    }
    std::erase_if(steps, [](const RunStep& step) {
      return step.kind == StepKind::kCopy && step.places[0] == step.places[1];
    });
    program_.copies += std::count_if(steps.begin(), steps.end(), [](const RunStep& step) {
      return step.kind == StepKind::kCopy;
    });
  }

  // Tells the kernel which of its arguments are, or may be, one memory.
  void MarkAliases(const RunStep& step) {
    Kernel& kernel = program_.kernels[step.target];
    for (size_t i = 0; i < step.places.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (!MayMeet(step.places[i], step.places[k])) continue;
        kernel.arrays[i].distinct = kernel.arrays[k].distinct = false;
      }
    }
  }

  bool MayMeet(const Place& x, const Place& y) const {
    if (x == y) return true;
    for (auto [parameter, result] : {std::pair(x, y), std::pair(y, x)}) {
      int64_t p = parameter.memory - 1, r = result.memory - first_result_;
      if (p >= 0 && p < static_cast<int64_t>(options_.alias_results.size()) && r >= 0 &&
          options_.alias_results[static_cast<size_t>(p)] == r)
        return true;
    }
    return false;
  }

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

void AddLeaves(const Shape& shape, std::vector<Shape>& leaves) {
  if (!shape.IsTuple()) {
    leaves.push_back(shape);
    return;
  }
  for (const Shape& element : shape.elements()) AddLeaves(element, leaves);
}

// Steps that a program may become: loops' bodies stand where they are called.
constexpr int64_t kMaxSteps = 200000;

// Looks at each computation that runs by itself once.
class LowerCheck {
 public:
  std::string Why(const Module& module) {
    int64_t steps = StepsOf(*module.entry(), 0);
    if (why_.empty() && steps > kMaxSteps)
      why_ = "it would be more than " + std::to_string(kMaxSteps) + " steps";
    return why_;
  }

 private:
  int64_t StepsOf(const Computation& computation, int depth) {
    if (depth > kMaxCallDepth) why_ = "its loops stand too deep in each other";
    if (!why_.empty()) return 0;
    auto known = steps_.find(&computation);
    if (known != steps_.end()) return known->second;
    int64_t steps = 0;
    for (const Instr* instr : computation.Instrs()) {
      ++steps;
      Look(*instr);
      if (instr->op() != Op::kWhile && instr->op() != Op::kConditional) continue;
      for (const Computation* called : instr->called())
        steps = std::min(steps + StepsOf(*called, depth + 1), kMaxSteps + 1);
    }
    steps_[&computation] = steps;
    return steps;
  }

  void Look(const Instr& instr) {
    if (!why_.empty()) return;
    for (const Shape& leaf : LeavesOf(instr.shape())) {
      bool fixed = (leaf.IsArray() && !leaf.HasDynamicDims()) || leaf.IsToken();
      if (!fixed) why_ = LabelOf(instr) + " is " + ToString(leaf) + ", which has no fixed place";
    }
    if (instr.op() == Op::kConstant && !instr.shape().IsArray())
      why_ = LabelOf(instr) + " is a constant tuple";
  }

  std::string why_;
  std::unordered_map<const Computation*, int64_t> steps_;
};

}  // namespace

std::vector<Shape> LeavesOf(const Shape& shape) {
  std::vector<Shape> leaves;
  AddLeaves(shape, leaves);
  return leaves;
}

std::string WhyNotLowered(const Module& module) {
  return LowerCheck().Why(module);
}

Result<LoweredProgram> Lower(const Module& module, const LowerOptions& options, DecisionLog& log) {
  Lowerer lowerer(module, options, log);
  LoweredProgram program = lowerer.Run();
  if (!lowerer.is_cyclic()) return program;
  // A fault of the planner's: one kernel for each instruction cannot have it.
  LowerOptions plain = options;
  plain.plan.mode = FusionMode::kNone;
  return Lowerer(module, plain, log).Run();
}

}  // namespace tokamak
