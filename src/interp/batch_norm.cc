// batch-norm-training, -inference and -grad, computed entirely in double.

#include <cmath>

#include "interp/evaluators.h"
#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

// Calls fn(element, feature) for every element in row-major order.
template <typename Fn>
void ForEachFeature(const Dims& dims, int64_t feature_index, Fn&& fn) {
  int64_t inner = StridesOf(dims)[static_cast<size_t>(feature_index)];
  int64_t features = dims[static_cast<size_t>(feature_index)], count = ProductOf(dims);
  for (int64_t i = 0; i < count; ++i)
    fn(static_cast<size_t>(i), static_cast<size_t>(i / inner % features));
}

std::vector<double> Rounded(std::vector<double> values, ElementType type, const Context& context) {
  for (double& v : values) v = context.Round(type, v);
  return values;
}

struct Moments {
  std::vector<double> mean, variance;
};

Moments MomentsOf(std::span<const double> x, const Dims& dims, int64_t feature) {
  size_t features = static_cast<size_t>(dims[static_cast<size_t>(feature)]);
  double count = static_cast<double>(x.size()) / static_cast<double>(features);
  Moments m{std::vector<double>(features), std::vector<double>(features)};
  ForEachFeature(dims, feature, [&](size_t i, size_t f) { m.mean[f] += x[i]; });
  for (double& mean : m.mean) mean /= count;
  ForEachFeature(dims, feature, [&](size_t i, size_t f) {
    m.variance[f] += (x[i] - m.mean[f]) * (x[i] - m.mean[f]);
  });
  for (double& variance : m.variance) variance /= count;
  return m;
}

std::vector<double> Normalised(const Value& operand, std::span<const double> scale,
                               std::span<const double> offset, std::span<const double> mean,
                               std::span<const double> variance, const BatchNormAttrs& attrs) {
  std::span<const double> x = operand.Data<double>();
  std::vector<double> y(x.size());
  ForEachFeature(operand.dims(), attrs.feature_index, [&](size_t i, size_t f) {
    y[i] = scale[f] * (x[i] - mean[f]) / std::sqrt(variance[f] + attrs.epsilon) + offset[f];
  });
  return y;
}

Value FeatureArray(const Instr& instr, size_t element, std::vector<double> values,
                   const Context& context) {
  const Shape& shape = instr.shape().elements()[element];
  Dims dims{static_cast<int64_t>(values.size())};
  return Value::Array(ResultShape(shape, dims), Rounded(std::move(values), shape.type(), context));
}

}  // namespace

Result<Value> EvalBatchNormTraining(const Instr& instr, std::span<const Value> operands,
                                    Context& context) {
  const BatchNormAttrs& attrs = instr.attrs<BatchNormAttrs>();
  const Dims& dims = operands[0].dims();
  std::span<const double> x = operands[0].Data<double>();
  Moments moments = MomentsOf(x, dims, attrs.feature_index);
  std::vector<double> y =
      Normalised(operands[0], operands[1].Data<double>(), operands[2].Data<double>(), moments.mean,
                 moments.variance, attrs);
  const Shape& shape = instr.shape().elements()[0];
  std::vector<Value> results;
  results.push_back(
      Value::Array(ResultShape(shape, dims), Rounded(std::move(y), shape.type(), context)));
  results.push_back(FeatureArray(instr, 1, std::move(moments.mean), context));
  results.push_back(FeatureArray(instr, 2, std::move(moments.variance), context));
  return Value::Tuple(std::move(results));
}

Result<Value> EvalBatchNormInference(const Instr& instr, std::span<const Value> operands,
                                     Context& context) {
  const Dims& dims = operands[0].dims();
  std::vector<double> y = Normalised(operands[0], operands[1].Data<double>(),
                                     operands[2].Data<double>(), operands[3].Data<double>(),
                                     operands[4].Data<double>(), instr.attrs<BatchNormAttrs>());
  return Value::Array(ResultShape(instr, dims),
                      Rounded(std::move(y), instr.shape().type(), context));
}

// Operands: x, scale, mean, variance, gradient of the output.
Result<Value> EvalBatchNormGrad(const Instr& instr, std::span<const Value> operands,
                                Context& context) {
  const BatchNormAttrs& attrs = instr.attrs<BatchNormAttrs>();
  const Dims& dims = operands[0].dims();
  std::span<const double> x = operands[0].Data<double>(), scale = operands[1].Data<double>();
  std::span<const double> mean = operands[2].Data<double>(), variance = operands[3].Data<double>();
  std::span<const double> grad = operands[4].Data<double>();
  const double count = static_cast<double>(x.size()) / static_cast<double>(scale.size());
  // Sums of the gradient, and of the gradient times the centred input.
  std::vector<double> sum(scale.size()), sum_centred(scale.size());
  ForEachFeature(dims, attrs.feature_index, [&](size_t i, size_t f) {
    sum[f] += grad[i];
    sum_centred[f] += grad[i] * (x[i] - mean[f]);
  });
  std::vector<double> grad_x(x.size()), grad_scale(scale.size());
  for (size_t f = 0; f < scale.size(); ++f)
    grad_scale[f] = sum_centred[f] / std::sqrt(variance[f] + attrs.epsilon);
  ForEachFeature(dims, attrs.feature_index, [&](size_t i, size_t f) {
    double stabilized_variance = variance[f] + attrs.epsilon;
    grad_x[i] =
        scale[f] / std::sqrt(stabilized_variance) / count *
        (count * grad[i] - sum[f] - (x[i] - mean[f]) * sum_centred[f] / stabilized_variance);
  });
  const Shape& shape = instr.shape().elements()[0];
  std::vector<Value> results;
  results.push_back(
      Value::Array(ResultShape(shape, dims), Rounded(std::move(grad_x), shape.type(), context)));
  results.push_back(FeatureArray(instr, 1, std::move(grad_scale), context));
  results.push_back(FeatureArray(instr, 2, std::move(sum), context));
  return Value::Tuple(std::move(results));
}

}  // namespace tokamak
