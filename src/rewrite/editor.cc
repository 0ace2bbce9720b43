#include "rewrite/editor.h"

#include <algorithm>

#include "rewrite/replace.h"

namespace tokamak {
namespace {

bool WaitsOrIsWaitedFor(const Instr& instr) {
  return instr.is_control_predecessor() ||
         (instr.has_extras() && !instr.extras().control_predecessors.empty());
}

// To an instruction that was made for it, and says nothing itself. A backend_config belongs to the
// op that it was written for.
void HandOnExtras(const Instr& from, Instr& to) {
  if (!from.has_extras()) return;
  const InstrExtras said = from.extras();
  bool says_something = said.sharding || said.sharding_rule || !said.frontend_attributes.empty() ||
                        !said.discardable.empty();
  if (says_something && !to.has_extras()) {
    InstrExtras& extras = to.mutable_extras();
    extras.sharding = said.sharding;
    extras.sharding_rule = said.sharding_rule;
    extras.frontend_attributes = said.frontend_attributes;
    extras.discardable = said.discardable;
  }
  for (Instr* before : said.control_predecessors) to.AddControlPredecessor(before);
}

}  // namespace

Instr* Editor::Make(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs,
                    Computation* called) {
  Instr* made = computation_.Append(op, std::move(shape), std::move(operands), std::move(attrs),
                                    naming_ == Naming::kLike ? of_.name() : std::string());
  if (called != nullptr) made->set_called({called});
  made->set_origins(of_.origins());
  made->set_pos(of_.pos());
  made_.push_back(made);
  return made;
}

Instr* Editor::Constant(Literal value) {
  Shape shape = Shape::Scalar(value.shape().type());
  return Make(Op::kConstant, shape, {}, ConstantAttrs{std::move(value)});
}

Instr* Editor::Spread(Instr* scalar, const Shape& shape) {
  return Make(Op::kBroadcast, shape, {scalar}, DimensionsAttrs{{}});
}

Instr* Editor::Reshaped(Instr* x, const Dims& dims) {
  if (x->shape().dims() == dims) return x;
  return Make(Op::kReshape, Shape::Array(x->shape().type(), dims), {x});
}

Instr* Editor::Converted(Instr* x, ElementType type) {
  if (x->shape().type() == type) return x;
  return Make(Op::kConvert, Shape::Array(type, x->shape().dims()), {x});
}

Instr* Editor::Element(Instr* tuple, size_t i) {
  return Make(Op::kGetTupleElement, tuple->shape().elements()[i], {tuple},
              TupleIndexAttrs{static_cast<int64_t>(i)});
}

void Editor::Replace(Instr& from, Instr* to) {
  MergeOrigins(to, from);
  if (std::ranges::find(made_, to) != made_.end()) HandOnExtras(from, *to);
  bool is_root = computation_.root() == &from;
  computation_.ReplaceUses(&from, to);
  if (is_root) computation_.set_root(to);
  computation_.Remove(&from);
}

void Editor::ReplaceParts(const std::vector<Instr*>& values) {
  Instr& of = *replaced_;
  if (!of.shape().IsTuple()) return Replace(of, values[0]);
  std::vector<Instr*> users(of.users().begin(), of.users().end());
  for (Instr* user : users)
    if (user->op() == Op::kGetTupleElement && !WaitsOrIsWaitedFor(*user))
      Replace(*user, values[static_cast<size_t>(user->attrs<TupleIndexAttrs>().index)]);
  if (of.users().empty() && computation_.root() != &of) return computation_.Remove(&of);
  Replace(of, Make(Op::kTuple, of.shape(), values));
}

Computation* AdditionFor(const Instr& of, ElementType type) {
  Computation* body = of.parent()->module()->AddComputation(of.name() + "_sum");
  body->is_public = false;
  Instr* x = body->AppendParameter(0, Shape::Scalar(type));
  Instr* y = body->AppendParameter(1, Shape::Scalar(type));
  body->set_root(body->Append(Op::kAdd, Shape::Scalar(type), {x, y}));
  return body;
}

}  // namespace tokamak
