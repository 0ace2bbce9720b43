#include <algorithm>

#include "ir/infer.h"
#include "rewrite/replace.h"
#include "rewrite/rules.h"

namespace tokamak {

Instr* Rewriter::Append(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs,
                        std::span<Computation* const> called, size_t captures) {
  Instr* made = AppendLike(*root_, op, std::move(shape), std::move(operands), std::move(attrs));
  made->set_called({called.begin(), called.end()});
  made->set_captures(captures);
  made_.push_back(made);
  return made;
}

Instr* Rewriter::MakeShaped(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs) {
  std::vector<Shape> shapes;
  for (const Instr* operand : operands) {
    if (operand == nullptr) return nullptr;
    shapes.push_back(operand->shape());
  }
  InferInput input{op, shapes, attrs, {}, 0, &shape};
  if (!InferShape(input).ok()) return nullptr;
  return Append(op, std::move(shape), std::move(operands), std::move(attrs), {}, 0);
}

Instr* Rewriter::Make(Op op, std::vector<Instr*> operands, Attrs attrs) {
  return MakeCalling(op, std::move(operands), std::move(attrs), {});
}

Instr* Rewriter::MakeCalling(Op op, std::vector<Instr*> operands, Attrs attrs,
                             std::span<Computation* const> called, size_t captures) {
  std::vector<Shape> shapes;
  for (const Instr* operand : operands) {
    if (operand == nullptr) return nullptr;
    shapes.push_back(operand->shape());
  }
  Result<Shape> shape = InferShape({op, shapes, attrs, called, captures, nullptr});
  if (!shape.ok()) return nullptr;
  return Append(op, shape.value().WithoutLayout(), std::move(operands), std::move(attrs), called,
                captures);
}

Instr* Rewriter::MakeLike(const Instr* instr, std::vector<Instr*> operands) {
  return MakeLikeWith(instr, std::move(operands), instr->attrs());
}

Instr* Rewriter::MakeLikeWith(const Instr* instr, std::vector<Instr*> operands, Attrs attrs) {
  return MakeCalling(instr->op(), std::move(operands), std::move(attrs), instr->called(),
                     instr->captures());
}

Instr* Rewriter::Copy(const Instr* instr, std::vector<Instr*> operands) {
  if (std::ranges::count(operands, nullptr) > 0) return nullptr;
  Instr* made = Append(instr->op(), instr->shape(), std::move(operands), instr->attrs(),
                       instr->called(), instr->captures());
  MergeOrigins(made, *instr);
  return made;
}

Instr* Rewriter::Constant(Literal literal) {
  Shape shape = literal.shape();
  return Append(Op::kConstant, std::move(shape), {}, ConstantAttrs{std::move(literal)}, {}, 0);
}

Instr* Rewriter::Broadcast(Instr* scalar, const Shape& shape) {
  if (scalar == nullptr || shape.IsScalar()) return scalar;
  return MakeShaped(Op::kBroadcast, shape.WithoutLayout(), {scalar}, DimensionsAttrs{});
}

Instr* Rewriter::Filled(const Shape& shape, const Literal& scalar) {
  return Broadcast(Constant(Literal::Array(
                       Shape::Scalar(scalar.type()),
                       scalar.data().Window(0, static_cast<size_t>(BytesOf(scalar.type()))))),
                   shape);
}

Instr* Rewriter::Filled(const Shape& shape, double number) {
  return Broadcast(Constant(Literal::Scalar(shape.type(), number)), shape);
}

Instr* Rewriter::Build(const m::Pattern::Node& node, const m::Match& match) {
  switch (node.kind) {
    case m::Pattern::Kind::kVar:
      return match[m::Var{static_cast<uint8_t>(node.var)}];
    case m::Pattern::Kind::kNumber:
      break;
    case m::Pattern::Kind::kOp: {
      std::vector<Instr*> operands;
      for (size_t i = 0; i < node.operand_count; ++i)
        operands.push_back(Build(node.operand(i), match));
      return Make(node.op, std::move(operands));
    }
  }
  const Shape& shape = root_->shape();
  switch (node.number) {
    case m::Number::kZero:
    case m::Number::kPositiveZero:
    case m::Number::kFalse:
      return Filled(shape, 0.0);
    case m::Number::kNegativeZero:
      return Filled(shape, -0.0);
    case m::Number::kOne:
    case m::Number::kTrue:
      return Filled(shape, 1);
    case m::Number::kMinusOne:
      return Filled(shape, -1);
    case m::Number::kAllOnes: {
      if (shape.type() == ElementType::kPred) return Filled(shape, 1);
      return Broadcast(Constant(Literal::ScalarInt(shape.type(), -1)), shape);
    }
    case m::Number::kAny:
      return nullptr;
  }
  return nullptr;
}

}  // namespace tokamak
