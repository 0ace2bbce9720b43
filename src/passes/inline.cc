#include <algorithm>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "passes/passes.h"
#include "rewrite/bodies.h"

namespace tokamak {
namespace {

bool SaysNotInline(const Instr& call) {
  const AttrValue* said = Find(call.extras().frontend_attributes, "inlineable");
  return said != nullptr && said->As<std::string>() != nullptr &&
         *said->As<std::string>() == "false";
}

bool HasSharding(const Instr& instr) {
  return instr.extras().sharding.has_value();
}

// Why a call must stay; empty if it can be inlined. A sharding of a parameter, a result or the call
// itself could not be attached to any instruction.
std::string_view WhyKept(const Instr& call) {
  const Computation& callee = *call.called(0);
  if (!callee.execution_thread.empty()) return "inline.other-thread";
  if (SaysNotInline(call)) return "inline.forbidden";
  if (!call.extras().control_predecessors.empty() || call.is_control_predecessor())
    return "inline.ordered-by-control";
  bool sharded =
      HasSharding(call) || std::ranges::any_of(callee.results, [](const ResultInfo& info) {
        return info.sharding.has_value();
      });
  for (size_t i = 0; i < callee.parameters().size(); ++i)
    sharded =
        sharded || (HasSharding(*callee.parameter(i)) &&
                    callee.parameter(i)->extras().sharding != call.operand(i)->extras().sharding);
  return sharded ? "inline.sharded" : "";
}

std::string_view FirstPart(std::string_view name) {
  return name.substr(0, name.find('/'));
}

// Op names inside a function that JAX outlined start at that function, and many have no source
// line. After inlining they are prefixed with the name of the call and take its line.
class OriginsOfCall {
 public:
  OriginsOfCall(OriginTable& table, const Instr& call) : table_(table) {
    for (const Origin* origin : table.Of(call.origins()))
      if (call_.op_name.empty()) call_ = *origin;
    if (call.op() != Op::kComposite) return;
    // Its name stays as a scope: "jit(f)/composite:my.norm/mul".
    constexpr std::string_view kJaxName = "composite";
    is_composite_ = true;
    std::string& name = call_.op_name;
    if (name == kJaxName || name.ends_with("/" + std::string(kJaxName)))
      name.resize(name.size() - kJaxName.size());
    if (!name.empty() && !name.ends_with('/')) name += '/';
    name += std::string(kJaxName) + ":" + call.attrs<CompositeAttrs>().name;
  }

  void Lend(std::span<Instr* const> body) {
    if (call_.op_name.empty()) return;
    for (Instr* instr : body)
      if (instr->origins() != OriginId::kNone)
        instr->set_origins(Lent(instr->origins()));
      else if (is_composite_)
        instr->set_origins(table_.Add(call_));
  }

 private:
  OriginId Lent(OriginId origins) {
    auto [known, is_new] = known_.try_emplace(origins, OriginId::kNone);
    if (!is_new) return known->second;
    std::vector<Origin> own;  // copies, because the table grows
    for (const Origin* origin : table_.Of(origins)) own.push_back(*origin);
    for (Origin& origin : own) {
      if (is_composite_)
        origin.op_name = call_.op_name + "/" + std::string(OfComposite(origin.op_name));
      else if (FirstPart(origin.op_name) != FirstPart(call_.op_name))
        origin.op_name = call_.op_name + "/" + origin.op_name;
      if (origin.frame == FrameId::kNone) origin.frame = call_.frame;
      known->second = table_.Merge(known->second, table_.Add(origin));
    }
    return known->second;
  }

  // What follows the scope of the composite: composites and constraints (fusion/constraints.h)
  // inside it, or the op.
  static std::string_view OfComposite(std::string_view name) {
    size_t inner = std::min(name.find("composite:"), name.find("tokamak."));
    if (inner == std::string_view::npos) inner = name.rfind('/') + 1;
    return name.substr(inner);
  }

  OriginTable& table_;
  bool is_composite_ = false;
  Origin call_;
  std::unordered_map<OriginId, OriginId> known_;
};

class Inliner {
 public:
  Inliner(Module& module, PassContext& context) : context_(context), total_(module.CountInstrs()) {
    auto growth = static_cast<size_t>(context.limits.inlined_growth);
    most_ = std::max(static_cast<size_t>(context.limits.inlined_instrs), growth * total_);
  }

  // The callees of `caller` have already been processed.
  Changed Run(Computation& caller) {
    if (caller.CountOf(Op::kCall) + caller.CountOf(Op::kFusion) + caller.CountOf(Op::kComposite) ==
        0)
      return Changed::kNo;
    std::vector<Instr*> instrs = caller.PostOrder();
    // A composite is equivalent to its decomposition.
    auto is_call = [](const Instr* instr) {
      return instr->op() == Op::kCall || instr->op() == Op::kFusion ||
             (instr->op() == Op::kComposite && instr->called().size() == 1);
    };
    // Bodies take the positions of their calls, so side effects keep their order.
    std::vector<Instr*> order;
    std::vector<Instr*> done;
    for (Instr* instr : instrs) {
      if (!is_call(instr) || !MayInline(*instr)) {
        order.push_back(instr);
        continue;
      }
      total_ += instr->called(0)->size();
      size_t before = order.size();
      Instr* root = PasteBody(*instr->called(0), instr->operands(), caller, order);
      OriginsOfCall(caller.module()->origins(), *instr).Lend(std::span(order).subspan(before));
      context_.Accepted(RuleOf(instr->op()), *instr, root, instr->called(0)->name());
      KeepOrigins(*instr, root);
      caller.ReplaceUses(instr, root);
      done.push_back(instr);
    }
    for (size_t i = done.size(); i-- > 0;) caller.Remove(done[i]);
    if (done.empty()) return Changed::kNo;
    caller.SetOrder(order);
    return Changed::kYes;
  }

 private:
  static std::string_view RuleOf(Op op) {
    if (op == Op::kComposite) return "inline.composite";
    return op == Op::kFusion ? "inline.fusion" : "inline.call";
  }

  bool MayInline(const Instr& call) {
    std::string_view why = WhyKept(call);
    std::string because;
    const Computation& callee = *call.called(0);
    if (why.empty() && !(callee.root()->shape() == call.shape())) why = "inline.other-layout";
    if (why.empty() && total_ + callee.size() > most_) {
      why = "inline.too-large";
      because = fmt::format("{} instructions and {} of {}, {} at most", total_, callee.size(),
                            callee.name(), most_);
    }
    if (why.empty()) return true;
    context_.Rejected(why, call, nullptr, std::move(because));
    return false;
  }

  PassContext& context_;
  size_t total_, most_ = 0;
};

}  // namespace

// Inlines each call, each composite, and each fusion from the input program. Calls stay if the
// module would exceed PassLimits::inlined_instrs, or if a sharding, a control dependence, an
// execution thread or the program itself prevents inlining. dce removes bodies without callers.
Result<Changed> Inline(Module& module, PassContext& context) {
  Inliner inliner(module, context);
  Changed changed = Changed::kNo;
  for (Computation* computation : module.CalleesFirst()) changed |= inliner.Run(*computation);
  return changed;
}

}  // namespace tokamak
