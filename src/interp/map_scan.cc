// map, scan: a computation applied element by element, or along a dimension.

#include <algorithm>

#include "interp/body_call.h"
#include "interp/evaluators.h"
#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {

Result<Value> EvalMap(const Instr& instr, std::span<const Value> operands, Context& context) {
  const size_t n = operands.size() - instr.captures();
  BodyCall call(*instr.called(0), operands.subspan(n), context);
  std::vector<std::vector<ScalarSlot>> inputs;
  for (size_t k = 0; k < n; ++k)
    inputs.push_back(ScalarsOf(operands[k], instr.called(0)->parameter(k)->shape().type()));
  std::vector<ScalarSlot> arguments(n), results(static_cast<size_t>(operands[0].ElementCount()));
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t k = 0; k < n; ++k) arguments[k] = inputs[k][i];
    TOK_RETURN_IF_ERROR(call.Apply(arguments, std::span(&results[i], 1)));
  }
  return ArrayOf(ResultShape(instr, operands[0].dims()), results);
}

namespace {

// The slice of an array at one coordinate of a dimension, without that dimension.
Value Part(const Value& array, size_t along, int64_t at) {
  Dims dims = array.dims();
  StridedView view{0, StridesOf(dims)};
  view.base = at * view.strides[along];
  view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(along));
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(along));
  return DispatchStorage(array.type(), [&]<typename T>() {
    return Value::Array(array.shape().WithDims(dims),
                        ReadStrided(dims, array.Data<T>().data(), view));
  });
}

// Stacks slices along a new dimension.
Value Joined(const Shape& shape, const std::vector<Value>& parts, size_t along) {
  Dims dims = shape.dims();
  dims[along] = static_cast<int64_t>(parts.size());
  StridedView view{0, StridesOf(dims)};
  const int64_t step = view.strides[along];
  view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(along));
  return DispatchStorage(shape.type(), [&]<typename T>() {
    std::vector<T> elements(static_cast<size_t>(ProductOf(dims)));
    for (const Value& part : parts) {
      CopyStrided(part.dims(), part.Data<T>().data(), StridedView{0, StridesOf(part.dims())},
                  elements.data(), view);
      view.base += step;
    }
    return Value::Array(ResultShape(shape, dims), std::move(elements));
  });
}

}  // namespace

// Operands: inputs, then initial carries. The body takes a slice of each input and the carries, and
// returns a slice of each output and the next carries. Results: outputs, then the last carries.
Result<Value> EvalScan(const Instr& instr, std::span<const Value> operands, Context& context) {
  const ScanAttrs& attrs = instr.attrs<ScanAttrs>();
  const size_t total = operands.size() - instr.captures();
  const size_t carried = std::min(static_cast<size_t>(attrs.num_carries), total);
  const size_t inputs = total - carried, along = static_cast<size_t>(attrs.dimension);
  std::vector<Shape> shapes =
      instr.shape().IsTuple() ? instr.shape().elements() : std::vector<Shape>{instr.shape()};
  const size_t outputs = shapes.size() - std::min(carried, shapes.size());
  std::vector<Value> carries(operands.begin() + static_cast<std::ptrdiff_t>(inputs),
                             operands.begin() + static_cast<std::ptrdiff_t>(total));
  const int64_t length = inputs > 0    ? operands[0].dims()[along]
                         : outputs > 0 ? shapes[0].dim(along)
                                       : 0;
  std::vector<std::vector<Value>> parts(outputs);
  for (int64_t step = 0; step < length; ++step) {
    int64_t at = attrs.is_reverse ? length - 1 - step : step;
    std::vector<Value> arguments;
    for (size_t k = 0; k < inputs; ++k) arguments.push_back(Part(operands[k], along, at));
    arguments.insert(arguments.end(), carries.begin(), carries.end());
    arguments.insert(arguments.end(), operands.begin() + static_cast<std::ptrdiff_t>(total),
                     operands.end());
    TOK_TRY(Value result, context.Call(*instr.called(0), std::move(arguments)));
    std::vector<Value> results{result};
    if (result.shape().IsTuple()) results = result.elements();
    for (size_t k = 0; k < outputs; ++k) parts[k].push_back(results[k]);
    for (size_t k = 0; k < carried; ++k) carries[k] = results[outputs + k];
  }
  std::vector<Value> results;
  for (size_t k = 0; k < outputs; ++k) {
    if (attrs.is_reverse) std::reverse(parts[k].begin(), parts[k].end());
    results.push_back(Joined(shapes[k], parts[k], along));
  }
  results.insert(results.end(), carries.begin(), carries.end());
  return instr.shape().IsTuple() ? Value::Tuple(std::move(results)) : std::move(results[0]);
}

}  // namespace tokamak
