#include "interp/interp.h"
#include "rewrite/normal/rules.h"

namespace tokamak {
namespace {

// Maximum elements of a folded constant. Chosen: folding more is optimization, not normalization.
constexpr int64_t kMaxFoldedElements = 1 << 16;

}  // namespace

Instr* Fold(const Site& site) {
  if (site.operands.empty() || !site.shape.IsArray() || site.shape.HasDynamicDims()) return nullptr;
  if (site.shape.ElementCount() > kMaxFoldedElements || site.op == Op::kBroadcast) return nullptr;
  const OpInfo& info = InfoOf(site.op);
  if (!site.called.empty()) return nullptr;  // map: the computation it calls cannot be run here
  if (!info.Is(kElementwise) && !info.Is(kDataMovement)) return nullptr;
  bool all_scalar = true;
  for (const Instr* operand : site.operands) {
    bool scalar = ScalarOf(operand) != nullptr;
    if (!scalar && !IsConstant(operand)) return nullptr;
    if (!operand->shape().IsArray() || operand->shape().ElementCount() > kMaxFoldedElements)
      return nullptr;
    all_scalar = all_scalar && scalar && operand->shape().dims() == site.shape.dims();
  }
  // A scratch instruction to evaluate; splats are evaluated once.
  bool once = all_scalar && info.Is(kElementwise);
  Module scratch;
  Computation* computation = scratch.AddComputation("fold");
  std::vector<Instr*> parameters;
  std::vector<Value> values;
  for (const Instr* operand : site.operands) {
    const Literal* scalar = ScalarOf(operand);
    Literal literal = scalar == nullptr ? operand->attrs<ConstantAttrs>().literal
                      : once            ? *scalar
                                        : Literal::Splat(operand->shape(), scalar->data());
    parameters.push_back(
        computation->AppendParameter(static_cast<int64_t>(parameters.size()), literal.shape()));
    Result<Value> value = ValueFromLiteral(literal);
    if (!value.ok()) return nullptr;
    values.push_back(std::move(value).value());
  }
  Shape shape = once ? Shape::Scalar(site.shape.type()) : site.shape;
  Instr* instr = computation->Append(site.op, shape, parameters, site.attrs);
  Result<Value> folded = EvaluateInstr(*instr, values);
  if (!folded.ok()) return nullptr;
  Instr* constant = site.graph.Constant(LiteralFromValue(folded.value()));
  return once ? SplatOf(site.graph, constant, site.shape) : constant;
}

}  // namespace tokamak
