// Code for scalar computations: reducers and maps.

#include <unordered_map>

#include "gen/element.h"

namespace tokamak {
namespace {

class BodyEmitter {
 public:
  BodyEmitter(KernelBuilder& b, std::span<const Element> arguments, bool wide)
      : b_(b), arguments_(arguments), wide_(wide) {}

  bool Add(const Instr& instr) {
    switch (instr.op()) {
      case Op::kParameter:
        values_[&instr] = arguments_[static_cast<size_t>(instr.attrs<ParameterAttrs>().number)];
        return true;
      case Op::kConstant:
        return AddConstant(instr);
      case Op::kTuple:
        return true;
      case Op::kReshape:
      case Op::kBroadcast:
      case Op::kCopy:
      case Op::kOptimizationBarrier:
        values_[&instr] = values_[instr.operand(0)];
        return true;
      default:
        return AddElementwise(instr);
    }
  }
  Element ValueOf(const Instr* instr) { return values_[instr]; }

 private:
  ElementType TypeOf(const Instr& instr) const {
    return wide_ ? AccumulatorElementType(instr.shape().type()) : instr.shape().type();
  }

  bool AddConstant(const Instr& instr) {
    ElementType type = TypeOf(instr);
    const Literal& literal = instr.attrs<ConstantAttrs>().literal;
    ScalarType scalar = ComputeType(type);
    if (IsComplex(type)) {
      std::complex<double> value = literal.ComplexAt(0);
      values_[&instr] = {b_.Constant(scalar, value.real()), b_.Constant(scalar, value.imag())};
    } else if (IsReal(type)) {
      values_[&instr] = {b_.Constant(scalar, literal.DoubleAt(0)), {}};
    } else {
      values_[&instr] = {b_.ConstantBits(scalar, BitsOfInt(scalar, literal.IntAt(0))), {}};
    }
    return true;
  }

  bool AddElementwise(const Instr& instr) {
    if (!instr.info().Is(kElementwise) || instr.op() == Op::kMap || instr.operand_count() == 0)
      return false;
    std::vector<Element> operands;
    for (const Instr* operand : instr.operands()) operands.push_back(values_[operand]);
    ElementType from = TypeOf(*instr.operand(instr.op() == Op::kSelect ? 2 : 0));
    OpCall call{.op = instr.op(),
                .type = TypeOf(instr),
                .from = from,
                .operands = operands,
                .attrs = &instr.attrs()};
    if (call.op == Op::kConvert && call.type == from) {
      values_[&instr] = operands[0];
      return true;
    }
    std::optional<Element> value = ApplyOp(b_, call);
    if (!value) return false;
    values_[&instr] = *value;
    return true;
  }

  KernelBuilder& b_;
  std::span<const Element> arguments_;
  bool wide_;
  std::unordered_map<const Instr*, Element> values_;
};

// Whether each element of the result depends only on the operands' elements at the same index.
bool IsPointwise(const Instr& instr, const Dims* dims) {
  if (dims == nullptr || instr.shape().dims() != *dims) return false;
  switch (instr.op()) {
    case Op::kConstant:
      return IsImmediate(instr);
    case Op::kBroadcast:
      return instr.operand(0)->shape().ElementCount() == 1;
    case Op::kReshape:
      return instr.operand(0)->shape().dims() == *dims;
    default:
      return true;
  }
}

}  // namespace

ElementType AccumulatorElementType(ElementType type) {
  return IsReal(type) && InfoOf(type).bits < 32 ? ElementType::kF32 : type;
}

std::optional<std::vector<Element>> ApplyBody(KernelBuilder& b, const Computation& body,
                                              std::span<const Element> arguments, bool wide,
                                              const Dims* dims) {
  if (body.parameters().size() != arguments.size()) return std::nullopt;
  BodyEmitter emitter(b, arguments, wide);
  const Instr* root = body.root();
  for (const Instr* instr : body.PostOrder()) {
    bool is_scalar = IsPlainArray(instr->shape()) &&
                     (instr->shape().ElementCount() == 1 || IsPointwise(*instr, dims));
    if (!is_scalar && !(instr == root && instr->op() == Op::kTuple)) return std::nullopt;
    if (!emitter.Add(*instr)) return std::nullopt;
  }
  std::vector<Element> results;
  if (root->op() == Op::kTuple) {
    for (const Instr* part : root->operands()) results.push_back(emitter.ValueOf(part));
  } else {
    results.push_back(emitter.ValueOf(root));
  }
  return results;
}

std::optional<Element> EvaluateInBody(KernelBuilder& b, const Computation& body, const Instr& instr,
                                      std::span<const Element> arguments) {
  if (body.parameters().size() != arguments.size()) return std::nullopt;
  BodyEmitter emitter(b, arguments, /*wide=*/false);
  for (const Instr* other : body.PostOrder()) {
    if (other->op() == Op::kParameter && other->users().empty()) continue;
    bool is_scalar = IsPlainArray(other->shape()) && other->shape().ElementCount() == 1;
    if (!is_scalar || !emitter.Add(*other)) return std::nullopt;
    if (other == &instr) return emitter.ValueOf(other);
  }
  return std::nullopt;
}

}  // namespace tokamak
