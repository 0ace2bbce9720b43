// convolution: measured cost 0.5 to 3 ns per multiply-add.
//
// All arrays are first brought into the order
//   input  [batch group][batch][feature group][space...][input feature]
//   kernel [group][space...][input feature][output feature]
//   output [batch group][batch][feature group][space...][output feature]
// Then, for each tap of the window, each output position accumulates a vector-matrix product. At
// least one of the feature group count and the batch group count is 1.

#include "interp/contraction.h"
#include "interp/evaluators.h"
#include "interp/window.h"

namespace tokamak {
namespace {

struct ConvSizes {
  int64_t batch_groups, feature_groups, batch, in_features, out_features;
  Dims input_space, kernel_space, output_space;
};

ConvSizes SizesOf(const Dims& input, const Dims& kernel, const ConvolutionAttrs& attrs,
                  const Dims& result) {
  auto at = [](const Dims& dims, int64_t d) { return dims[static_cast<size_t>(d)]; };
  ConvSizes sizes;
  sizes.batch_groups = attrs.batch_group_count;
  sizes.feature_groups = attrs.feature_group_count;
  sizes.batch = at(input, attrs.dims.input_batch) / sizes.batch_groups;
  sizes.in_features = at(kernel, attrs.dims.kernel_input);
  sizes.out_features =
      at(kernel, attrs.dims.kernel_output) / (sizes.batch_groups * sizes.feature_groups);
  sizes.input_space = Permuted(input, attrs.dims.input_spatial);
  sizes.kernel_space = Permuted(kernel, attrs.dims.kernel_spatial);
  sizes.output_space = Permuted(result, attrs.dims.output_spatial);
  return sizes;
}

// Dimensions and strides of an array, permuted into another order.
struct Order {
  Dims dims, strides;
  void Add(int64_t dim, int64_t stride) {
    dims.push_back(dim);
    strides.push_back(stride);
  }
};

Order InputOrder(const Dims& input, const ConvSizes& s, const ConvDims& dims) {
  Dims own = StridesOf(input);
  int64_t batch = own[static_cast<size_t>(dims.input_batch)];
  int64_t feature = own[static_cast<size_t>(dims.input_feature)];
  Order order;
  order.Add(s.batch_groups, batch * s.batch);
  order.Add(s.batch, batch);
  order.Add(s.feature_groups, feature * s.in_features);
  for (size_t i = 0; i < s.input_space.size(); ++i)
    order.Add(s.input_space[i], own[static_cast<size_t>(dims.input_spatial[i])]);
  order.Add(s.in_features, feature);
  return order;
}

Order KernelOrder(const Dims& kernel, const ConvSizes& s, const ConvDims& dims) {
  Dims own = StridesOf(kernel);
  int64_t output = own[static_cast<size_t>(dims.kernel_output)];
  Order order;
  order.Add(s.batch_groups * s.feature_groups, output * s.out_features);
  for (size_t i = 0; i < s.kernel_space.size(); ++i)
    order.Add(s.kernel_space[i], own[static_cast<size_t>(dims.kernel_spatial[i])]);
  order.Add(s.in_features, own[static_cast<size_t>(dims.kernel_input)]);
  order.Add(s.out_features, output);
  return order;
}

Order OutputOrder(const Dims& result, const ConvSizes& s, const ConvDims& dims) {
  Dims own = StridesOf(result);
  int64_t feature = own[static_cast<size_t>(dims.output_feature)];
  Order order;
  order.Add(s.batch_groups, feature * s.out_features);
  order.Add(s.batch, own[static_cast<size_t>(dims.output_batch)]);
  order.Add(s.feature_groups, feature * s.out_features);
  for (size_t i = 0; i < s.output_space.size(); ++i)
    order.Add(s.output_space[i], own[static_cast<size_t>(dims.output_spatial[i])]);
  order.Add(s.out_features, feature);
  return order;
}

// Output positions that read the input through one tap, as rows with a constant stride. Offsets
// count positions.
struct Row {
  int64_t input, output, count, input_step, output_step;
};

std::vector<Row> RowsOf(const ConvSizes& s, const Window& window, const Dims& tap) {
  Dims box(tap.size());
  StridedView input{0, StridesOf(s.input_space)}, output{0, StridesOf(s.output_space)};
  for (size_t d = 0; d < tap.size(); ++d) {
    TapOverlap overlap = OverlapOf(window[d], tap[d], s.input_space[d], s.output_space[d]);
    box[d] = overlap.count;
    input.base += overlap.first_in * input.strides[d];
    input.strides[d] *= overlap.step_in;
    output.base += overlap.first_out * output.strides[d];
    output.strides[d] *= overlap.step_out;
  }
  std::vector<Row> rows;
  ForEachRow<2>(
      box, {input, output},
      [&](const std::array<int64_t, 2>& at, int64_t count, const std::array<int64_t, 2>& step) {
        rows.push_back(Row{at[0], at[1], count, step[0], step[1]});
      });
  return rows;
}

// out[p] += in[p] * matrix for the positions p of a row.
template <typename T>
void AddRow(const Row& row, const T* in, const T* matrix, T* out, int64_t in_features,
            int64_t out_features) {
  in += row.input * in_features;
  out += row.output * out_features;
  if (in_features == 1 && out_features == 1) {
    const T factor = *matrix;
    for (int64_t i = 0; i < row.count; ++i)
      MulAdd(out[i * row.output_step], in[i * row.input_step], factor);
    return;
  }
  for (int64_t i = 0; i < row.count; ++i) {
    const T* vector = in + i * row.input_step * in_features;
    MultiplyMatrices(vector, matrix, out + i * row.output_step * out_features, 1, out_features,
                     in_features);
  }
}

}  // namespace

Dims ConvolutionResultDims(const Dims& input, const Dims& kernel, const ConvolutionAttrs& attrs) {
  const ConvDims& dims = attrs.dims;
  Dims result(input.size());
  result[static_cast<size_t>(dims.output_batch)] =
      input[static_cast<size_t>(dims.input_batch)] / attrs.batch_group_count;
  result[static_cast<size_t>(dims.output_feature)] =
      kernel[static_cast<size_t>(dims.kernel_output)];
  for (size_t i = 0; i < dims.output_spatial.size(); ++i) {
    WindowDim window = attrs.window[i];
    window.size = kernel[static_cast<size_t>(dims.kernel_spatial[i])];
    result[static_cast<size_t>(dims.output_spatial[i])] =
        WindowedSize(window, input[static_cast<size_t>(dims.input_spatial[i])]);
  }
  return result;
}

template <typename T>
std::vector<T> ConvolutionElements(std::span<const T> input, const Dims& input_dims,
                                   std::span<const T> kernel, const Dims& kernel_dims,
                                   const ConvolutionAttrs& attrs, const Dims& result_dims) {
  const ConvSizes s = SizesOf(input_dims, kernel_dims, attrs, result_dims);
  std::vector<T> result(static_cast<size_t>(ProductOf(result_dims)));
  if (result.empty() || ProductOf(s.kernel_space) == 0 || s.in_features == 0) return result;
  Order in = InputOrder(input_dims, s, attrs.dims),
        weights = KernelOrder(kernel_dims, s, attrs.dims);
  std::vector<T> inputs = ReadStrided(in.dims, input.data(), StridedView{0, in.strides});
  std::vector<T> matrices =
      ReadStrided(weights.dims, kernel.data(), StridedView{0, weights.strides});
  Order out = OutputOrder(result_dims, s, attrs.dims);
  std::vector<T> sums(result.size());

  const int64_t groups = s.batch_groups * s.feature_groups;
  const int64_t taps = ProductOf(s.kernel_space), matrix_size = s.in_features * s.out_features;
  const int64_t input_size = ProductOf(s.input_space) * s.in_features;
  const int64_t output_size = ProductOf(s.output_space) * s.out_features;
  Dims tap(s.kernel_space.size(), 0), strides = StridesOf(s.kernel_space);
  do {
    std::vector<Row> rows = RowsOf(s, attrs.window, tap);
    int64_t weight = 0;
    for (size_t d = 0; d < tap.size(); ++d)
      weight += (attrs.window[d].reversed ? s.kernel_space[d] - 1 - tap[d] : tap[d]) * strides[d];
    for (int64_t image = 0; image < groups * s.batch; ++image) {
      int64_t batch_group = image / (s.batch * s.feature_groups);
      int64_t group = batch_group * s.feature_groups + image % s.feature_groups;
      const T* matrix = matrices.data() + (group * taps + weight) * matrix_size;
      for (const Row& row : rows) {
        AddRow(row, inputs.data() + image * input_size, matrix, sums.data() + image * output_size,
               s.in_features, s.out_features);
      }
    }
  } while (NextIndex(tap, s.kernel_space));
  CopyStrided(out.dims, sums.data(), StridedView{0, StridesOf(out.dims)}, result.data(),
              StridedView{0, out.strides});
  return result;
}
#define TOK_INSTANTIATE(T)                                                                         \
  template std::vector<T> ConvolutionElements(std::span<const T>, const Dims&, std::span<const T>, \
                                              const Dims&, const ConvolutionAttrs&, const Dims&);
TOK_INSTANTIATE(uint8_t)
TOK_INSTANTIATE(int64_t)
TOK_INSTANTIATE(uint64_t)
TOK_INSTANTIATE(double)
TOK_INSTANTIATE(Complex)
TOK_INSTANTIATE(float)
TOK_INSTANTIATE(std::complex<float>)
#undef TOK_INSTANTIATE

namespace {

Result<Value> Convolve(const Instr& instr, const Value& input, const Value& kernel,
                       const ConvolutionAttrs& attrs, const Context& context) {
  Dims dims = ConvolutionResultDims(input.dims(), kernel.dims(), attrs);
  TOK_RETURN_IF_ERROR(CheckFits(instr, instr.shape().type(), dims));
  return DispatchSums(instr.shape().type(), context, [&]<typename T>() -> Result<Value> {
    std::vector<T> left = ElementsAs<T>(input), right = ElementsAs<T>(kernel);
    std::vector<T> sums =
        ConvolutionElements<T>(left, input.dims(), right, kernel.dims(), attrs, dims);
    return RoundedArray(instr, dims, std::move(sums), context);
  });
}

}  // namespace

Result<Value> EvalConvolution(const Instr& instr, std::span<const Value> operands,
                              Context& context) {
  return Convolve(instr, operands[0], operands[1], instr.attrs<ConvolutionAttrs>(), context);
}

Result<Value> EvalDynamicConv(const Instr& instr, std::span<const Value> operands,
                              Context& context) {
  ConvolutionAttrs attrs = instr.attrs<ConvolutionAttrs>();
  attrs.window.resize(attrs.dims.input_spatial.size());
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    attrs.window[i].pad_low = operands[2].IntAt(static_cast<int64_t>(2 * i));
    attrs.window[i].pad_high = operands[2].IntAt(static_cast<int64_t>(2 * i + 1));
    if (std::max(std::abs(attrs.window[i].pad_low), std::abs(attrs.window[i].pad_high)) >
        kMaxElements) {
      return RunError(ErrorCode::kRunIndexOutOfRange, instr,
                      "padding of spatial dimension " + std::to_string(i) + " is " +
                          std::to_string(attrs.window[i].pad_low) + ", " +
                          std::to_string(attrs.window[i].pad_high));
    }
  }
  return Convolve(instr, operands[0], operands[1], attrs, context);
}

}  // namespace tokamak
