#include "interp/quantized.h"

#include <algorithm>
#include <cmath>

#include "interp/evaluators.h"
#include "interp/module_interpreter.h"
#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

// The scale of each element: index / inner % count.
struct ScaleIndex {
  int64_t inner = 1, count = 1;
  ScaleIndex(const QuantType& quant, const Dims& dims) {
    if (quant.axis < 0 || quant.scales.size() <= 1) return;
    inner = StridesOf(dims)[static_cast<size_t>(quant.axis)];
    count = static_cast<int64_t>(quant.scales.size());
  }
  size_t Of(size_t i) const { return static_cast<size_t>(static_cast<int64_t>(i) / inner % count); }
};

int64_t ZeroPoint(const QuantType& quant, size_t i) {
  return i < quant.zero_points.size() ? quant.zero_points[i] : 0;
}

Shape Expressed(const Shape& shape) {
  if (shape.IsTuple()) {
    std::vector<Shape> elements;
    for (const Shape& e : shape.elements()) elements.push_back(Expressed(e));
    return Shape::Tuple(std::move(elements));
  }
  return shape.quant() == nullptr ? shape : shape.WithType(shape.quant()->expressed);
}

Value QuantizedLike(const Value& value, const Shape& shape) {
  if (shape.IsTuple()) {
    std::vector<Value> elements;
    for (size_t i = 0; i < shape.elements().size(); ++i)
      elements.push_back(QuantizedLike(value.elements()[i], shape.elements()[i]));
    return Value::Tuple(std::move(elements));
  }
  return shape.quant() == nullptr ? value : Quantized(value, shape);
}

bool HasQuant(const Shape& shape) {
  if (shape.quant() != nullptr) return true;
  for (const Shape& e : shape.elements())
    if (HasQuant(e)) return true;
  return false;
}

// The same op on real numbers, in a module of its own.
Instr* RealCounterpart(const Instr& instr, Computation& home) {
  std::vector<Instr*> operands;
  for (size_t i = 0; i < instr.operand_count(); ++i) {
    operands.push_back(
        home.AppendParameter(static_cast<int64_t>(i), Expressed(instr.operand(i)->shape())));
  }
  Instr* counterpart = home.Append(instr.op(), Expressed(instr.shape()), operands, instr.attrs());
  counterpart->set_pos(instr.pos());
  home.set_root(counterpart);
  return counterpart;
}

}  // namespace

Value Dequantized(const Value& value, const QuantType& quant) {
  ScaleIndex index(quant, value.dims());
  ElementType type = quant.expressed;
  std::vector<double> reals = ElementsAs<double>(value);
  for (size_t i = 0; i < reals.size(); ++i) {
    size_t s = index.Of(i);
    double shifted = RoundToType(type, reals[i] - static_cast<double>(ZeroPoint(quant, s)));
    reals[i] = RoundToType(type, shifted * RoundToType(type, quant.scales[s]));
  }
  return Value::Array(Shape::Array(type, value.dims()), std::move(reals));
}

Value Quantized(const Value& value, const Shape& shape) {
  const QuantType& quant = *shape.quant();
  ScaleIndex index(quant, value.dims());
  std::span<const double> reals = value.Data<double>();
  const double low = static_cast<double>(quant.storage_min);
  const double high = static_cast<double>(quant.storage_max);
  auto stored = [&](size_t i) {
    size_t s = index.Of(i);
    ElementType type = quant.expressed;
    double scaled = RoundToType(type, reals[i] / RoundToType(type, quant.scales[s]));
    double zero = static_cast<double>(ZeroPoint(quant, s));
    if (std::isnan(scaled)) return std::clamp(0.0, low, high);
    return std::clamp(std::nearbyint(scaled) + zero, low, high);
  };
  return DispatchStorage(shape.type(), [&]<typename T>() {
    std::vector<T> elements(reals.size());
    for (size_t i = 0; i < reals.size(); ++i) {
      if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>)
        elements[i] = static_cast<T>(stored(i));
    }
    return Value::Array(ResultShape(shape, value.dims()), std::move(elements));
  });
}

bool ComputesQuantized(const Instr& instr) {
  const OpInfo& info = instr.info();
  bool computes = info.Is(kElementwise) || info.Is(kContraction) || info.Is(kOpaqueMath);
  // These handle quantization themselves: they have a body, or nothing to compute.
  if (!computes || !instr.called().empty() || instr.op() == Op::kUniformQuantize ||
      instr.op() == Op::kUniformDequantize)
    return false;
  if (HasQuant(instr.shape())) return true;
  for (const Instr* operand : instr.operands())
    if (HasQuant(operand->shape())) return true;
  return false;
}

Result<Value> EvalQuantized(const Instr& instr, std::span<const Value> operands, Context& context) {
  std::vector<Value> reals;
  for (size_t i = 0; i < operands.size(); ++i) {
    const QuantType* quant = instr.operand(i)->shape().quant();
    reals.push_back(quant == nullptr ? operands[i] : Dequantized(operands[i], *quant));
  }
  Module module;
  Instr* counterpart = RealCounterpart(instr, *module.AddComputation("real"));
  TOK_TRY(Value result, Evaluate(*counterpart, reals, context));
  return QuantizedLike(result, instr.shape());
}

Result<Value> EvalUniformQuantize(const Instr& instr, std::span<const Value> operands, Context&) {
  const QuantType* from = instr.operand(0)->shape().quant();
  Value real = from == nullptr ? operands[0] : Dequantized(operands[0], *from);
  if (instr.shape().quant() == nullptr || !IsReal(real.type()))
    return Unsupported(instr, "quantizes real numbers only");
  return Quantized(real, instr.shape());
}

Result<Value> EvalUniformDequantize(const Instr& instr, std::span<const Value> operands, Context&) {
  const QuantType* from = instr.operand(0)->shape().quant();
  if (from == nullptr) return Unsupported(instr, "its operand is not quantized");
  Value real = Dequantized(operands[0], *from);
  return Value::Array(ResultShape(instr, operands[0].dims()), ElementsAs<double>(real));
}

}  // namespace tokamak
