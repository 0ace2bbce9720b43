#include <algorithm>

#include "gen/region.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

// Replaces quantized values by their stored integers. Ops on quantized values dequantize, compute
// on real numbers and quantize again, as StableHLO specifies.

namespace tokamak {
namespace {

bool HasQuant(const Shape& shape) {
  if (shape.quant() != nullptr) return true;
  return std::ranges::any_of(shape.elements(), HasQuant);
}

bool ComputesQuantized(const Instr& instr) {
  if (instr.op() == Op::kUniformQuantize || instr.op() == Op::kUniformDequantize) return true;
  bool computes = instr.info().Is(kElementwise) || instr.info().Is(kContraction) ||
                  instr.info().Is(kOpaqueMath);
  if (!computes || !instr.called().empty()) return false;
  return HasQuant(instr.shape()) ||
         std::ranges::any_of(instr.operands(), [](const Instr* x) { return HasQuant(x->shape()); });
}

class Quantizer {
 public:
  explicit Quantizer(Instr& of) : of_(of), make_(of) {}

  // Returns the replacement; the instruction is removed.
  Instr* Run() {
    bool only = of_.op() == Op::kUniformQuantize || of_.op() == Op::kUniformDequantize;
    std::vector<Instr*> reals;
    for (Instr* operand : of_.operands())
      reals.push_back(operand->shape().quant() == nullptr ? operand : Dequantized(operand));
    Instr* result = only ? reals[0] : Done(std::move(reals));
    if (of_.shape().quant() != nullptr) {
      result = Quantized(result, of_.shape());
    } else {
      result = As(of_.shape().type(), result);
    }
    make_.Replace(result);
    return result;
  }

 private:
  static Shape Like(const Instr* x, ElementType type) {
    return Shape::Array(type, x->shape().dims());
  }
  Instr* As(ElementType type, Instr* x) {
    return x->shape().type() == type ? x : make_.Make(Op::kConvert, Like(x, type), {x});
  }

  // Dot products accumulate in f64 and are rounded once.
  Instr* Done(std::vector<Instr*> reals) {
    const Shape& shape = of_.shape();
    ElementType type = shape.quant() == nullptr ? shape.type() : shape.quant()->expressed;
    bool sums = of_.info().Is(kContraction) && IsReal(type);
    ElementType wide = sums ? ElementType::kF64 : type;
    if (sums)
      for (Instr*& real : reals) real = As(wide, real);
    return As(type, make_.Make(of_.op(), Shape::Array(wide, shape.dims()), std::move(reals),
                               of_.attrs()));
  }

  // One number per scale, broadcast to every element.
  template <typename Number>
  Instr* BroadcastTo(const QuantType& quant, const Shape& shape, Number&& number) {
    bool along = quant.axis >= 0 && quant.scales.size() > 1;
    size_t count = along ? quant.scales.size() : 1;
    std::vector<Instr*> parts;
    for (size_t i = 0; i < count; ++i)
      parts.push_back(make_.Constant(Literal::Scalar(shape.type(), number(i))));
    if (!along) return make_.Broadcast(parts[0], shape);
    Shape each = Shape::Array(shape.type(), {1});
    for (Instr*& part : parts) part = make_.Make(Op::kReshape, each, {part});
    Instr* all =
        make_.Make(Op::kConcatenate, Shape::Array(shape.type(), {static_cast<int64_t>(count)}),
                   parts, DimensionAttrs{0});
    return make_.Make(Op::kBroadcast, shape, {all}, DimensionsAttrs{{quant.axis}});
  }
  Instr* Scales(const QuantType& quant, const Shape& shape) {
    return BroadcastTo(quant, shape, [&](size_t i) { return quant.scales[i]; });
  }
  Instr* ZeroPoints(const QuantType& quant, const Shape& shape) {
    return BroadcastTo(quant, shape, [&](size_t i) {
      return static_cast<double>(i < quant.zero_points.size() ? quant.zero_points[i] : 0);
    });
  }

  // A type that represents every stored integer, and twice that range.
  static ElementType Exact(const Shape& shape) {
    bool narrow = InfoOf(shape.type()).bits <= 16 && shape.quant()->expressed != ElementType::kF64;
    return narrow ? ElementType::kF32 : ElementType::kF64;
  }

  Instr* Dequantized(Instr* x) {
    const Shape shape = x->shape();
    const QuantType& quant = *shape.quant();
    Shape exact = Like(x, Exact(shape)), real = Like(x, quant.expressed);
    Instr* shifted =
        make_.Make(Op::kSubtract, exact, {As(exact.type(), x), ZeroPoints(quant, exact)});
    return make_.Make(Op::kMultiply, real, {As(real.type(), shifted), Scales(quant, real)});
  }

  Instr* Quantized(Instr* x, const Shape& shape) {
    const QuantType& quant = *shape.quant();
    Shape real = Like(x, quant.expressed), exact = Like(x, Exact(shape)),
          pred = Like(x, ElementType::kPred);
    Instr* scaled = make_.Make(Op::kDivide, real, {As(real.type(), x), Scales(quant, real)});
    Instr* wide = As(exact.type(), scaled);
    Instr* whole = make_.Make(Op::kRoundEven, exact, {wide});
    Instr* moved = make_.Make(Op::kAdd, exact, {whole, ZeroPoints(quant, exact)});
    Instr* is_number = make_.Make(Op::kCompare, pred, {wide, wide},
                                  CompareAttrs{CompareDirection::kEq, CompareType::kNone});
    auto number = [&](double value) { return make_.Filled(exact, value); };
    Instr* stored = make_.Make(Op::kSelect, exact, {is_number, moved, number(0)});
    Instr* low = number(static_cast<double>(quant.storage_min));
    Instr* high = number(static_cast<double>(quant.storage_max));
    stored = make_.Make(Op::kClamp, exact, {low, stored, high});
    return As(shape.type(), stored);
  }

  Instr& of_;
  Editor make_;
};

Shape PlainQuantized(const Shape& shape) {
  if (!shape.IsTuple()) return shape.WithoutQuant();
  std::vector<Shape> elements;
  for (const Shape& element : shape.elements()) elements.push_back(PlainQuantized(element));
  return Shape::Tuple(std::move(elements));
}

}  // namespace

Result<Changed> ExpandQuantized(Module& module, PassContext& context) {
  bool any = false;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs()) {
      any = any || HasQuant(instr->shape());
      // Shapes carry the quantization parameters, so either all are replaced or none.
      if (ComputesQuantized(*instr) &&
          (!instr->shape().IsStaticArray() || instr->is_control_predecessor()))
        return Changed::kNo;
    }
  if (!any) return Changed::kNo;
  EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (!ComputesQuantized(*instr)) continue;
      context.Accepted("expand.quantized", *instr);
      // Uses of the result see its integers with a quantized shape, like other quantized values.
      // The shape keeps the parameters until all uses are expanded.
      const Shape shape = instr->shape();
      changed = true;
      Instr* result = Quantizer(*instr).Run();
      if (shape.quant() != nullptr) result->set_shape(shape);
    }
    return changed;
  });
  for (const auto& computation : module.computations())
    for (Instr* instr : computation->Instrs()) {
      if (!HasQuant(instr->shape())) continue;
      if (instr->operand_count() == 0) context.Accepted("expand.quantized", *instr);
      instr->set_shape(PlainQuantized(instr->shape()));
    }
  return Changed::kYes;
}

}  // namespace tokamak
