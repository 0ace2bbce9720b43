#include "rewrite/loop_edit.h"

#include <algorithm>

#include "rewrite/editor.h"

namespace tokamak {
namespace {

void AddRounds(const Computation& computation, bool in_loop, std::set<const Computation*>& found) {
  if (in_loop && !found.insert(&computation).second) return;
  for (const Instr* caller : computation.Callers()) {
    bool is_loop = caller->op() == Op::kWhile;
    if (RunsComputations(caller->op()))
      for (const Computation* called : caller->called())
        AddRounds(*called, in_loop || is_loop, found);
  }
}

}  // namespace

std::set<const Computation*> ComputationsOfLoops(const Module& module) {
  std::set<const Computation*> found;
  if (module.entry() != nullptr) AddRounds(*module.entry(), false, found);
  return found;
}
namespace {

// The number of instructions that call a computation.
size_t CountCallers(const Computation& computation) {
  size_t callers = 0;
  for (const auto& other : computation.module()->computations())
    for (const Instr* caller : other->Callers())
      for (const Computation* called : caller->called()) callers += called == &computation;
  return callers;
}

// For instructions that may have lost their users.
bool IsDead(const Instr& instr) {
  switch (instr.op()) {
    case Op::kDot:
    case Op::kSlice:
    case Op::kTranspose:
    case Op::kReduce:
    case Op::kAdd:
    case Op::kBroadcast:
    case Op::kConcatenate:
      return !instr.has_extras();
    default:
      return false;
  }
}

}  // namespace

std::optional<LoopRow> RowOf(const WhileLoop& loop, const Instr* value) {
  if (value->op() != Op::kReshape) return std::nullopt;
  const Instr* slice = value->operand(0);
  if (slice->op() != Op::kDynamicSlice) return std::nullopt;
  std::optional<size_t> number = ParameterNumber(slice->operand(0));
  if (!number || !loop.IsInvariant(*number)) return std::nullopt;
  const Dims& dims = slice->operand(0)->shape().dims();
  if (dims.size() != value->shape().dims().size() + 1 || slice->shape().dim(0) != 1)
    return std::nullopt;
  for (size_t i = 1; i < dims.size(); ++i)
    if (slice->shape().dim(i) != dims[i] || value->shape().dim(i - 1) != dims[i])
      return std::nullopt;
  return LoopRow{*number, slice->operand(1)};
}

std::optional<WhileLoop> EditableLoop(Instr* instr) {
  std::optional<WhileLoop> loop = LoopOf(instr);
  if (!loop || loop->size() < 2 || instr->parent()->root() == instr || !TripCount(*loop))
    return std::nullopt;
  for (const Instr* user : instr->users())
    if (user->op() != Op::kGetTupleElement) return std::nullopt;
  if (CountCallers(*loop->condition) != 1 || CountCallers(*loop->body) != 1) return std::nullopt;
  return loop;
}

LoopEdit::LoopEdit(const WhileLoop& loop) : loop_(loop) {
  for (size_t i = 0; i < loop.size(); ++i) {
    operands_.push_back(loop.init(i));
    next_.push_back(loop.next(i));
    shapes_.push_back(loop.init(i)->shape());
  }
}

bool LoopEdit::IsLoopInvariant(const Instr* value) const {
  while (value->op() != Op::kParameter) {
    if (value->op() != Op::kReshape && value->op() != Op::kTranspose && value->op() != Op::kSlice &&
        value->op() != Op::kConvert)
      return false;
    value = value->operand(0);
  }
  return loop_.IsInvariant(*ParameterNumber(value));
}

Instr* LoopEdit::BeforeLoop(Instr* value) {
  if (std::optional<size_t> number = ParameterNumber(value)) return loop_.init(*number);
  return Editor(*value, before())
      .Make(value->op(), value->shape(), {BeforeLoop(value->operand(0))}, value->attrs());
}

Instr* LoopEdit::Zero(const Instr& like, ElementType type) {
  return Editor(like, body()).Constant(Literal::Scalar(type, 0));
}

Instr* LoopEdit::Carry(Instr* first) {
  auto number = static_cast<int64_t>(operands_.size());
  loop_.condition->AppendParameter(number, first->shape());
  Instr* parameter = body().AppendParameter(number, first->shape());
  operands_.push_back(first);
  next_.push_back(parameter);
  shapes_.push_back(first->shape());
  return parameter;
}

void LoopEdit::SetNext(Instr* parameter, Instr* value) {
  next_[*ParameterNumber(parameter)] = value;
}

void LoopEdit::ReplaceInBody(Instr* old, Instr* by) {
  body().ReplaceUses(old, by);
  for (Instr*& value : next_)
    if (value == old) value = by;
}

size_t LoopEdit::NumberAfter(size_t carry) const {
  auto before = std::count_if(dropped_.begin(), dropped_.end(),
                              [&](size_t dropped) { return dropped < carry; });
  return carry - static_cast<size_t>(before);
}

Instr* LoopEdit::Finish() {
  std::vector<Instr*> operands, next, in_body, in_condition;
  std::vector<Shape> shapes;
  std::vector<Instr*> gone;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (std::find(dropped_.begin(), dropped_.end(), i) != dropped_.end()) {
      gone.push_back(body().parameter(i));
      continue;
    }
    operands.push_back(operands_[i]);
    next.push_back(next_[i]);
    shapes.push_back(shapes_[i]);
    in_body.push_back(body().parameter(i));
    in_condition.push_back(loop_.condition->parameter(i));
  }
  Instr* root = body().root();
  body().set_root(body().Append(Op::kTuple, Shape::Tuple(shapes), next));
  body().Remove(root);
  std::vector<Instr*> order = body().Instrs();
  for (size_t i = order.size(); i-- > 0;)
    if (order[i]->users().empty() && order[i] != body().root() && IsDead(*order[i]))
      body().Remove(order[i]);
  if (!gone.empty()) {
    std::vector<Instr*> of_condition;
    for (size_t i : dropped_) of_condition.push_back(loop_.condition->parameter(i));
    body().SetParameters(in_body);
    for (Instr* parameter : gone) body().Remove(parameter);
    loop_.condition->SetParameters(in_condition);
    for (Instr* parameter : of_condition) loop_.condition->Remove(parameter);
    loop_.condition->PutInOrder();
  }
  body().PutInOrder();
  old_ = loop_.instr;
  Instr* made = before().Append(Op::kWhile, Shape::Tuple(shapes), operands, {}, old_->name());
  made->set_called({loop_.condition, loop_.body});
  made->set_origins(old_->origins());
  made->set_pos(old_->pos());
  if (old_->has_extras()) made->mutable_extras() = old_->extras();
  std::vector<Instr*> users(old_->users().begin(), old_->users().end());
  for (Instr* user : users) {
    auto i = static_cast<size_t>(user->attrs<TupleIndexAttrs>().index);
    if (std::find(dropped_.begin(), dropped_.end(), i) != dropped_.end()) continue;
    user->set_attrs(TupleIndexAttrs{static_cast<int64_t>(NumberAfter(i))});
    user->set_operand(0, made);
  }
  return made;
}

void LoopEdit::Close() {
  Computation& around = before();
  around.Remove(old_);
  around.PutInOrder();
}

}  // namespace tokamak
