#include "rewrite/library/fused_call.h"

#include <string>

#include "ir/clone.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

constexpr std::string_view kTarget = "fused", kMustFuse = "MUST_FUSE";

bool SaysMustFuse(const Instr& instr) {
  const AttrValue* said = Find(instr.extras().frontend_attributes, kMustFuse);
  const std::string* text = said == nullptr ? nullptr : said->As<std::string>();
  return text != nullptr && *text == "true";
}

// An attribute would constrain the call itself, which inlining removes; an origin goes to the body.
void RequireFused(const Computation& body, int number) {
  OriginTable& table = body.module()->origins();
  Origin mark;
  mark.op_name = "tokamak.require_fused:=fused." + std::to_string(number);
  OriginId id = table.Add(mark);
  for (Instr* instr : body.Instrs())
    if (instr->op() != Op::kParameter && instr->op() != Op::kConstant)
      instr->set_origins(table.Merge(instr->origins(), id));
}

}  // namespace

bool IsFusedCall(const Instr& instr) {
  if (instr.called().size() != 1) return false;
  if (instr.op() == Op::kCustomCall) return instr.attrs<CustomCallAttrs>().target == kTarget;
  return (instr.op() == Op::kCall || instr.op() == Op::kFusion) && SaysMustFuse(instr);
}

Changed ReadFusedCall(Instr* call, int number, PassContext& context) {
  const Computation& callee = *call->called(0);
  std::string why;
  if (!(callee.root()->shape() == call->shape()))
    why = "its result is not that of the computation that it calls";
  if (call->is_control_predecessor() || !call->extras().control_predecessors.empty())
    why = "it has control dependences";
  if (!why.empty()) {
    context.Rejected("fused.opaque", *call, nullptr, why);
    return Changed::kNo;
  }
  // The calls of one function are separate constraints.
  Computation* body = CloneComputation(callee, callee.name());
  RequireFused(*body, number);
  std::vector<Instr*> operands(call->operands().begin(), call->operands().end());
  Computation& parent = *call->parent();
  Instr* plain = parent.Append(Op::kCall, call->shape(), std::move(operands), {}, call->name());
  plain->set_called({body});
  plain->set_origins(call->origins());
  plain->set_pos(call->pos());
  context.Accepted("fused.require", *call, plain, callee.name() + " must be one kernel");
  parent.ReplaceUses(call, plain);
  parent.Remove(call);
  return Changed::kYes;
}

}  // namespace tokamak
