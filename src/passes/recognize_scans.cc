#include <algorithm>
#include <map>

#include "analysis/cumulative_window.h"
#include "ir/builder.h"
#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// The op of a body that applies one op to both parameters.
const Instr* OnlyOp(const Computation& body) {
  const Instr* root = body.root();
  if (body.parameters().size() != 2 || root->operand_count() != 2) return nullptr;
  const Instr *a = root->operand(0), *b = root->operand(1);
  const Instr *p = body.parameter(0), *q = body.parameter(1);
  return (a == p && b == q) || (a == q && b == p) ? root : nullptr;
}

// Sequential accumulation with rounding in every step matches the window bit for bit. A reverse
// scan has a different order, which only ops that do not round allow.
bool IsExact(Op op, ElementType type, bool is_reverse) {
  switch (op) {
    case Op::kMaximum:
    case Op::kMinimum:
      return !IsComplex(type);
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      return true;
    case Op::kAdd:
      return IsInteger(type) || (IsReal(type) && !is_reverse);
    case Op::kMultiply:
      return IsInteger(type);
    default:
      return false;
  }
}

// (element, carry) to (next, next).
Result<Computation*> StepOf(const Instr& instr, const Instr& op, const Shape& part) {
  Builder b(instr, "scan_step");
  Instr* x = b.Parameter(part);
  Instr* carry = b.Parameter(part);
  bool carry_first = op.operand(0) == op.parent()->parameter(0);
  Instr* next = carry_first ? b.Append(op.op(), {carry, x}) : b.Append(op.op(), {x, carry});
  return b.Finish(b.Tuple({next, next}));
}

}  // namespace

// Replaces a reduce-window that is a cumulative sum, product, maximum ... by a scan, which is
// linear work. Windows that are not fully cumulative stay.
Result<Changed> RecognizeScans(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  for (size_t i = 0, count = module.computations().size(); i < count; ++i) {
    if (module.computations()[i]->CountOf(Op::kReduceWindow) == 0) continue;
    for (Instr* instr : module.computations()[i]->PostOrder()) {
      if (instr->op() != Op::kReduceWindow || instr->operand_count() != 2) continue;
      if (!IsOrdinary(instr->shape()) || instr->shape().IsTuple()) continue;
      const Shape& shape = instr->operand(0)->shape();
      if (!IsOrdinary(shape) || !Compatible(shape, instr->shape())) continue;
      std::optional<CumulativeWindow> cumulative = CumulativeWindowOf(*instr);
      const Instr* op = OnlyOp(*instr->called(0));
      if (!cumulative || op == nullptr || !CanReplace(*instr, *instr)) continue;
      if (op->shape().type() != shape.type()) continue;
      if (!IsExact(op->op(), shape.type(), cumulative->is_reverse)) {
        context.Rejected("scan.rounds-differently", *instr);
        continue;
      }
      Dims dims = shape.dims();
      dims.erase(dims.begin() + cumulative->dimension);
      Shape part = Shape::Array(shape.type(), std::move(dims));
      TOK_TRY(Computation * step, StepOf(*instr, *op, part));
      Editor edit(*instr, Editor::Naming::kUnnamed);
      Instr* first = instr->operand(1);
      if (!part.IsScalar()) first = edit.Make(Op::kBroadcast, part, {first}, DimensionsAttrs{});
      Shape whole = Shape::Array(shape.type(), shape.dims());
      Instr* scan = edit.Make(Op::kScan, Shape::Tuple({whole, part}), {instr->operand(0), first},
                              ScanAttrs{.dimension = cumulative->dimension,
                                        .num_carries = 1,
                                        .is_reverse = cumulative->is_reverse,
                                        .is_associative = true},
                              step);
      Instr* value = edit.Make(Op::kGetTupleElement, whole, {scan}, TupleIndexAttrs{0});
      if (!edit.TryReplace(value)) continue;
      context.Accepted("scan.cumulative-window", *instr, scan);
      RemoveUnused(instr);
      changed = Changed::kYes;
    }
  }
  return changed;
}

}  // namespace tokamak
