#include "rewrite/editor.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/infer.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

bool WaitsOrIsWaitedFor(const Instr& instr) {
  return instr.is_control_predecessor() ||
         (instr.has_extras() && !instr.extras().control_predecessors.empty());
}

bool HasNull(const std::vector<Instr*>& operands) {
  return std::ranges::find(operands, nullptr) != operands.end();
}

std::vector<Shape> ShapesOf(const std::vector<Instr*>& operands) {
  std::vector<Shape> shapes;
  shapes.reserve(operands.size());
  for (const Instr* operand : operands) shapes.push_back(operand->shape());
  return shapes;
}

}  // namespace

Instr* Editor::Append(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs,
                      std::span<Computation* const> called, size_t captures) {
  Instr* made = computation_.Append(op, std::move(shape), std::move(operands), std::move(attrs),
                                    naming_ == Naming::kLike ? of_.name() : std::string());
  if (!called.empty()) made->set_called({called.begin(), called.end()});
  made->set_captures(captures);
  made->set_origins(of_.origins());
  made->set_pos(of_.pos());
  made_.push_back(made);
  return made;
}

Instr* Editor::Make(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs,
                    Computation* called) {
  if (HasNull(operands)) return nullptr;
  std::span<Computation* const> callees;
  if (called != nullptr) callees = {&called, 1};
  return Append(op, std::move(shape), std::move(operands), std::move(attrs), callees, 0);
}

Instr* Editor::Constant(Literal value) {
  Shape shape = value.shape();
  return Make(Op::kConstant, std::move(shape), {}, ConstantAttrs{std::move(value)});
}

Instr* Editor::Broadcast(Instr* scalar, const Shape& shape) {
  if (shape.IsScalar()) return scalar;
  return Make(Op::kBroadcast, shape.WithoutLayout(), {scalar}, DimensionsAttrs{});
}

Instr* Editor::Filled(const Shape& shape, const Literal& scalar) {
  auto bytes = static_cast<size_t>(BytesOf(scalar.type()));
  return Broadcast(
      Constant(Literal::Array(Shape::Scalar(scalar.type()), scalar.data().Window(0, bytes))),
      shape);
}

Instr* Editor::Filled(const Shape& shape, double number) {
  return Broadcast(Constant(Literal::Scalar(shape.type(), number)), shape);
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

Instr* Editor::Copy(const Instr& instr, std::vector<Instr*> operands) {
  if (HasNull(operands)) return nullptr;
  Instr* made = Append(instr.op(), instr.shape(), std::move(operands), instr.attrs(),
                       instr.called(), instr.captures());
  MergeOrigins(made, instr);
  return made;
}

Instr* Editor::Make(Op op, std::vector<Instr*> operands, Attrs attrs) {
  return MakeCalling(op, std::move(operands), std::move(attrs), {});
}

Instr* Editor::MakeShaped(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs) {
  if (HasNull(operands)) return nullptr;
  std::vector<Shape> shapes = ShapesOf(operands);
  if (!InferShape({op, shapes, attrs, {}, 0, &shape}).ok()) return nullptr;
  return Append(op, std::move(shape), std::move(operands), std::move(attrs), {}, 0);
}

Instr* Editor::MakeLike(const Instr& instr, std::vector<Instr*> operands) {
  return MakeLike(instr, std::move(operands), instr.attrs());
}

Instr* Editor::MakeLike(const Instr& instr, std::vector<Instr*> operands, Attrs attrs) {
  return MakeCalling(instr.op(), std::move(operands), std::move(attrs), instr.called(),
                     instr.captures());
}

Instr* Editor::MakeCalling(Op op, std::vector<Instr*> operands, Attrs attrs,
                           std::span<Computation* const> called, size_t captures) {
  if (HasNull(operands)) return nullptr;
  std::vector<Shape> shapes = ShapesOf(operands);
  Result<Shape> shape = InferShape({op, shapes, attrs, called, captures, nullptr});
  if (!shape.ok()) return nullptr;
  return Append(op, shape.value().WithoutLayout(), std::move(operands), std::move(attrs), called,
                captures);
}

bool Editor::Made(const Instr* instr) const {
  return std::ranges::find(made_, instr) != made_.end();
}

void Editor::Discard() {
  for (size_t i = made_.size(); i-- > 0;) computation_.Remove(made_[i]);
  made_.clear();
}

bool Editor::CanReplace(Instr* to) {
  bool is_new = Made(to);
  if (is_new && Compatible(replaced_->shape(), to->shape())) to->set_shape(replaced_->shape());
  return tokamak::CanReplace(*replaced_, *to, is_new);
}

bool Editor::TryReplace(Instr* to) {
  if (!CanReplace(to)) {
    Discard();
    return false;
  }
  ReplaceBy(replaced_, to, Made(to));
  return true;
}

void Editor::Replace(Instr& from, Instr* to) {
  HandOn(from, to, Made(to));
  computation_.ReplaceUses(&from, to);
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

bool IsOrdinary(const Shape& shape) {
  auto is_ordinary = [](const Shape& element) { return IsOrdinary(element); };
  if (shape.IsTuple()) return std::ranges::all_of(shape.elements(), is_ordinary);
  return shape.IsStaticArray() && shape.quant() == nullptr;
}

bool IsOrdinary(const Instr& instr) {
  return IsOrdinary(instr.shape()) &&
         std::ranges::all_of(instr.operands(),
                             [](const Instr* operand) { return IsOrdinary(operand->shape()); });
}

Computation* AdditionFor(const Instr& of, ElementType type) {
  Builder b(of, of.name() + "_sum");
  Instr* x = b.Parameter(Shape::Scalar(type));
  Instr* y = b.Parameter(Shape::Scalar(type));
  return b.FinishValid(b.Add(x, y));
}

}  // namespace tokamak
