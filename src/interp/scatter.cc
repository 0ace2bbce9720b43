// scatter, select-and-scatter.

#include <algorithm>

#include "interp/body_call.h"
#include "interp/evaluators.h"
#include "interp/index_vectors.h"
#include "interp/results.h"
#include "interp/strided.h"
#include "interp/window.h"

namespace tokamak {
namespace {

bool IsAmongDims(const Dims& dims, size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
}

// The targets of the updates. The window dimensions of an update index into one window, the others
// into the index vectors. A window that is not entirely inside the input is skipped, as in XLA.
class WindowElements {
 public:
  WindowElements(const ScatterAttrs& attrs, const Dims& input, const Value& indices,
                 const Dims& update)
      : attrs_(attrs), input_(input), vectors_(indices, attrs.index_vector_dim) {
    Dims strides = StridesOf(input), update_strides = StridesOf(update);
    input_strides_ = strides;
    for (size_t d = 0; d < update.size(); ++d) {
      bool in_window = IsAmongDims(attrs.update_window_dims, d);
      if (in_window) window_.push_back(update[d]);
      (in_window ? update_window_ : update_batch_).push_back(update_strides[d]);
    }
    extent_.assign(input.size(), 1);
    for (size_t d = 0, k = 0; d < input.size(); ++d) {
      if (IsAmongDims(attrs.inserted_window_dims, d) || IsAmongDims(attrs.input_batching_dims, d))
        continue;
      extent_[d] = window_[k++];
      input_window_.push_back(strides[d]);
    }
  }

  // Calls fn(input offset, update offset) for each element of each window that fits, until fn
  // returns an error.
  template <typename Fn>
  Status ForEach(Fn&& fn) const {
    Status status = Ok();
    if (ProductOf(vectors_.dims()) == 0 || ProductOf(window_) == 0) return status;
    Dims at(vectors_.dims().size(), 0);
    do {
      std::optional<int64_t> base = BaseOf(at);
      if (!base) continue;
      int64_t update = 0;
      for (size_t d = 0; d < at.size(); ++d) update += at[d] * update_batch_[d];
      ForEachRow<2>(window_,
                    {StridedView{*base, input_window_}, StridedView{update, update_window_}},
                    [&](const std::array<int64_t, 2>& from, int64_t count,
                        const std::array<int64_t, 2>& step) {
                      for (int64_t i = 0; i < count && status.ok(); ++i)
                        status = fn(static_cast<size_t>(from[0] + i * step[0]),
                                    static_cast<size_t>(from[1] + i * step[1]));
                    });
    } while (status.ok() && NextIndex(at, vectors_.dims()));
    return status;
  }

 private:
  std::optional<int64_t> BaseOf(const Dims& at) const {
    int64_t base = 0;
    for (size_t i = 0; i < attrs_.scatter_dims_to_operand_dims.size(); ++i) {
      size_t d = static_cast<size_t>(attrs_.scatter_dims_to_operand_dims[i]);
      int64_t start = vectors_.At(at, i);
      if (start < 0 || start > input_[d] - extent_[d]) return std::nullopt;
      base += start * input_strides_[d];
    }
    for (size_t i = 0; i < attrs_.input_batching_dims.size(); ++i) {
      base += vectors_.Coordinate(at, attrs_.scatter_indices_batching_dims[i]) *
              input_strides_[static_cast<size_t>(attrs_.input_batching_dims[i])];
    }
    return base;
  }

  const ScatterAttrs& attrs_;
  Dims input_, input_strides_;
  IndexVectors vectors_;
  Dims window_, extent_, input_window_, update_window_, update_batch_;
};

// One input, and a body that is a commutative op, or returns the update itself (op is nullopt).
// Every step is rounded, as in the body.
Result<Value> ScatterSimply(const Instr& instr, std::span<const Value> operands,
                            const WindowElements& window_elements, std::optional<Op> op,
                            Context& context) {
  ElementType type = operands[0].type();
  Dims dims = operands[0].dims();
  return DispatchStorage(type, [&]<typename T>() -> Result<Value> {
    std::span<const T> updates = operands[2].Data<T>();
    std::vector<T> elements = TakeOperand(operands, 0).TakeData<T>();
    TOK_RETURN_IF_ERROR(window_elements.ForEach([&](size_t to, size_t from) {
      elements[to] =
          op ? context.Round(type, Combine(*op, elements[to], updates[from])) : updates[from];
      return Ok();
    }));
    const Shape& shape = instr.shape().IsTuple() ? instr.shape().elements()[0] : instr.shape();
    Value result = Value::Array(ResultShape(shape, dims), std::move(elements));
    return instr.shape().IsTuple() ? Value::Tuple({std::move(result)}) : std::move(result);
  });
}

}  // namespace

Result<Value> EvalScatter(const Instr& instr, std::span<const Value> operands, Context& context) {
  const size_t n = (operands.size() - instr.captures() - 1) / 2;
  const Value& indices = operands[n];
  const Computation& body = *instr.called(0);
  WindowElements window_elements(instr.attrs<ScatterAttrs>(), operands[0].dims(), indices,
                                 operands[n + 1].dims());
  if (n == 1 && body.parameter(0)->shape().type() == operands[0].type()) {
    std::optional<Op> op = CommutativeBody(body);
    if (op || IsParameter(body, 1))
      return ScatterSimply(instr, operands, window_elements, op, context);
  }
  BodyCall call(body, operands.subspan(2 * n + 1), context);
  std::vector<std::vector<ScalarSlot>> results, updates;
  for (size_t k = 0; k < n; ++k) {
    ElementType type = body.parameter(k)->shape().type();
    results.push_back(ScalarsOf(operands[k], type));
    updates.push_back(ScalarsOf(operands[n + 1 + k], type));
  }
  std::vector<ScalarSlot> arguments(2 * n), combined(n);
  auto combine = [&](size_t to, size_t from) -> Status {
    for (size_t k = 0; k < n; ++k) {
      arguments[k] = results[k][to];
      arguments[n + k] = updates[k][from];
    }
    TOK_RETURN_IF_ERROR(call.Apply(arguments, combined));
    for (size_t k = 0; k < n; ++k) results[k][to] = combined[k];
    return Ok();
  };
  TOK_RETURN_IF_ERROR(window_elements.ForEach(combine));
  std::vector<Value> values;
  for (size_t k = 0; k < n; ++k) {
    const Shape& shape = instr.shape().IsTuple() ? instr.shape().elements()[k] : instr.shape();
    values.push_back(ArrayOf(ResultShape(shape, operands[k].dims()), results[k]));
  }
  return instr.shape().IsTuple() ? Value::Tuple(std::move(values)) : std::move(values[0]);
}

// Each window selects one of its elements inside the input; the source element of the window is
// combined into the result there.
Result<Value> EvalSelectAndScatter(const Instr& instr, std::span<const Value> operands,
                                   Context& context) {
  const Value &operand = operands[0], &source = operands[1];
  const Window& window = instr.attrs<WindowAttrs>().window;
  const Dims &dims = operand.dims(), strides = StridesOf(dims);
  std::span<const Value> captures = operands.subspan(3);
  BodyCall select(*instr.called(0), captures, context),
      scatter(*instr.called(1), captures, context);
  ElementType type = instr.shape().type();
  std::vector<ScalarSlot> inputs = ScalarsOf(operand, operand.type()),
                          sources = ScalarsOf(source, type);
  std::vector<ScalarSlot> results(inputs.size(), ScalarsOf(operands[2], type)[0]);
  Dims first_tap, taps;
  for (size_t d = 0; d < dims.size(); ++d) {
    auto [first, limit] = TapsInside(window[d], dims[d], source.dims()[d]);
    first_tap.push_back(first);
    taps.push_back(limit - first);
  }
  Dims source_index(dims.size(), 0);
  if (sources.empty() || ProductOf(taps) == 0) return ArrayOf(ResultShape(instr, dims), results);
  size_t at = 0;
  do {
    int64_t selected = -1;
    Dims tap(dims.size(), 0);
    do {
      int64_t offset = 0;
      bool inside = true;
      for (size_t d = 0; d < dims.size() && inside; ++d) {
        int64_t i = source_index[d] * window[d].stride +
                    (first_tap[d] + tap[d]) * window[d].window_dilation - window[d].pad_low;
        inside = i >= 0 && i < dims[d];
        offset += i * strides[d];
      }
      if (!inside) continue;
      ScalarSlot keep = ScalarOf<uint8_t>(0);
      if (selected >= 0) {
        ScalarSlot pair[2] = {inputs[static_cast<size_t>(selected)],
                              inputs[static_cast<size_t>(offset)]};
        TOK_RETURN_IF_ERROR(select.Apply(pair, std::span(&keep, 1)));
      }
      if (keep.Get<uint8_t>() == 0) selected = offset;
    } while (NextIndex(tap, taps));
    if (selected >= 0) {
      ScalarSlot& result = results[static_cast<size_t>(selected)];
      ScalarSlot pair[2] = {result, sources[at]};
      TOK_RETURN_IF_ERROR(scatter.Apply(pair, std::span(&result, 1)));
    }
    ++at;
  } while (NextIndex(source_index, source.dims()));
  return ArrayOf(ResultShape(instr, dims), results);
}

}  // namespace tokamak
