// Policies, cost hooks and generators as the planner and lowering see them. Functions of plugins
// run guarded, on threads of their own. Those of the process itself (Python) run on the thread that
// compiles: it may hold a lock that they need.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "driver/plugins/callback.h"
#include "driver/plugins/compile_extensions.h"
#include "driver/plugins/host_table.h"
#include "driver/plugins/region_text.h"
#include "kernel/write.h"

namespace tokamak {
namespace {

// Microseconds. A prediction above this is no time of a kernel. Chosen: more than a year.
constexpr double kMaxHookedUs = 1e14;

void AddText(std::string& list, std::string_view text, char separator = ',') {
  if (!list.empty()) list += separator;
  list += text;
}

// The texts of a move, or of a step, which the structs point to.
struct InstrTexts {
  std::string names, sources, scopes;

  void Add(const std::vector<const Instr*>& instrs) {
    for (const Instr* instr : instrs) {
      AddText(names, LabelOf(*instr));
      for (const std::string& line : SourceLinesOf(*instr))
        if (lines_.insert(line).second) AddText(sources, line);
      for (const std::string& scope : ScopesOf(*instr))
        if (lines_.insert(scope).second) AddText(scopes, scope);
    }
  }

 private:
  std::set<std::string> lines_;
};

class DecideCall final : public PluginCallback {
 public:
  DecideCall(const tok_fusion_policy& policy, const MoveFacts& facts) : policy_(policy) {
    texts_.Add(facts.producer);
    texts_.Add(facts.consumers);
    rule_ = facts.rule;
    subject_ = LabelOf(*facts.subject);
    other_ = LabelOf(*facts.other);
    shape_ = ToString(facts.subject->shape());
    producer_ = OpsOf(facts.producer);
    consumer_ = OpsOf(facts.consumers);
    move_.struct_size = sizeof move_;
    move_.rule = rule_.c_str();
    move_.subject = subject_.c_str();
    move_.other = other_.c_str();
    move_.subject_op = facts.subject->info().name.data();
    move_.other_op = facts.other->info().name.data();
    move_.shape = shape_.c_str();
    move_.producer_ops = producer_.c_str();
    move_.consumer_ops = consumer_.c_str();
    move_.names = texts_.names.c_str();
    move_.sources = texts_.sources.c_str();
    move_.scopes = texts_.scopes.c_str();
    move_.before_us = facts.before_us;
    move_.after_us = facts.after_us;
    move_.saved_bytes = facts.saved_bytes;
    move_.kernels_before = facts.kernels_before;
    move_.kernels_after = facts.kernels_after;
    move_.registers = facts.registers;
    move_.instructions = static_cast<int32_t>(facts.instructions);
  }
  void Call() override { answer = policy_.decide(&move_, &weight, policy_.user); }

  int answer = TOK_NO_OPINION;
  double weight = 1;

 private:
  tok_fusion_policy policy_;
  tok_move move_{};
  InstrTexts texts_;
  std::string rule_, subject_, other_, shape_, producer_, consumer_;
};

class PriorityCall final : public PluginCallback {
 public:
  PriorityCall(const tok_order_policy& policy, const StepFacts& facts) : policy_(policy) {
    texts_.Add(facts.instrs);
    name_ = facts.name;
    kind_ = facts.kind;
    ops_ = OpsOf(facts.instrs);
    step_.struct_size = sizeof step_;
    step_.name = name_.c_str();
    step_.ops = ops_.c_str();
    step_.kind = kind_.c_str();
    step_.sources = texts_.sources.c_str();
    step_.scopes = texts_.scopes.c_str();
    step_.result_bytes = facts.result_bytes;
    step_.released_bytes = facts.released_bytes;
    step_.position = facts.position;
    step_.ready = facts.ready;
  }
  void Call() override { priority = policy_.priority(&step_, policy_.user); }

  double priority = 0;

 private:
  tok_order_policy policy_;
  tok_ready_step step_{};
  InstrTexts texts_;
  std::string name_, kind_, ops_;
};

class CostCall final : public PluginCallback {
 public:
  CostCall(const tok_cost_hook& hook, tok_kernel_facts facts, std::string name, std::string ops,
           std::string_view generator)
      : hook_(hook),
        facts_(facts),
        name_(std::move(name)),
        ops_(std::move(ops)),
        generator_(generator) {
    facts_.struct_size = sizeof facts_;
    facts_.name = name_.c_str();
    facts_.ops = ops_.c_str();
    facts_.generator = generator_.c_str();
  }
  void Call() override { us = hook_.predict(&facts_, hook_.user); }

  double us = -1;

 private:
  tok_cost_hook hook_;
  tok_kernel_facts facts_;
  std::string name_, ops_, generator_;
};

class BuildCall final : public PluginCallback {
 public:
  BuildCall(const tok_generator& generator, const FusedRegion& region, const BuiltKernel* own,
            const Machine& machine)
      : generator_(generator),
        ops_(OpsOf(region.instrs)),
        hlo_(TextOfRegion(region)),
        arguments_(ArgumentLinesOf(region)) {
    region_.struct_size = sizeof region_;
    region_.ops = ops_.c_str();
    region_.hlo = hlo_.c_str();
    region_.arguments = arguments_.c_str();
    region_.target = machine.is_gpu() ? TOK_GPU : TOK_CPU;
    region_.cores = static_cast<int32_t>(machine.cores);
    region_.vector_bits = static_cast<int32_t>(machine.vector_bits);
    if (own == nullptr) return;
    kernel_ = WriteKernel(own->kernel);
    region_.kernel = kernel_.c_str();
    region_.kernel_us = EstimateCost(WorkOf(own->kernel, own->grid, machine), machine).total();
    if (!own->schedule) return;
    schedule_ = ToString(*own->schedule);
    region_.schedule = schedule_.c_str();
  }
  void Call() override {
    // The text is copied here: the plugin may reuse it.
    if (const char* built = generator_.build(&region_, generator_.user)) {
      text = built;
      declines = false;
    }
  }

  std::string text;
  bool declines = true;

 private:
  tok_generator generator_;
  tok_region region_{};
  std::string ops_, hlo_, arguments_, kernel_, schedule_;
};

// Calls on a guarded thread if the function is a plugin's.
CallOutcome InvokeItem(const PluginItem& item, const std::shared_ptr<PluginCallback>& call) {
  if (item.plugin != nullptr) return Invoke(call);
  call->Run();
  return {.why = call->failure()};
}

Error HookError(std::string why) {
  return MakeError(ErrorCode::kPluginFailed, std::move(why));
}

}  // namespace

PolicyAnswer CompileExtensions::Decide(const MoveFacts& move) const {
  for (const FusionPolicyItem& policy : all_->fusion_policies) {
    if (!IsUsable(policy)) continue;
    auto call = std::make_shared<DecideCall>(policy.entry, move);
    CallOutcome outcome = InvokeItem(policy, call);
    std::string why = outcome.why;
    if (why.empty() && (call->answer < TOK_NO_OPINION || call->answer > TOK_WEIGHT))
      why = fmt::format("it returned {}", call->answer);
    if (why.empty() && call->answer == TOK_WEIGHT &&
        !(call->weight >= 0 && std::isfinite(call->weight)))
      why = fmt::format("{:g} is no weight: it must be finite and not negative", call->weight);
    if (!why.empty()) {
      Fail(policy, "fusion policy", HookError(why), outcome.is_abandoned);
      continue;
    }
    switch (call->answer) {
      case TOK_ACCEPT:
        return {.opinion = Opinion::kAccept, .policy = policy.name};
      case TOK_VETO:
        return {.opinion = Opinion::kVeto, .policy = policy.name};
      case TOK_WEIGHT:
        if (call->weight == 0) return {.opinion = Opinion::kVeto, .policy = policy.name};
        return {.opinion = Opinion::kWeight, .weight = call->weight, .policy = policy.name};
      default:
        break;
    }
  }
  return {};
}

StepPriority CompileExtensions::PriorityOf(const StepFacts& step) const {
  for (const OrderPolicyItem& policy : all_->order_policies) {
    if (!IsUsable(policy)) continue;
    auto call = std::make_shared<PriorityCall>(policy.entry, step);
    CallOutcome outcome = InvokeItem(policy, call);
    if (!outcome.ok()) {
      Fail(policy, "order policy", HookError(outcome.why), outcome.is_abandoned);
      continue;
    }
    if (!std::isnan(call->priority)) return {.value = call->priority, .policy = policy.name};
  }
  return {};
}

CostEstimate CompileExtensions::CorrectedBy(const PluginCostHook& hook, const CostEstimate& modeled,
                                            const Work& work, const Kernel& kernel,
                                            const FusedRegion& region, GeneratorKind kind) const {
  tok_kernel_facts facts{};
  facts.target = machine_.is_gpu() ? TOK_GPU : TOK_CPU;
  facts.predicted_us = modeled.total();
  facts.launch_us = modeled.launch;
  facts.memory_us = modeled.memory;
  facts.compute_us = modeled.compute;
  facts.read_bytes = work.reads;
  facts.written_bytes = work.writes;
  facts.tasks = work.tasks;
  facts.threads = work.threads;
  facts.registers = machine_.is_gpu() ? work.thread_registers : work.registers;
  facts.shared_bytes = work.shared_bytes;
  facts.multiply_adds = work[Pipe::kMultiply] + work[Pipe::kMultiply64] + work[Pipe::kMultiply16] +
                        work[Pipe::kTensor];
  auto call = std::make_shared<CostCall>(hook.entry, facts, kernel.name, OpsOf(region.instrs),
                                         NameOf(kind));
  CallOutcome outcome = InvokeItem(hook, call);
  if (!outcome.ok()) {
    Fail(hook, "cost hook", HookError(outcome.why), outcome.is_abandoned);
    return modeled;
  }
  if (!(call->us >= 0)) return modeled;
  if (call->us > kMaxHookedUs) {
    Fail(hook, "cost hook", HookError(fmt::format("it predicts {:g} us", call->us)), false);
    return modeled;
  }
  CostEstimate corrected = modeled;
  corrected.all = call->us;
  return corrected;
}

CostEstimate CompileExtensions::Corrected(const CostEstimate& modeled, const Work& work,
                                          const Kernel& kernel, const FusedRegion& region,
                                          GeneratorKind kind, std::string* hook) const {
  CostEstimate cost = modeled;
  for (const PluginCostHook& item : all_->cost_hooks) {
    if (!IsUsable(item)) continue;
    double before = cost.total();
    cost = CorrectedBy(item, cost, work, kernel, region, kind);
    if (hook != nullptr && cost.total() != before) *hook = item.name;
  }
  return cost;
}

std::optional<BuiltKernel> CompileExtensions::GenerateBy(const PluginGenerator& generator,
                                                         const FusedRegion& region,
                                                         const BuiltKernel* own) const {
  auto call = std::make_shared<BuildCall>(generator.entry, region, own, machine_);
  CallOutcome outcome = InvokeItem(generator, call);
  if (!outcome.ok()) {
    Fail(generator, "generator", HookError(outcome.why), outcome.is_abandoned);
    return std::nullopt;
  }
  if (call->declines) return std::nullopt;
  Result<BuiltKernel> built = KernelFromText(call->text, region, generator.name);
  if (built.ok()) return std::move(built.value());
  Error error = built.error();
  error.code = ErrorCode::kPluginFailed;
  if (error.where.line > 0)
    error.message = fmt::format("line {} of the kernel for {}: {}", error.where.line,
                                LabelOf(*region.roots[0]), error.message);
  error.where = {};
  Fail(generator, "generator", std::move(error), false);
  return std::nullopt;
}

std::optional<BuiltKernel> CompileExtensions::Generate(const FusedRegion& region,
                                                       const BuiltKernel* own,
                                                       GeneratorKind kind) const {
  // A kernel that writes a part of an array, or a tuple, has more facts than the text states.
  if (own != nullptr && !own->must_alias.empty()) return std::nullopt;
  for (const Instr* root : region.roots)
    if (!IsPlainArray(root->shape())) return std::nullopt;
  auto cost_of = [&](const BuiltKernel& built) {
    Work work = WorkOf(built.kernel, built.grid, machine_);
    CostEstimate cost = EstimateCost(work, machine_);
    return Corrected(cost, work, built.kernel, region, kind, nullptr).total();
  };
  std::optional<BuiltKernel> best;
  double best_us = own == nullptr ? HUGE_VAL : cost_of(*own);
  for (const PluginGenerator& item : all_->generators) {
    if (!IsForTarget(item.entry.targets) || !IsUsable(item)) continue;
    std::optional<BuiltKernel> offered = GenerateBy(item, region, own);
    if (!offered) continue;
    double us = cost_of(*offered);
    if (us >= best_us) continue;
    best_us = us;
    best = std::move(offered);
    best->kernel.notes.push_back(
        fmt::format("{}{} of the plugin {}", kGeneratorNote, item.name, item.plugin->name));
  }
  return best;
}

}  // namespace tokamak
