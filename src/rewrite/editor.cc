#include "rewrite/editor.h"

namespace tokamak {

Instr* Editor::Make(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs) {
  Instr* made =
      computation_.Append(op, std::move(shape), std::move(operands), std::move(attrs), of_.name());
  made->set_origins(of_.origins());
  made->set_pos(of_.pos());
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

Computation* AdditionFor(const Instr& of, ElementType type) {
  Computation* body = of.parent()->module()->AddComputation(of.name() + "_sum");
  body->is_public = false;
  Instr* x = body->AppendParameter(0, Shape::Scalar(type));
  Instr* y = body->AppendParameter(1, Shape::Scalar(type));
  body->set_root(body->Append(Op::kAdd, Shape::Scalar(type), {x, y}));
  return body;
}

void Editor::Replace(Instr* by) {
  bool is_root = computation_.root() == &of_;
  computation_.ReplaceUses(&of_, by);
  if (is_root) computation_.set_root(by);
  computation_.Remove(&of_);
}

}  // namespace tokamak
