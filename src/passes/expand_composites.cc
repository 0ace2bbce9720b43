#include <array>
#include <limits>

#include "ir/builder.h"
#include "passes/passes.h"
#include "rewrite/replace.h"
#include "rewrite/term.h"

namespace tokamak {
namespace {

constexpr ElementType kWide = ElementType::kF64;

// A reducer that adds f64 values, created once per module.
class Adder {
 public:
  // It has the origins of the first instruction that needs it.
  Computation* Get(const Instr& instr) {
    if (body_ != nullptr) return body_;
    Builder builder(instr, "add_f64");
    Instr* x = builder.Parameter(Shape::Scalar(kWide));
    Instr* y = builder.Parameter(Shape::Scalar(kWide));
    body_ = builder.FinishValid(builder.Add(x, y));
    return body_;
  }

 private:
  Computation* body_ = nullptr;
};

// batch-norm-*: computed in f64 throughout, in the order of the interpreter, so the result is
// bit-exact. The cost is low because these ops are memory-bound.
class BatchNorm {
 public:
  BatchNorm(Instr* instr, Computation* adder)
      : edit_(*instr, Editor::Naming::kUnnamed),
        instr_(instr),
        adder_(adder),
        attrs_(instr->attrs<BatchNormAttrs>()),
        dims_(instr->operand(0)->shape().dims()) {
    for (int64_t d = 0; d < static_cast<int64_t>(dims_.size()); ++d)
      if (d != attrs_.feature_index) reduced_dims_.push_back(d);
    int64_t features = dims_[static_cast<size_t>(attrs_.feature_index)];
    count_ = static_cast<double>(instr->operand(0)->shape().ElementCount()) /
             static_cast<double>(features);
  }

  bool Expand() {
    switch (instr_->op()) {
      case Op::kBatchNormTraining:
        return Training();
      case Op::kBatchNormInference:
        return edit_.TryReplace(
            Narrow(Normalised(Wide(0), Wide(1), Wide(2), Wide(3), Wide(4)), instr_->shape()));
      default:
        return Gradient();
    }
  }

 private:
  Term Wide(size_t operand) {
    Term term{&edit_, instr_->operand(operand)};
    return term.type() == kWide ? term : term.As(kWide);
  }
  Instr* Narrow(Term term, const Shape& shape) {
    return shape.type() == kWide ? term.instr : term.As(shape.type()).instr;
  }
  // Broadcasts one number per feature to every element.
  Term BroadcastTo(Term feature) {
    return {&edit_, edit_.Make(Op::kBroadcast, Shape::Array(kWide, dims_), {feature.instr},
                               DimensionsAttrs{{attrs_.feature_index}})};
  }
  Term Sum(Term x) {
    Dims features{dims_[static_cast<size_t>(attrs_.feature_index)]};
    Instr* zero = edit_.Make(Op::kConstant, Shape::Scalar(kWide), {},
                             ConstantAttrs{Literal::Scalar(kWide, 0)});
    return {&edit_, edit_.Make(Op::kReduce, Shape::Array(kWide, std::move(features)),
                               {x.instr, zero}, DimensionsAttrs{reduced_dims_}, adder_)};
  }
  Term Normalised(Term x, Term scale, Term offset, Term mean, Term variance) {
    Term broadcast = BroadcastTo(Apply(Op::kSqrt, variance + attrs_.epsilon));
    return BroadcastTo(scale) * (x - BroadcastTo(mean)) / broadcast + BroadcastTo(offset);
  }
  bool ReplaceByTuple(std::array<Term, 3> results) {
    std::vector<Instr*> elements;
    for (size_t i = 0; i < results.size(); ++i) {
      const Shape& shape = instr_->shape().elements()[i];
      elements.push_back(Narrow(results[i], shape));
      elements.back()->set_shape(shape);
    }
    return edit_.TryReplace(edit_.Make(Op::kTuple, instr_->shape(), std::move(elements), {}));
  }
  bool Training() {
    Term x = Wide(0);
    Term mean = Sum(x) / count_;
    Term centred = x - BroadcastTo(mean);
    Term variance = Sum(centred * centred) / count_;
    return ReplaceByTuple({Normalised(x, Wide(1), Wide(2), mean, variance), mean, variance});
  }
  // Operands: x, scale, mean, variance, gradient of the output.
  bool Gradient() {
    Term gradient = Wide(4), scale = Wide(1);
    Term centred = Wide(0) - BroadcastTo(Wide(2));
    Term sum = Sum(gradient), sum_centred = Sum(gradient * centred);
    Term broadcast = Wide(3) + attrs_.epsilon;
    Term factor = scale / Apply(Op::kSqrt, broadcast) / count_;
    Term gradient_x =
        BroadcastTo(factor) * (count_ * gradient - BroadcastTo(sum) -
                               centred * BroadcastTo(sum_centred) / BroadcastTo(broadcast));
    return ReplaceByTuple({gradient_x, sum_centred / Apply(Op::kSqrt, broadcast), sum});
  }

  Editor edit_;
  Instr* instr_;
  Computation* adder_;
  const BatchNormAttrs attrs_;
  const Dims dims_;
  Dims reduced_dims_;
  double count_ = 0;
};

bool HasInfinity(ElementType type) {
  return IsReal(type) && FormatOf(type).has_infinity;
}

// Whether the function equals one or two plain ops exactly.
bool HasExactFormula(const Instr& instr) {
  if (instr.operand_count() != 1) return false;
  ElementType type = instr.operand(0)->shape().type();
  switch (instr.op()) {
    case Op::kSquare:
      return IsReal(type);
    case Op::kConj:
      return IsComplex(type);
    case Op::kIsInf:
    case Op::kIsPosInf:
    case Op::kIsNegInf:
      return HasInfinity(type);
    default:
      return false;
  }
}

Term ExactFormula(Op op, Term x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case Op::kSquare:
      return x * x;
    case Op::kConj: {
      Term imaginary = Apply(Op::kNegate, Imag(x));
      return ComplexOf(Real(x), imaginary);
    }
    case Op::kIsInf:
      return Apply(Op::kAbs, x) == kInfinity;
    default:
      return x == (op == Op::kIsPosInf ? kInfinity : -kInfinity);
  }
}

bool IsBatchNorm(Op op) {
  return op == Op::kBatchNormTraining || op == Op::kBatchNormInference || op == Op::kBatchNormGrad;
}

}  // namespace

// Expands batch-norm-*, for which backends have no kernels, and functions that equal one or two
// plain ops (square, conj, is-inf ...) into plain ops. Bit-exact.
Result<Changed> ExpandComposites(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  Adder adder;
  // The adder is appended as another computation; it contains nothing to expand.
  for (size_t i = 0, count = module.computations().size(); i < count; ++i) {
    for (Instr* instr : module.computations()[i]->PostOrder()) {
      bool batch_norm = IsBatchNorm(instr->op());
      if (!batch_norm && !HasExactFormula(*instr)) continue;
      if (!CanReplace(*instr, *instr)) continue;  // it has control dependences
      if (!IsOrdinary(*instr)) {
        context.Rejected("expand.dynamic-shape", *instr);
        continue;
      }
      bool done = false;
      if (batch_norm) {
        done = BatchNorm(instr, adder.Get(*instr)).Expand();
      } else {
        Editor edit(*instr, Editor::Naming::kUnnamed);
        done = edit.TryReplace(ExactFormula(instr->op(), {&edit, instr->operand(0)}).instr);
      }
      if (!done) continue;
      context.Accepted(batch_norm ? "expand.batch-norm" : "expand.function", *instr);
      RemoveUnused(instr);
      changed = Changed::kYes;
    }
  }
  return changed;
}

}  // namespace tokamak
