#include "rewrite/normal/rules.h"

#include "rewrite/expand/expand.h"

namespace tokamak {
namespace {

// Formulas are simplified like all other new instructions.
class NormalTerms final : public TermGraph {
 public:
  explicit NormalTerms(NormalGraph& graph) : graph_(graph) {}
  Instr* MakeTerm(Op op, const Shape& shape, std::vector<Instr*> operands,
                  const Attrs& attrs) override {
    return graph_.Make(op, shape, std::move(operands), attrs, {});
  }

 private:
  NormalGraph& graph_;
};

}  // namespace

const Literal* ScalarOf(const Instr* instr) {
  if (instr->op() == Op::kBroadcast && instr->operand(0)->shape().IsScalar())
    instr = instr->operand(0);
  if (!IsConstant(instr) || !instr->shape().IsScalar()) return nullptr;
  return &instr->attrs<ConstantAttrs>().literal;
}
bool IsSplatOf(const Instr* instr, double number) {
  const Literal* scalar = ScalarOf(instr);
  if (scalar == nullptr) return false;
  if (IsComplex(scalar->type())) return scalar->ComplexAt(0) == std::complex<double>(number, 0);
  return scalar->DoubleAt(0) == number;
}

Instr* SplatOf(NormalGraph& graph, Instr* scalar, const Shape& shape) {
  if (shape.IsScalar()) return scalar;
  // A single element extracted from an array of one element and put back.
  if (scalar->op() == Op::kReshape && scalar->operand(0)->shape().dims() == shape.dims())
    return scalar->operand(0);
  return graph.Intern(Op::kBroadcast, shape, {scalar}, DimensionsAttrs{});
}

Instr* Simplify(NormalGraph& graph, Op op, const Shape& shape, std::span<Instr* const> operands,
                const Attrs& attrs, std::span<Computation* const> called) {
  for (const Instr* operand : operands)
    if (operand->shape().quant() != nullptr) return nullptr;
  if (shape.IsArray() && shape.quant() != nullptr) return nullptr;
  Site site{graph, op, shape, operands, attrs, called};
  bool pure = op != Op::kConstant && InfoOf(op).traits != 0 && !InfoOf(op).Is(kControlFlow);
  if (pure && shape.IsArray() && !shape.HasDynamicDims() && shape.ElementCount() == 0)
    return graph.Constant(Literal::Array(shape, {}));
  NormalTerms terms(graph);
  if (Instr* expanded = ExpandAsJax(terms, op, shape, operands)) return expanded;
  if (Instr* folded = Fold(site)) return folded;
  if (Instr* moved = SimplifyMovement(site)) return moved;
  if (Instr* simpler = SimplifyArithmetic(site)) return simpler;
  return SimplifyAggregate(site);
}

}  // namespace tokamak
