#include "rewrite/rules.h"

namespace tokamak {
namespace {

Instr* BuildNode(Editor& edit, const m::Pattern::Node& node, const m::Match& match) {
  switch (node.kind) {
    case m::Pattern::Kind::kVar:
      return match[m::Var{static_cast<uint8_t>(node.var)}];
    case m::Pattern::Kind::kNumber:
      break;
    case m::Pattern::Kind::kOp: {
      std::vector<Instr*> operands;
      for (size_t i = 0; i < node.operand_count; ++i)
        operands.push_back(BuildNode(edit, node.operand(i), match));
      return edit.Make(node.op, std::move(operands));
    }
  }
  const Shape& shape = match.root()->shape();
  switch (node.number) {
    case m::Number::kZero:
    case m::Number::kPositiveZero:
    case m::Number::kFalse:
      return edit.Filled(shape, 0.0);
    case m::Number::kNegativeZero:
      return edit.Filled(shape, -0.0);
    case m::Number::kOne:
    case m::Number::kTrue:
      return edit.Filled(shape, 1);
    case m::Number::kMinusOne:
      return edit.Filled(shape, -1);
    case m::Number::kAllOnes: {
      if (shape.type() == ElementType::kPred) return edit.Filled(shape, 1);
      return edit.Broadcast(edit.Constant(Literal::ScalarInt(shape.type(), -1)), shape);
    }
    case m::Number::kAny:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

Instr* Build(Editor& edit, const m::Pattern& pattern, const m::Match& match) {
  return BuildNode(edit, pattern.node(), match);
}

}  // namespace tokamak
