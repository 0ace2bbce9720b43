// convert, compare, select, clamp, complex: elementwise ops whose operands and results differ in
// type or shape.

#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "interp/convert_element.h"
#include "interp/evaluators.h"
#include "interp/rounding.h"
#include "interp/scalar_ops.h"

namespace tokamak {
namespace {

template <typename T, typename Fn>
Value CompareWith(const Shape& shape, std::span<const Value> operands, Fn in_order) {
  std::span<const T> a = operands[0].Data<T>(), b = operands[1].Data<T>();
  std::vector<uint8_t> elements(a.size());
  for (size_t i = 0; i < a.size(); ++i) elements[i] = in_order(a[i], b[i]) ? 1 : 0;
  return Value::Array(shape, std::move(elements));
}

// Scalars are broadcast.
template <typename T>
Value SelectElements(const Shape& shape, std::span<const Value> operands) {
  std::span<const uint8_t> chosen = operands[0].Data<uint8_t>();
  std::span<const T> others = operands[2].Data<T>();
  std::vector<T> elements = TakeOperand(operands, 1).TakeData<T>();
  for (size_t i = 0; i < elements.size(); ++i)
    if (chosen[i] == 0) elements[i] = others[i];
  return Value::Array(shape, std::move(elements));
}

template <typename T>
T LargerOf(T a, T b) {
  if constexpr (std::is_same_v<T, double>) return RealBinary(Op::kMaximum, false)(a, b);
  if constexpr (std::is_same_v<T, Complex>) return ComplexBinary(Op::kMaximum, false)(a, b);
  if constexpr (std::is_integral_v<T>) return a > b ? a : b;
}
template <typename T>
T SmallerOf(T a, T b) {
  if constexpr (std::is_same_v<T, double>) return RealBinary(Op::kMinimum, false)(a, b);
  if constexpr (std::is_same_v<T, Complex>) return ComplexBinary(Op::kMinimum, false)(a, b);
  if constexpr (std::is_integral_v<T>) return a < b ? a : b;
}

}  // namespace

Result<Value> EvalConvert(const Instr& instr, std::span<const Value> operands, Context& context) {
  ElementType from = operands[0].type(), to = instr.shape().type();
  Shape shape = ResultShape(instr, operands[0]);
  if (from == to) return TakeOperand(operands, 0).WithShape(shape);
  ElementConverter converter(to, context.mode());
  return DispatchStorage(from, [&]<typename From>() {
    return DispatchStorage(to, [&]<typename To>() -> Result<Value> {
      std::span<const From> elements = operands[0].Data<From>();
      std::vector<To> converted(elements.size());
      for (size_t i = 0; i < elements.size(); ++i)
        converted[i] = converter.Convert<To>(elements[i]);
      return Value::Array(shape, std::move(converted));
    });
  });
}

Result<Value> EvalCompare(const Instr& instr, std::span<const Value> operands, Context&) {
  TOK_RETURN_IF_ERROR(CheckSameDims(instr, operands));
  const CompareAttrs& attrs = instr.attrs<CompareAttrs>();
  CompareDirection direction = attrs.direction;
  Shape shape = ResultShape(instr, operands[0]);
  if (IsReal(operands[0].type()) && attrs.type == CompareType::kTotalOrder) {
    return CompareWith<double>(shape, operands, [direction](double a, double b) {
      return InOrder(direction, TotalOrderKey(a), TotalOrderKey(b));
    });
  }
  return DispatchStorage(operands[0].type(), [&]<typename T>() -> Result<Value> {
    return CompareWith<T>(shape, operands,
                          [direction](T a, T b) { return InOrder(direction, a, b); });
  });
}

Result<Value> EvalSelect(const Instr& instr, std::span<const Value> operands, Context&) {
  if (operands[0].ElementCount() == 1 && operands[0].dims().empty())
    return TakeOperand(operands, operands[0].IntAt(0) != 0 ? 1 : 2);
  TOK_RETURN_IF_ERROR(CheckSameDims(instr, operands));
  Shape shape = ResultShape(instr, operands[1]);
  return DispatchStorage(operands[1].type(), [&]<typename T>() -> Result<Value> {
    return SelectElements<T>(shape, operands);
  });
}

Result<Value> EvalClamp(const Instr& instr, std::span<const Value> operands, Context&) {
  Shape shape = ResultShape(instr, operands[1]);
  for (size_t i : {size_t{0}, size_t{2}})
    if (!operands[i].dims().empty())
      TOK_RETURN_IF_ERROR(CheckSameDims(instr, std::array{operands[i], operands[1]}));
  return DispatchStorage(operands[1].type(), [&]<typename T>() -> Result<Value> {
    std::span<const T> low = operands[0].Data<T>(), high = operands[2].Data<T>();
    size_t low_step = operands[0].dims().empty() ? 0 : 1;
    size_t high_step = operands[2].dims().empty() ? 0 : 1;
    std::vector<T> elements = TakeOperand(operands, 1).TakeData<T>();
    for (size_t i = 0; i < elements.size(); ++i)
      elements[i] = SmallerOf(LargerOf(low[i * low_step], elements[i]), high[i * high_step]);
    return Value::Array(shape, std::move(elements));
  });
}

Result<Value> EvalComplex(const Instr& instr, std::span<const Value> operands, Context&) {
  TOK_RETURN_IF_ERROR(CheckSameDims(instr, operands));
  std::span<const double> re = operands[0].Data<double>(), im = operands[1].Data<double>();
  std::vector<Complex> elements(re.size());
  for (size_t i = 0; i < re.size(); ++i) elements[i] = {re[i], im[i]};
  return Value::Array(ResultShape(instr, operands[0]), std::move(elements));
}

}  // namespace tokamak
