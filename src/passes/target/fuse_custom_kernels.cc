// Puts the elementwise instructions around a custom kernel with element hooks into it:
//
//   x --multiply--> k(.) --add--> y     ->     y = fusion(x), kind custom: add(k(multiply(x)))
//
// Instructions before the kernel are computed in TOK_LOAD_i, those after it in TOK_STORE_j. Their
// arrays are neither stored nor loaded. The body of the fusion is ordinary HLO, in program order.
//
// A producer is fused if all of its uses are, or if it costs nothing to repeat (broadcast, iota).
// Consumers of an output are fused together, if that saves bytes.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "cost/rates.h"
#include "cost/units.h"
#include "cost/work.h"
#include "gen/library/custom_kernel.h"
#include "gen/library/custom_kernel_hooks.h"
#include "passes/passes.h"
#include "rewrite/bodies.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Instructions of one hook, at most. Chosen: bounds the text that the compiler of the kernel reads.
constexpr size_t kMostOfHook = 64;

// Values of an instruction that a CPU computes in a hook, at most. Measured on Skylake (2 cores,
// 2^23 elements): log1p with 40 values gains 1.4 times, tanh with 35 gains 2 times; sine and power
// with 59 lose 1.4 times, the remainder with 90 loses 2 times.
constexpr int64_t kMostValuesOnCpu = 48;

using InstrSet = std::unordered_set<const Instr*>;

bool IsFree(const Instr& instr) {
  return instr.op() == Op::kBroadcast || instr.op() == Op::kIota || IsImmediate(instr);
}

double BytesOfArrays(const std::vector<const Instr*>& arrays) {
  double bytes = 0;
  for (const Instr* array : arrays) bytes += static_cast<double>(array->shape().ByteSize());
  return bytes;
}

// Whether a user reads the array from memory whatever the planner decides: it is not elementwise
// and no reduction.
bool ReadsMemory(const Instr& user) {
  return !user.info().Is(kElementwise) && user.op() != Op::kReduce && user.op() != Op::kBroadcast;
}

// The fusion of one call.
class CustomFusion {
 public:
  CustomFusion(Instr& call, CustomKernel kernel, PassContext& context)
      : call_(call), kernel_(std::move(kernel)), context_(context), parent_(*call.parent()) {}

  bool Run() {
    if (IsPinned(call_) || !FindOutputs()) return false;
    for (size_t i = 0; i < kernel_.inputs.size(); ++i)
      if (kernel_.inputs[i].hooked) AddProducers(i);
    FindAfter();
    for (size_t j = 0; j < kernel_.outputs.size(); ++j)
      if (kernel_.outputs[j].hooked && outputs_[j] != nullptr) AddConsumers(j);
    if (before_.empty() && behind_.empty()) return false;
    Build();
    return true;
  }

 private:
  bool IsFusible(const Instr& instr) const {
    if (!IsHookOp(instr) || instr.shape().ElementCount() > kMaxHookElements || IsPinned(instr))
      return false;
    if (context_.machine().is_gpu() || IsFree(instr)) return true;
    int64_t values = CountHookValues(instr);
    if (values <= kMostValuesOnCpu) return true;
    context_.Rejected("custom-kernel.slow-in-c", instr, &call_,
                      fmt::format("{} values per element; {} at most", values, kMostValuesOnCpu));
    return false;
  }

  // The value of each output, or null if nothing uses it. False if a value has several names.
  bool FindOutputs() {
    outputs_.resize(kernel_.outputs.size());
    if (!call_.shape().IsTuple()) {
      outputs_[0] = &call_;
      return true;
    }
    for (Instr* user : call_.users()) {
      if (user->op() != Op::kGetTupleElement) return false;
      Instr*& output = outputs_[static_cast<size_t>(user->attrs<TupleIndexAttrs>().index)];
      if (output != nullptr) return false;
      output = user;
    }
    return parent_.root() != &call_;
  }

  // ---- before the kernel

  // All users of a producer are the call's hooked operands or fused producers.
  bool IsAbsorbed(const Instr& producer, const InstrSet& fused) const {
    if (parent_.root() == &producer) return false;
    for (const Instr* user : producer.users()) {
      if (user != &call_ && !fused.contains(user)) return false;
      if (user != &call_) continue;
      for (size_t i = 0; i < call_.operand_count(); ++i)
        if (call_.operand(i) == &producer && !kernel_.inputs[i].hooked) return false;
    }
    return true;
  }

  void AddProducers(size_t i) {
    InstrSet fused = before_;
    std::vector<const Instr*> order, open = {call_.operand(i)};
    while (!open.empty() && order.size() < kMostOfHook) {
      const Instr* instr = open.back();
      open.pop_back();
      if (fused.contains(instr) || IsImmediate(*instr) || !IsFusible(*instr)) continue;
      if (!IsFree(*instr) && !IsAbsorbed(*instr, fused)) continue;
      fused.insert(instr);
      order.push_back(instr);
      open.insert(open.end(), instr->operands().begin(), instr->operands().end());
    }
    if (order.empty() || order[0] != call_.operand(i)) return;
    if (PaysBefore(i, fused)) before_ = std::move(fused);
  }

  // Whether computing the operand in TOK_LOAD_i is cheaper than storing and loading it.
  bool PaysBefore(size_t i, const InstrSet& fused) {
    const Instr& root = *call_.operand(i);
    CustomKernelHook hook{i, RegionOf({&root}, fused)};
    Dialect dialect = context_.machine().is_gpu() ? Dialect::kGpu : Dialect::kCpu;
    BuildOutcome outcome = BuildLoadHook(hook, dialect);
    if (!outcome.built) {
      context_.Rejected("custom-kernel.fuse-load", root, &call_, outcome.why_not);
      return false;
    }
    const Rates& rates = RatesOf(context_.machine());
    Work work = WorkOf(outcome.built->kernel, outcome.built->grid, context_.machine());
    double ops_us = NsOfOps(work, rates) / kNsPerUs / static_cast<double>(rates.cores);
    double array = BytesOfArrays({&root}), inputs = BytesOfArrays(hook.region.inputs);
    double launch = context_.machine().is_gpu() ? rates.graph_gap_us : rates.step_us;
    double before_us = launch + ops_us + CopyUs(inputs + 2 * array, rates);
    double after_us = kernel_.loads * ops_us + CopyUs(std::max(1.0, kernel_.loads) * inputs, rates);
    return Decide("custom-kernel.fuse-load", root, before_us, after_us,
                  fmt::format("{} of {} are computed in TOK_LOAD_{}", hook.region.instrs.size(),
                              kernel_.name, i));
  }

  bool Decide(std::string_view rule, const Instr& subject, double before_us, double after_us,
              std::string because) {
    bool pays = after_us < before_us;
    context_.log.Add({.pass = context_.pass,
                      .rule = rule,
                      .verdict = pays ? Verdict::kAccepted : Verdict::kRejected,
                      .subject = LabelOf(subject),
                      .other = LabelOf(call_),
                      .origins = subject.origins(),
                      .before_us = before_us,
                      .after_us = after_us,
                      .because = std::move(because)});
    return pays;
  }

  static FusedRegion RegionOf(std::vector<const Instr*> roots, const InstrSet& inside) {
    return RegionOfHook(std::move(roots),
                        [&](const Instr* instr) { return inside.contains(instr); });
  }

  // ---- behind the kernel

  // Everything that depends on the call.
  void FindAfter() {
    std::vector<const Instr*> open = {&call_};
    while (!open.empty()) {
      const Instr* instr = open.back();
      open.pop_back();
      if (!after_.insert(instr).second) continue;
      open.insert(open.end(), instr->users().begin(), instr->users().end());
    }
  }

  // Adds what a consumer needs besides the kernel: free instructions. False if it needs a value
  // that depends on the kernel in another way.
  bool AddSupport(const Instr& consumer, InstrSet& fused) const {
    for (const Instr* operand : consumer.operands()) {
      if (fused.contains(operand) || IsImmediate(*operand)) continue;
      if (after_.contains(operand)) return false;
      std::vector<const Instr*> open = {operand};
      while (!open.empty()) {
        const Instr* instr = open.back();
        open.pop_back();
        if (!IsFree(*instr) || IsImmediate(*instr) || !IsFusible(*instr)) continue;
        if (!fused.insert(instr).second) continue;
        open.insert(open.end(), instr->operands().begin(), instr->operands().end());
      }
    }
    return true;
  }

  void AddConsumers(size_t j) {
    Instr* output = outputs_[j];
    InstrSet fused = {output};
    for (const Instr* instr : parent_.PostOrder()) {
      if (fused.size() > kMostOfHook) break;
      bool consumes =
          std::ranges::any_of(instr->operands(), [&](const Instr* o) { return fused.contains(o); });
      if (!consumes || instr == output || !after_.contains(instr) || !IsFusible(*instr) ||
          instr->shape().dims() != output->shape().dims() || IsFree(*instr))
        continue;
      InstrSet with = fused;
      if (!AddSupport(*instr, with)) continue;
      with.insert(instr);
      fused = std::move(with);
    }
    std::vector<const Instr*> roots;
    for (const Instr* instr : parent_.PostOrder())
      if (instr != output && fused.contains(instr) && after_.contains(instr) &&
          IsNeededOutside(*instr, fused))
        roots.push_back(instr);
    if (roots.empty() || !PaysBehind(j, fused, roots)) return;
    fused.erase(output);
    behind_.insert(fused.begin(), fused.end());
    roots_[j] = std::move(roots);
  }

  bool IsNeededOutside(const Instr& instr, const InstrSet& fused) const {
    return parent_.root() == &instr ||
           std::ranges::any_of(instr.users(), [&](const Instr* u) { return !fused.contains(u); });
  }

  bool PaysBehind(size_t j, const InstrSet& fused, const std::vector<const Instr*>& roots) {
    const Instr& output = *outputs_[j];
    InstrSet own = fused;
    own.erase(&output);
    CustomKernelHook hook{j, RegionOf(roots, own)};
    Dialect dialect = context_.machine().is_gpu() ? Dialect::kGpu : Dialect::kCpu;
    BuildOutcome outcome = BuildStoreHook(hook, output, dialect);
    if (!outcome.built) {
      context_.Rejected("custom-kernel.fuse-store", *roots[0], &call_, outcome.why_not);
      return false;
    }
    double array = BytesOfArrays({&output}), all = BytesOfArrays(roots), stored = 0;
    for (const Instr* root : roots) {
      bool must = parent_.root() == root || std::ranges::any_of(root->users(), [](const Instr* u) {
                    return ReadsMemory(*u);
                  });
      if (must) stored += BytesOfArrays({root});
    }
    bool keeps = IsNeededOutside(output, fused);
    const Rates& rates = RatesOf(context_.machine());
    double launch = context_.machine().is_gpu() ? rates.graph_gap_us : rates.step_us;
    // Roots that no one has to store would have been computed where they are used.
    double before_us = (stored > 0 ? launch : 0) + CopyUs(2 * array + stored, rates);
    double after_us = CopyUs((keeps ? array : 0) + all + (all - stored), rates);
    return Decide("custom-kernel.fuse-store", *roots[0], before_us, after_us,
                  fmt::format("{} of {} are computed in TOK_STORE_{}", hook.region.instrs.size(),
                              kernel_.name, j));
  }

  // ---- the fusion

  Instr* InBody(const Instr* value) {
    if (auto known = inside_.find(value); known != inside_.end()) return known->second;
    if (value->op() == Op::kConstant && IsImmediate(*value)) return CopyInto(*value, {});
    return ParameterOf(value);
  }

  Instr* ParameterOf(const Instr* value) {
    Instr*& parameter = parameters_[value];
    if (parameter != nullptr) return parameter;
    parameter = body_->AppendParameter(static_cast<int64_t>(operands_.size()), value->shape(), "");
    parameter->set_origins(value->origins());
    operands_.push_back(const_cast<Instr*>(value));
    return parameter;
  }

  Instr* CopyInto(const Instr& instr, std::vector<Instr*> operands) {
    Instr* copy = Editor(instr, *body_).Copy(instr, std::move(operands));
    copy->set_name(instr.name());
    return inside_[&instr] = copy;
  }

  void CopyAll(const InstrSet& instrs) {
    for (const Instr* instr : parent_.PostOrder()) {
      if (!instrs.contains(instr) || inside_.contains(instr)) continue;
      std::vector<Instr*> operands;
      for (const Instr* operand : instr->operands()) operands.push_back(InBody(operand));
      CopyInto(*instr, std::move(operands));
    }
  }

  void CopyCall() {
    std::vector<Instr*> operands;
    for (size_t i = 0; i < call_.operand_count(); ++i)
      operands.push_back(kernel_.inputs[i].hooked ? InBody(call_.operand(i))
                                                  : ParameterOf(call_.operand(i)));
    Instr* call = CopyInto(call_, std::move(operands));
    for (size_t j = 0; j < outputs_.size(); ++j) {
      Instr* value = call;
      if (call_.shape().IsTuple()) {
        value = Editor(call_, *body_)
                    .Make(Op::kGetTupleElement, call_.shape().elements()[j], {call},
                          TupleIndexAttrs{static_cast<int64_t>(j)});
        if (outputs_[j] != nullptr) inside_[outputs_[j]] = value;
      }
      values_.push_back(value);
    }
  }

  // The results of the fusion, and what each replaces: outputs that are needed, then roots.
  void FindResults(std::vector<Instr*>& results, std::vector<Instr*>& replaced) {
    InstrSet gone = behind_;
    for (size_t j = 0; j < outputs_.size(); ++j) {
      bool is_hidden =
          outputs_[j] != nullptr && roots_.contains(j) && !IsNeededOutside(*outputs_[j], gone);
      if (is_hidden) continue;
      results.push_back(values_[j]);
      replaced.push_back(outputs_[j]);
    }
    for (size_t j = 0; j < outputs_.size(); ++j) {
      if (!roots_.contains(j)) continue;
      for (const Instr* root : roots_[j]) {
        results.push_back(inside_[root]);
        replaced.push_back(const_cast<Instr*>(root));
      }
    }
  }

  void Build() {
    body_ = parent_.module()->AddComputation("custom_kernel_" + kernel_.name);
    body_->is_public = false;
    body_->origins = call_.origins();
    CopyAll(before_);
    CopyCall();
    CopyAll(behind_);
    std::vector<Instr*> results, replaced;
    FindResults(results, replaced);
    std::vector<Shape> shapes;
    for (const Instr* result : results) shapes.push_back(result->shape());
    Shape shape = results.size() == 1 ? shapes[0] : Shape::Tuple(shapes);
    body_->set_root(results.size() == 1 ? results[0]
                                        : Editor(call_, *body_).Make(Op::kTuple, shape, results));
    body_->PutInOrder();
    Instr* fusion = parent_.Append(Op::kFusion, shape, operands_,
                                   FusionAttrs{.kind = FusionKind::kCustom, .output_aliases = {}},
                                   kernel_.name);
    fusion->set_called({body_});
    fusion->set_origins(call_.origins());
    fusion->set_pos(call_.pos());
    std::vector<Instr*> dead(parent_.PostOrder());
    for (size_t k = 0; k < results.size(); ++k) {
      if (replaced[k] == nullptr) continue;
      Instr* value = fusion;
      if (results.size() > 1)
        value = Editor::Beside(call_).Make(Op::kGetTupleElement, shapes[k], {fusion},
                                           TupleIndexAttrs{static_cast<int64_t>(k)});
      parent_.ReplaceUses(replaced[k], value);
    }
    for (size_t k = dead.size(); k-- > 0;) {
      const Instr* instr = dead[k];
      if (inside_.contains(instr) && instr->users().empty() && parent_.root() != instr)
        parent_.Remove(dead[k]);
    }
  }

  Instr& call_;
  const CustomKernel kernel_;
  PassContext& context_;
  Computation& parent_;
  std::vector<Instr*> outputs_;                                  // per output: its value, or null
  InstrSet before_, behind_;                                     // what hooks compute
  InstrSet after_;                                               // what depends on the call
  std::unordered_map<size_t, std::vector<const Instr*>> roots_;  // per output with a store hook
  // The body: its parameters' operands, copies of instructions, values of the outputs.
  Computation* body_ = nullptr;
  std::vector<Instr*> operands_, values_;
  std::unordered_map<const Instr*, Instr*> parameters_, inside_;
};

}  // namespace

// Also reports what is wrong with the description of a kernel, before anything is planned.
Result<Changed> FuseCustomKernels(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  for (size_t i = 0, count = module.computations().size(); i < count; ++i) {
    Computation& computation = *module.computations()[i];
    if (computation.CountOf(Op::kCustomCall) == 0) continue;
    for (Instr* instr : computation.PostOrder()) {
      if (instr->is_removed() || !IsCustomKernelCall(*instr)) continue;
      TOK_TRY(CustomKernel kernel, CustomKernelOf(*instr));
      instr->set_name(kernel.name);  // of its step in reports
      if (CustomFusion(*instr, std::move(kernel), context).Run()) changed = Changed::kYes;
    }
    if (changed == Changed::kYes) computation.PutInOrder();
  }
  return changed;
}

}  // namespace tokamak
