// reduce, reduce-window: each is a number of passes over boxes of the inputs,
// every element of which is folded into one element of the result. For one
// element of the result the order is always row-major.
//
// A reduce keeps its sums wide and rounds once, other bodies of narrow types as
// f32; a reduce-window applies its body as it stands
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

struct Folding {
  const Instr& instr;
  std::span<const Value> inputs, inits, captures;
  Dims result_dims;

  Folding(const Instr& op, std::span<const Value> operands)
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
class WideFold {
 public:
  WideFold(const Folding& folding, Op op, Context& context)
      : folding_(folding),
        op_(op),
        context_(context),
        input_(ElementsAs<T>(folding.inputs[0])),
        step_type_(StepType(folding.ShapeAt(0).type())),
        sums_(static_cast<size_t>(ProductOf(folding.result_dims)),
              ElementsAs<T>(folding.inits[0])[0]) {}

  Status Run(const Pass& pass) {
    // The op is chosen outside of the loop.
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
    const Shape& shape = folding_.ShapeAt(0);
    for (T& sum : sums_) sum = context_.Round(shape.type(), sum);
    std::vector<Value> results;
    results.push_back(Value::Array(ResultShape(shape, folding_.result_dims), std::move(sums_)));
    return folding_.Finish(std::move(results));
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

  // Narrow reals are kept as f32.
  static ElementType StepType(ElementType type) {
    return IsReal(type) && InfoOf(type).bits < 32 ? ElementType::kF32 : type;
  }

  const Folding& folding_;
  Op op_;
  Context& context_;
  std::vector<T> input_;
  ElementType step_type_;
  std::vector<T> sums_;
};

// Any body, any number of inputs.
class BodyFold {
 public:
  BodyFold(const Folding& folding, Context& context, ScalarBody::Narrow narrow)
      : folding_(folding),
        context_(context),
        call_(folding.body(), folding.captures, context, narrow) {
    for (size_t i = 0; i < folding.inputs.size(); ++i) {
      ElementType type = folding.body().parameter(i)->shape().type();
      inputs_.push_back(ScalarsOf(folding.inputs[i], type));
      results_.emplace_back(static_cast<size_t>(ProductOf(folding.result_dims)),
                            ScalarsOf(folding.inits[i], type)[0]);
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
      ElementType type = folding_.ShapeAt(k).type();
      if (IsReal(type)) {  // kept as f32 until here
        for (ScalarSlot& s : results_[k]) s.real = context_.Round(type, s.real);
      }
      results.push_back(
          ArrayOf(ResultShape(folding_.ShapeAt(k), folding_.result_dims), results_[k]));
    }
    return folding_.Finish(std::move(results));
  }

 private:
  const Folding& folding_;
  Context& context_;
  BodyCall call_;
  std::vector<std::vector<ScalarSlot>> inputs_, results_;
};

template <typename Fold, typename NextPass>
Result<Value> RunPasses(Fold fold, NextPass next) {
  for (std::optional<Pass> pass = next(); pass.has_value(); pass = next())
    TOK_RETURN_IF_ERROR(fold.Run(*pass));
  return fold.Finish();
}

// Folds along all passes that `next` gives, one after the other.
template <typename NextPass>
Result<Value> Fold(const Folding& folding, Context& context, ScalarBody::Narrow narrow,
                   NextPass next) {
  std::optional<Op> op;
  if (folding.inputs.size() == 1) op = CommutativeBody(folding.body());
  bool sums_steps = narrow == ScalarBody::Narrow::kRounded && op == Op::kAdd &&
                    context.mode() == NumericMode::kLaw && IsReal(folding.ShapeAt(0).type());
  if (!op || sums_steps) return RunPasses(BodyFold(folding, context, narrow), next);
  return DispatchStorage(folding.ShapeAt(0).type(), [&]<typename T>() -> Result<Value> {
    return RunPasses(WideFold<T>(folding, *op, context), next);
  });
}

// A product of one complex number is that number, as in XLA and NumPy: 1 times an infinite one is
// another.
bool GivesItsElement(const Folding& folding, int64_t count) {
  if (folding.inputs.size() != 1 || count != 1) return false;
  ElementType type = folding.ShapeAt(0).type();
  std::optional<Op> op = CommutativeBody(folding.body());
  if (op != Op::kMultiply || !IsComplex(type)) return false;
  if (folding.inputs[0].type() != type || folding.inits[0].type() != type) return false;
  return DispatchStorage(type,
                         [&]<typename T>() { return ElementsAs<T>(folding.inits[0])[0] == T(1); });
}

}  // namespace

Result<Value> EvalReduce(const Instr& instr, std::span<const Value> operands, Context& context) {
  Folding folding(instr, operands);
  const Dims& folded = instr.attrs<DimensionsAttrs>().dimensions;
  const Dims& dims = folding.inputs[0].dims();
  std::vector<bool> stays(dims.size(), true);
  for (int64_t d : folded) stays[static_cast<size_t>(d)] = false;
  for (size_t d = 0; d < dims.size(); ++d)
    if (stays[d]) folding.result_dims.push_back(dims[d]);
  TOK_RETURN_IF_ERROR(CheckFits(instr, folding.inputs[0].type(), folding.result_dims));
  int64_t folded_count = 1;
  for (int64_t d : folded) folded_count *= dims[static_cast<size_t>(d)];
  if (GivesItsElement(folding, folded_count))
    return folding.Finish(
        {folding.inputs[0].WithShape(ResultShape(folding.ShapeAt(0), folding.result_dims))});
  Pass pass{dims, StridedView{0, StridesOf(dims)}, StridedView{0, Dims(dims.size(), 0)}};
  Dims strides = StridesOf(folding.result_dims);
  for (size_t d = 0, k = 0; d < dims.size(); ++d)
    if (stays[d]) pass.result.strides[d] = strides[k++];
  bool done = false;
  return Fold(folding, context, ScalarBody::Narrow::kAsF32, [&]() -> std::optional<Pass> {
    if (done) return std::nullopt;
    done = true;
    return pass;
  });
}

// One pass per tap of the window: the places that see an element through it.
Result<Value> EvalReduceWindow(const Instr& instr, std::span<const Value> operands,
                               Context& context) {
  Folding folding(instr, operands);
  const Window& window = instr.attrs<WindowAttrs>().window;
  const Dims& dims = folding.inputs[0].dims();
  Dims first_tap, taps;
  for (size_t d = 0; d < dims.size(); ++d) {
    folding.result_dims.push_back(WindowedSize(window[d], dims[d]));
    auto [first, limit] = TapsInside(window[d], dims[d], folding.result_dims[d]);
    first_tap.push_back(first);
    taps.push_back(limit - first);
  }
  TOK_RETURN_IF_ERROR(CheckFits(instr, folding.inputs[0].type(), folding.result_dims));
  Dims strides = StridesOf(dims), result_strides = StridesOf(folding.result_dims);
  Dims tap(dims.size(), 0);
  bool more = ProductOf(taps) > 0 && ProductOf(folding.result_dims) > 0;
  return Fold(folding, context, ScalarBody::Narrow::kRounded, [&]() -> std::optional<Pass> {
    if (!more) return std::nullopt;
    Pass pass{Dims(dims.size()), StridedView{0, strides}, StridedView{0, result_strides}};
    for (size_t d = 0; d < dims.size(); ++d) {
      TapOverlap overlap =
          OverlapOf(window[d], first_tap[d] + tap[d], dims[d], folding.result_dims[d]);
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
