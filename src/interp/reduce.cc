// reduce, reduce-window: a sequence of passes over boxes of the inputs. Each pass accumulates every
// element of its box into one element of the result. For one result element the order is always
// row-major.
//
// A reduce accumulates sums in a wide type and rounds once, and other bodies of narrow types as
// f32; a reduce-window applies its body unchanged
// (docs/choices/2026-11-15-interpreter-numerics.md).

#include "interp/body_call.h"
#include "interp/evaluators.h"
#include "interp/results.h"
#include "interp/strided.h"
#include "interp/window.h"

namespace tokamak {
namespace {

struct Pass {
  Dims box;
  StridedView input, result;
};

struct ReductionShape {
  const Instr& instr;
  std::span<const Value> inputs, inits, captures;
  Dims result_dims;

  ReductionShape(const Instr& op, std::span<const Value> operands)
      : instr(op),
        inputs(operands.subspan(0, (operands.size() - op.captures()) / 2)),
        inits(operands.subspan(inputs.size(), inputs.size())),
        captures(operands.subspan(2 * inputs.size())) {}
  const Computation& body() const { return *instr.called(0); }
  const Shape& ShapeAt(size_t i) const {
    return instr.shape().IsTuple() ? instr.shape().elements()[i] : instr.shape();
  }
  Value Finish(std::vector<Value> results) const {
    return instr.shape().IsTuple() ? Value::Tuple(std::move(results)) : std::move(results[0]);
  }
};

// One input and a body that is a single commutative op.
template <typename T>
class WideReduction {
 public:
  WideReduction(const ReductionShape& reduction_shape, Op op, Context& context)
      : reduction_shape_(reduction_shape),
        op_(op),
        context_(context),
        input_(ElementsAs<T>(reduction_shape.inputs[0])),
        step_type_(StepType(reduction_shape.ShapeAt(0).type())),
        sums_(static_cast<size_t>(ProductOf(reduction_shape.result_dims)),
              ElementsAs<T>(reduction_shape.inits[0])[0]) {}

  Status Run(const Pass& pass) {
    // The op is selected outside the loop.
    switch (op_) {
      case Op::kAdd:
        return RunWith<Op::kAdd>(pass);
      case Op::kMultiply:
        return RunWith<Op::kMultiply>(pass);
      case Op::kMaximum:
        return RunWith<Op::kMaximum>(pass);
      case Op::kMinimum:
        return RunWith<Op::kMinimum>(pass);
      case Op::kAnd:
        return RunWith<Op::kAnd>(pass);
      case Op::kOr:
        return RunWith<Op::kOr>(pass);
      default:
        return RunWith<Op::kXor>(pass);
    }
  }

  Value Finish() {
    const Shape& shape = reduction_shape_.ShapeAt(0);
    for (T& sum : sums_) sum = context_.Round(shape.type(), sum);
    std::vector<Value> results;
    results.push_back(
        Value::Array(ResultShape(shape, reduction_shape_.result_dims), std::move(sums_)));
    return reduction_shape_.Finish(std::move(results));
  }

 private:
  template <Op kOp>
  Status RunWith(const Pass& pass) {
    ForEachRow<2>(
        pass.box, {pass.input, pass.result},
        [&](const std::array<int64_t, 2>& at, int64_t count, const std::array<int64_t, 2>& step) {
          const T* from = input_.data() + at[0];
          T* to = sums_.data() + at[1];
          for (int64_t i = 0; i < count; ++i) {
            T& sum = to[i * step[1]];
            if constexpr (kOp == Op::kAdd && std::is_same_v<T, double>) {
              sum += from[i * step[0]];
            } else {
              sum = Combine(kOp, sum, from[i * step[0]]);
            }
          }
        });
    return Ok();
  }

  // Narrow reals accumulate as f32.
  static ElementType StepType(ElementType type) {
    return IsReal(type) && InfoOf(type).bits < 32 ? ElementType::kF32 : type;
  }

  const ReductionShape& reduction_shape_;
  Op op_;
  Context& context_;
  std::vector<T> input_;
  ElementType step_type_;
  std::vector<T> sums_;
};

// Any body, any number of inputs.
class BodyReduction {
 public:
  BodyReduction(const ReductionShape& reduction_shape, Context& context, ScalarBody::Narrow narrow)
      : reduction_shape_(reduction_shape),
        context_(context),
        call_(reduction_shape.body(), reduction_shape.captures, context, narrow) {
    for (size_t i = 0; i < reduction_shape.inputs.size(); ++i) {
      ElementType type = reduction_shape.body().parameter(i)->shape().type();
      inputs_.push_back(ScalarsOf(reduction_shape.inputs[i], type));
      results_.emplace_back(static_cast<size_t>(ProductOf(reduction_shape.result_dims)),
                            ScalarsOf(reduction_shape.inits[i], type)[0]);
    }
  }

  Status Run(const Pass& pass) {
    const size_t n = inputs_.size();
    std::vector<ScalarSlot> arguments(2 * n), results(n);
    Status status = Ok();
    ForEachRow<2>(
        pass.box, {pass.input, pass.result},
        [&](const std::array<int64_t, 2>& at, int64_t count, const std::array<int64_t, 2>& step) {
          for (int64_t i = 0; i < count && status.ok(); ++i) {
            size_t from = static_cast<size_t>(at[0] + i * step[0]);
            size_t to = static_cast<size_t>(at[1] + i * step[1]);
            for (size_t k = 0; k < n; ++k) {
              arguments[k] = results_[k][to];
              arguments[n + k] = inputs_[k][from];
            }
            status = call_.Apply(arguments, results);
            for (size_t k = 0; k < n; ++k) results_[k][to] = results[k];
          }
        });
    return status;
  }

  Value Finish() {
    std::vector<Value> results;
    for (size_t k = 0; k < results_.size(); ++k) {
      ElementType type = reduction_shape_.ShapeAt(k).type();
      if (IsReal(type)) {  // accumulated as f32
        for (ScalarSlot& s : results_[k]) s.real = context_.Round(type, s.real);
      }
      results.push_back(ArrayOf(
          ResultShape(reduction_shape_.ShapeAt(k), reduction_shape_.result_dims), results_[k]));
    }
    return reduction_shape_.Finish(std::move(results));
  }

 private:
  const ReductionShape& reduction_shape_;
  Context& context_;
  BodyCall call_;
  std::vector<std::vector<ScalarSlot>> inputs_, results_;
};

template <typename Reduction, typename NextPass>
Result<Value> RunPasses(Reduction reduction, NextPass next) {
  for (std::optional<Pass> pass = next(); pass.has_value(); pass = next())
    TOK_RETURN_IF_ERROR(reduction.Run(*pass));
  return reduction.Finish();
}

// Accumulates over all passes that `next` yields, in sequence.
template <typename NextPass>
Result<Value> Reduction(const ReductionShape& reduction_shape, Context& context,
                        ScalarBody::Narrow narrow, NextPass next) {
  std::optional<Op> op;
  if (reduction_shape.inputs.size() == 1) op = CommutativeBody(reduction_shape.body());
  bool sums_steps = narrow == ScalarBody::Narrow::kRounded && op == Op::kAdd &&
                    context.mode() == NumericMode::kReference &&
                    IsReal(reduction_shape.ShapeAt(0).type());
  if (!op || sums_steps) return RunPasses(BodyReduction(reduction_shape, context, narrow), next);
  return DispatchStorage(reduction_shape.ShapeAt(0).type(), [&]<typename T>() -> Result<Value> {
    return RunPasses(WideReduction<T>(reduction_shape, *op, context), next);
  });
}

// A product over one complex number is that number, as in XLA and NumPy: multiplying an infinite
// one by 1 would change it.
bool GivesItsElement(const ReductionShape& reduction_shape, int64_t count) {
  if (reduction_shape.inputs.size() != 1 || count != 1) return false;
  ElementType type = reduction_shape.ShapeAt(0).type();
  std::optional<Op> op = CommutativeBody(reduction_shape.body());
  if (op != Op::kMultiply || !IsComplex(type)) return false;
  if (reduction_shape.inputs[0].type() != type || reduction_shape.inits[0].type() != type)
    return false;
  return DispatchStorage(
      type, [&]<typename T>() { return ElementsAs<T>(reduction_shape.inits[0])[0] == T(1); });
}

}  // namespace

Result<Value> EvalReduce(const Instr& instr, std::span<const Value> operands, Context& context) {
  ReductionShape reduction_shape(instr, operands);
  const Dims& reduced_dims = instr.attrs<DimensionsAttrs>().dimensions;
  const Dims& dims = reduction_shape.inputs[0].dims();
  std::vector<bool> is_kept_dim(dims.size(), true);
  for (int64_t d : reduced_dims) is_kept_dim[static_cast<size_t>(d)] = false;
  for (size_t d = 0; d < dims.size(); ++d)
    if (is_kept_dim[d]) reduction_shape.result_dims.push_back(dims[d]);
  TOK_RETURN_IF_ERROR(
      CheckFits(instr, reduction_shape.inputs[0].type(), reduction_shape.result_dims));
  int64_t reduced_count = 1;
  for (int64_t d : reduced_dims) reduced_count *= dims[static_cast<size_t>(d)];
  if (GivesItsElement(reduction_shape, reduced_count))
    return reduction_shape.Finish({reduction_shape.inputs[0].WithShape(
        ResultShape(reduction_shape.ShapeAt(0), reduction_shape.result_dims))});
  Pass pass{dims, StridedView{0, StridesOf(dims)}, StridedView{0, Dims(dims.size(), 0)}};
  Dims strides = StridesOf(reduction_shape.result_dims);
  for (size_t d = 0, k = 0; d < dims.size(); ++d)
    if (is_kept_dim[d]) pass.result.strides[d] = strides[k++];
  bool done = false;
  return Reduction(reduction_shape, context, ScalarBody::Narrow::kAsF32,
                   [&]() -> std::optional<Pass> {
                     if (done) return std::nullopt;
                     done = true;
                     return pass;
                   });
}

// One pass per tap of the window: the output positions that read an element through it.
Result<Value> EvalReduceWindow(const Instr& instr, std::span<const Value> operands,
                               Context& context) {
  ReductionShape reduction_shape(instr, operands);
  const Window& window = instr.attrs<WindowAttrs>().window;
  const Dims& dims = reduction_shape.inputs[0].dims();
  Dims first_tap, taps;
  for (size_t d = 0; d < dims.size(); ++d) {
    reduction_shape.result_dims.push_back(WindowedSize(window[d], dims[d]));
    auto [first, limit] = TapsInside(window[d], dims[d], reduction_shape.result_dims[d]);
    first_tap.push_back(first);
    taps.push_back(limit - first);
  }
  TOK_RETURN_IF_ERROR(
      CheckFits(instr, reduction_shape.inputs[0].type(), reduction_shape.result_dims));
  Dims strides = StridesOf(dims), result_strides = StridesOf(reduction_shape.result_dims);
  Dims tap(dims.size(), 0);
  bool more = ProductOf(taps) > 0 && ProductOf(reduction_shape.result_dims) > 0;
  return Reduction(
      reduction_shape, context, ScalarBody::Narrow::kRounded, [&]() -> std::optional<Pass> {
        if (!more) return std::nullopt;
        Pass pass{Dims(dims.size()), StridedView{0, strides}, StridedView{0, result_strides}};
        for (size_t d = 0; d < dims.size(); ++d) {
          TapOverlap overlap =
              OverlapOf(window[d], first_tap[d] + tap[d], dims[d], reduction_shape.result_dims[d]);
          pass.box[d] = overlap.count;
          pass.input.base += overlap.first_in * strides[d];
          pass.input.strides[d] *= overlap.step_in;
          pass.result.base += overlap.first_out * result_strides[d];
          pass.result.strides[d] *= overlap.step_out;
        }
        more = NextIndex(tap, taps);
        return pass;
      });
}

}  // namespace tokamak
