// From plans to steps. Every computation is lowered inline where it is called; a loop body occurs
// once, inside its step. Steps keep program order; a kernel is launched when its first root is
// needed.

#include "lower/lower.h"

#include <algorithm>
#include <utility>

#include "fusion/extensions.h"
#include "fusion/instr_predicates.h"
#include "gen/library/dot.h"
#include "gen/library/sorts.h"
#include "lower/lowerer.h"
#include "lower/persistent.h"
#include "lower/poison.h"
#include "support/check.h"

namespace tokamak {
namespace {

// Arrays without elements need no computation.
bool HasNoBytes(const Shape& shape) {
  std::vector<Shape> leaves = LeavesOf(shape);
  return !leaves.empty() && std::all_of(leaves.begin(), leaves.end(), [](const Shape& leaf) {
    return leaf.IsArray() && leaf.ElementCount() == 0;
  });
}

}  // namespace

LoweredProgram Lowerer::Run() {
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
  AssignResults(roots, results, flat);
  memory_.Assign();
  std::string error = memory_.Check();
  TOK_CHECK(error.empty(), error.c_str());
  Settle(program_.steps);
  if (options_.poison) PoisonFreed(program_.steps, memory_);
  program_.arena_bytes = memory_.arena_bytes();
  return std::move(program_);
}

const ComputationPlan& Lowerer::PlanOf(const Computation& computation) {
  auto it = plans_.find(&computation);
  if (it == plans_.end()) {
    ComputationPlan plan = PlanComputation(computation, options_.machine, options_.plan, log_);
    program_.planning.emplace_back(&computation, plan.stats);
    program_.partition.emplace(&computation, PartitionOf(plan));
    it = plans_.emplace(&computation, std::move(plan)).first;
  }
  return it->second;
}

Lowerer::Frame::Frame(const Computation& of, const ComputationPlan& with,
                      std::vector<RunStep>& into)
    : computation(&of),
      plan(&with),
      steps(&into),
      leaves(of),
      done(of, false),
      waiting(of, false),
      earlier(of, nullptr),
      launched(with.kernels.size()),
      launch_group_of(with.kernels.size(), -1) {
  for (size_t i = 0; i < with.launch_groups.size(); ++i)
    for (int kernel : with.launch_groups[i])
      launch_group_of[static_cast<size_t>(kernel)] = static_cast<int>(i);
}

std::vector<int> Lowerer::Frame::LaunchOf(int kernel) const {
  int group = launch_group_of[static_cast<size_t>(kernel)];
  if (group < 0) return {kernel};
  return plan->launch_groups[static_cast<size_t>(group)];
}

Leaves Lowerer::LowerComputation(const Computation& computation,
                                 const std::vector<Leaves>& arguments,
                                 std::vector<RunStep>& steps) {
  Frame frame(computation, PlanOf(computation), steps);
  for (size_t i = 0; i < arguments.size(); ++i) {
    frame.leaves[computation.parameter(i)] = arguments[i];
    frame.done[computation.parameter(i)] = true;
  }
  // Before emitting anything, record all effects and fused loops: a kernel may depend on a later
  // one.
  std::vector<Instr*> order = computation.PostOrder();
  const Instr* last = nullptr;
  for (const Instr* instr : order)
    if (effects_.Of(*instr)) frame.earlier[instr] = std::exchange(last, instr);
  for (const Instr* instr : order)
    if (instr->op() == Op::kWhile) PlanWholeLoop(frame, *instr);
  // Instructions with effects come first and the root last, wherever it is among them, so that the
  // operands of the effects die early.
  const PlannerExtensions* extensions = options_.plan.extensions;
  if (extensions != nullptr && extensions->HasOrderPolicy()) EmitByPriority(frame, order);
  for (const Instr* instr : order)
    if (effects_.Of(*instr) && !is_cyclic_) Emit(frame, *instr);
  if (!is_cyclic_) Emit(frame, *computation.root());
  if (is_cyclic_) return NewLeaves(computation.root()->shape());
  return frame.leaves[computation.root()];
}

template <typename Need>
void Lowerer::ForNeedsOfKernel(const Frame& frame, int kernel, Need&& need) {
  const PlannedKernel& planned = frame.plan->kernels[static_cast<size_t>(kernel)];
  for (const Instr* input : planned.region.inputs) need(input);
  for (const auto& [argument, old] : planned.built.must_alias) need(old);
  for (const Instr* root : planned.region.roots) {
    if (!root->has_extras()) continue;
    for (const Instr* before : root->extras().control_predecessors)
      if (frame.plan->kernel_of[before] != kernel) need(before);
  }
}

template <typename Need>
void Lowerer::ForNeeds(const Frame& frame, const Instr& instr, Need&& need) {
  if (int kernel = frame.plan->kernel_of[&instr]; kernel >= 0) {
    for (int part : frame.LaunchOf(kernel)) ForNeedsOfKernel(frame, part, need);
    return;
  }
  auto fused = frame.fused_loops.find(&instr);
  for (size_t i = 0; i < instr.operand_count(); ++i)
    if (fused == frame.fused_loops.end() || fused->second.Needs(i)) need(instr.operand(i));
  if (instr.has_extras())
    for (const Instr* before : instr.extras().control_predecessors) need(before);
  if (frame.earlier[&instr] != nullptr) need(frame.earlier[&instr]);
}

void Lowerer::Emit(Frame& frame, const Instr& wanted) {
  // `open` is the stack of instructions to visit. `path` has those whose operands were pushed; each
  // waits for the next.
  std::vector<const Instr*> open = {&wanted}, path;
  while (!open.empty()) {
    const Instr& instr = *open.back();
    if (frame.done[&instr]) {
      open.pop_back();
      if (!path.empty() && path.back() == &instr) path.pop_back();
      continue;
    }
    size_t before = open.size();
    ForNeeds(frame, instr, [&](const Instr* other) {
      if (!frame.done[other]) open.push_back(other);
    });
    if (open.size() == before) {
      EmitOne(frame, instr, frame.plan->kernel_of[&instr]);
      frame.done[&instr] = true;
      continue;
    }
    if (!frame.waiting[&instr]) {
      frame.waiting[&instr] = true;
      path.push_back(&instr);
      continue;
    }
    // All operands were visited and some are still not done: they wait for this one. It is a cycle.
    path.erase(path.begin(), std::find(path.begin(), path.end(), &instr));
    if (!SplitHorizontal(frame, path)) return SayCyclic(path);
    for (const Instr* other : open) frame.waiting[other] = false;
    open = {&wanted};
    path.clear();
  }
}

// What Emit emits at once: a launch, or an instruction outside kernels.
struct Lowerer::OrderedStep {
  const Instr* instr = nullptr;  // a value that it computes
  std::vector<const Instr*> results = {}, reads = {};
  std::vector<size_t> users = {};  // steps that need it
  size_t waits = 0;                // steps that it needs and that have not been emitted
  StepPriority priority = {};
};

// The steps in the order of Emit. Values that are already there need none.
std::vector<Lowerer::OrderedStep> Lowerer::StepsInOrder(const Frame& frame,
                                                        const std::vector<Instr*>& order) {
  std::vector<OrderedStep> steps;
  InstrMap<int> step_of(*frame.computation, -1);  // -2: waits for its operands
  std::vector<const Instr*> wanted;
  for (const Instr* instr : order)
    if (effects_.Of(*instr)) wanted.push_back(instr);
  wanted.push_back(frame.computation->root());
  for (const Instr* first : wanted) {
    std::vector<const Instr*> open = {first};
    while (!open.empty()) {
      const Instr& instr = *open.back();
      if (frame.done[&instr] || step_of[&instr] >= 0) {
        open.pop_back();
        continue;
      }
      size_t before = open.size();
      if (step_of[&instr] == -1)
        ForNeeds(frame, instr, [&](const Instr* other) {
          if (!frame.done[other] && step_of[other] < 0) open.push_back(other);
        });
      if (std::exchange(step_of[&instr], -2) == -1 && open.size() > before) continue;
      OrderedStep step{.instr = &instr, .results = {&instr}};
      if (int kernel = frame.plan->kernel_of[&instr]; kernel >= 0) {
        step.results.clear();
        for (int part : frame.LaunchOf(kernel))
          for (const Instr* root : frame.plan->kernels[static_cast<size_t>(part)].region.roots)
            step.results.push_back(root);
      }
      for (const Instr* result : step.results) step_of[result] = static_cast<int>(steps.size());
      ForNeeds(frame, instr, [&](const Instr* other) { step.reads.push_back(other); });
      steps.push_back(std::move(step));
      open.pop_back();
    }
  }
  for (size_t i = 0; i < steps.size(); ++i)
    for (const Instr* read : steps[i].reads)
      if (int maker = step_of[read]; maker >= 0 && static_cast<size_t>(maker) != i) {
        steps[static_cast<size_t>(maker)].users.push_back(i);
        ++steps[i].waits;
      }
  return steps;
}

void Lowerer::EmitByPriority(Frame& frame, const std::vector<Instr*>& order) {
  std::vector<OrderedStep> steps = StepsInOrder(frame, order);
  std::vector<size_t> ready;
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].waits == 0) ready.push_back(i);
  for (size_t i : ready)
    AskPriority(frame, steps[i], static_cast<int>(i), static_cast<int>(ready.size()));
  while (!ready.empty() && !is_cyclic_) {
    auto best = std::ranges::min_element(ready, [&](size_t x, size_t y) {
      double of_x = steps[x].priority.value, of_y = steps[y].priority.value;
      return of_x != of_y ? of_x > of_y : x < y;
    });
    size_t chosen = *best;
    ready.erase(best);
    OrderedStep& step = steps[chosen];
    // Another step would have been next.
    bool is_earlier = std::ranges::any_of(ready, [&](size_t other) { return other < chosen; });
    size_t next = is_earlier ? std::ranges::min(ready) : chosen;
    const std::string& policy = steps[step.priority.policy.empty() ? next : chosen].priority.policy;
    if (is_earlier)
      log_.Add({.pass = "lower",
                .rule = "policy.order",
                .subject = LabelOf(*step.instr),
                .other = LabelOf(*steps[next].instr),
                .origins = step.instr->origins(),
                .because = "the policy " + policy + " runs it first, of " +
                           std::to_string(ready.size() + 1) + " steps"});
    Emit(frame, *step.instr);
    size_t known = ready.size();
    for (size_t user : step.users)
      if (--steps[user].waits == 0) ready.push_back(user);
    for (size_t i = known; i < ready.size(); ++i)
      AskPriority(frame, steps[ready[i]], static_cast<int>(ready[i]),
                  static_cast<int>(ready.size()));
  }
}

void Lowerer::AskPriority(const Frame& frame, OrderedStep& step, int position, int ready) {
  const Instr& instr = *step.instr;
  int kernel = frame.plan->kernel_of[&instr];
  StepFacts facts{.instr = &instr, .kind = "host", .name = LabelOf(instr), .instrs = {&instr}};
  facts.position = position;
  facts.ready = ready;
  if (kernel >= 0) {
    facts.kind = "kernel";
    facts.instrs = frame.plan->kernels[static_cast<size_t>(kernel)].region.instrs;
  } else if (instr.op() == Op::kWhile) {
    facts.kind = "loop";
  } else if (instr.op() == Op::kConditional) {
    facts.kind = "conditional";
  } else if (UsesLibrary(instr, options_.machine) || UsesRuntimeFunction(instr, options_.machine)) {
    facts.kind = "library";
  } else if (IsAlias(instr) || instr.op() == Op::kConstant || instr.op() == Op::kAfterAll) {
    facts.kind = "alias";
  }
  bool is_alias = facts.kind == "alias";
  auto bytes_of = [](const Instr& value) {
    return static_cast<double>(BytesOfLeaves(value.shape()));
  };
  for (const Instr* result : step.results)
    if (!is_alias) facts.result_bytes += bytes_of(*result);
  std::vector<const Instr*> seen;
  for (const Instr* read : step.reads) {
    if (std::ranges::count(seen, read) > 0 || read->op() == Op::kParameter ||
        read->op() == Op::kConstant)
      continue;
    seen.push_back(read);
    bool last = std::ranges::all_of(read->users(), [&](const Instr* user) {
      return frame.done[user] || user == &instr || frame.plan->is_internal[user] ||
             (kernel >= 0 && frame.plan->kernel_of[user] == kernel);
    });
    if (last && !is_alias) facts.released_bytes += bytes_of(*read);
  }
  step.priority = options_.plan.extensions->PriorityOf(facts);
}

bool Lowerer::SplitHorizontal(Frame& frame, const std::vector<const Instr*>& cycle) {
  for (size_t i = 0; i < cycle.size(); ++i) {
    int kernel = frame.plan->kernel_of[cycle[i]];
    int group = kernel < 0 ? -1 : frame.launch_group_of[static_cast<size_t>(kernel)];
    if (group < 0) continue;
    const Instr* next = cycle[(i + 1) % cycle.size()];
    bool by_itself = false;
    ForNeedsOfKernel(frame, kernel, [&](const Instr* other) { by_itself |= other == next; });
    if (by_itself) continue;
    log_.Add({.pass = "lower",
              .rule = "lower.cyclic-horizontal-fusion",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(*cycle[i]),
              .other = LabelOf(*next),
              .origins = cycle[i]->origins(),
              .because = "its horizontally fused launch has a cyclic dependence"});
    std::replace(frame.launch_group_of.begin(), frame.launch_group_of.end(), group, -1);
    return true;
  }
  return false;
}

void Lowerer::SayCyclic(const std::vector<const Instr*>& cycle) {
  is_cyclic_ = true;
  const Instr& instr = *cycle[0];
  std::string names;
  for (const Instr* waits : cycle) names += (names.empty() ? "" : ", ") + LabelOf(*waits);
  log_.Add({.pass = "lower",
            .rule = "lower.cyclic-plan",
            .verdict = Verdict::kRejected,
            .subject = LabelOf(instr),
            .origins = instr.origins(),
            .because = "cyclic dependence: " + names});
}

void Lowerer::EmitOne(Frame& frame, const Instr& instr, int kernel) {
  if (kernel >= 0) return Launch(frame, kernel);
  if (instr.op() == Op::kConstant) {
    frame.leaves[&instr] = ConstantOf(instr);
    return;
  }
  if (instr.op() == Op::kWhile) return LowerWhile(frame, instr);
  if (instr.op() == Op::kConditional) return LowerConditional(frame, instr);
  if (instr.op() == Op::kAfterAll) {
    frame.leaves[&instr] = {kNoMemory};
    return;
  }
  if (UsesLibrary(instr, options_.machine)) return CallLibrary(frame, instr);
  if (UsesRuntimeFunction(instr, options_.machine)) return CallRuntime(frame, instr);
  if (IsAlias(instr)) return AddAlias(frame, instr);
  if (HasNoBytes(instr.shape()) && !effects_.Of(instr)) {
    frame.leaves[&instr] = NewLeaves(instr.shape());
    return;
  }
  CallHost(frame, instr);
}

void Lowerer::AddAlias(Frame& frame, const Instr& instr) {
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

const Leaves& Lowerer::ConstantOf(const Instr& instr) {
  auto [it, is_new] = constants_.try_emplace(&instr);
  if (is_new) {
    for (const Shape& leaf : LeavesOf(instr.shape())) {
      TOK_CHECK(leaf.IsArray() && instr.shape().IsArray(), "a constant that is not an array");
      int32_t memory = first_constant_ + static_cast<int32_t>(program_.constants.size());
      it->second.push_back(memory_.NewFixed(BytesOfLeaf(leaf), memory));
      program_.constants.push_back(&instr);
    }
  }
  return it->second;
}

Leaves Lowerer::NewLeaves(const Shape& shape) {
  Leaves leaves;
  for (const Shape& leaf : LeavesOf(shape))
    leaves.push_back(leaf.IsArray() ? memory_.New(BytesOfLeaf(leaf)) : kNoMemory);
  return leaves;
}

Result<LoweredProgram> Lower(const Module& module, const LowerOptions& options, DecisionLog& log) {
  Lowerer lowerer(module, options, log);
  LoweredProgram program = lowerer.Run();
  if (lowerer.is_cyclic()) {
    // A bug of the planner. Without fusion (one kernel per instruction) there are no cycles.
    LowerOptions plain = options;
    plain.plan.mode = FusionMode::kNone;
    plain.plan.existing_partition = nullptr;
    program = Lowerer(module, plain, log).Run();
  }
  FusionMode mode = options.plan.mode;
  if (options.persistent && options.machine.is_gpu() && mode != FusionMode::kNone &&
      mode != FusionMode::kXlaPasses)
    ChoosePersistent(program, options.machine, log);
  return program;
}

}  // namespace tokamak
