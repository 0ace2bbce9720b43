// Convolutions of images as networks have them, and their gradients: forward, of the input (with
// base dilation, where the forward one has strides) and of the filter, in the layouts of
// frameworks.
#include <algorithm>
#include <numeric>

#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

using Type = ElementType;

enum class ImageForm : uint8_t { kForward, kInputGradient, kFilterGradient };

// A spatial dimension: the size of the input, and the window, which has the results of the forward
// convolution for the gradient of a filter.
struct ImageWindow {
  int64_t size = 1;
  WindowDim window;
};

ImageWindow DrawImageWindow(Random& random, ImageForm form, int64_t dilation) {
  bool is_filter = form == ImageForm::kFilterGradient;
  ImageWindow drawn;
  drawn.size = random.Pick({7, 8, 8, 8, 10, 14, 16, 16});
  WindowDim& window = drawn.window;
  window.size = is_filter ? random.Pick({4, 7, 8, 8, 8, 16}) : random.Pick({1, 1, 2, 3, 3, 3, 5});
  if (form == ImageForm::kInputGradient) {
    window.base_dilation = dilation;
    window.pad_low = random.Between(0, window.size - 1);
    window.pad_high = random.Between(0, window.size);
    return drawn;
  }
  int64_t& step = is_filter ? window.window_dilation : window.stride;
  int64_t& spread = is_filter ? window.stride : window.window_dilation;
  if (random.Percent(30)) step = random.Pick({2, 2, 3});
  if (random.Percent(15)) spread = 2;
  window.pad_low = random.Percent(60) ? random.Between(-1, 3) : 0;
  window.pad_high = random.Percent(60) ? random.Between(-1, 3) : 0;
  // Of the gradient of a filter: at least one result.
  int64_t reach = (window.size - 1) * window.window_dilation + 1;
  window.pad_high = std::max(window.pad_high, reach - drawn.size - window.pad_low);
  window.reversed = !is_filter && random.Percent(25);
  return drawn;
}

// The order in which an array has its dimensions, which are drawn with the batch first and the
// features last.
Dims DrawOrder(ProgramBuilder& builder, int64_t rank, bool channels_first) {
  Dims order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (builder.random().Percent(6)) return builder.Permutation(rank);
  if (channels_first) std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return order;
}

Dims Reordered(const Dims& dims, const Dims& order) {
  Dims made;
  for (int64_t d : order) made.push_back(dims[static_cast<size_t>(d)]);
  return made;
}

int64_t PositionIn(const Dims& order, int64_t d) {
  return std::ranges::find(order, d) - order.begin();
}

void Relabel(const Dims& order, std::initializer_list<int64_t*> labels, Dims& spatial) {
  for (int64_t* label : labels) *label = PositionIn(order, *label);
  for (int64_t& d : spatial) d = PositionIn(order, d);
}

}  // namespace

// Null if it would be too large.
Instr* DrawImageConvolution(ProgramBuilder& builder) {
  // Multiplications. Chosen: the interpreter takes some tens of milliseconds, and tensor cores are
  // used from half of that on.
  constexpr int64_t kMaxProducts = int64_t{1} << 23;
  Random& random = builder.random();
  Type type =
      random.Pick({Type::kBF16, Type::kBF16, Type::kBF16, Type::kF16, Type::kF32, Type::kF32});
  ImageForm form = random.Pick({ImageForm::kForward, ImageForm::kForward, ImageForm::kForward,
                                ImageForm::kInputGradient, ImageForm::kFilterGradient,
                                ImageForm::kFilterGradient});
  bool is_filter = form == ImageForm::kFilterGradient;
  int64_t rank = random.Pick({1, 2, 2, 2, 3}), last = rank + 1;
  int64_t batch = random.Pick({1, 2, 3, 4, 8, 16});
  int64_t features = random.Pick({3, 17, 32, 40, 64, 64, 64, 72, 128});
  int64_t outputs = random.Pick({32, 40, 64, 64, 65, 96});
  int64_t dilation = random.Pick({2, 2, 3});
  bool transposed = !is_filter && random.Percent(40);  // the filter of the input's gradient
  bool is_large = random.Percent(40);
  ConvolutionAttrs attrs;
  attrs.precision = DrawPrecision(random, 80);
  Dims image{batch}, filter;
  if (is_filter) filter.push_back(batch);
  int64_t products = batch * features * outputs;
  for (int64_t d = 0; d < rank; ++d) {
    ImageWindow drawn = DrawImageWindow(random, form, dilation);
    image.push_back(drawn.size);
    filter.push_back(drawn.window.size);
    products *= drawn.size * (is_filter ? 3 : drawn.window.size);
    attrs.dims.input_spatial.push_back(d + 1);
    attrs.dims.kernel_spatial.push_back(is_filter ? d + 1 : d);
    attrs.dims.output_spatial.push_back(is_filter ? d : d + 1);
    attrs.window.push_back(drawn.window);
  }
  if (products > kMaxProducts) return nullptr;
  // Most drawn ones are too small for tensor cores.
  for (; is_large && 2 * products <= kMaxProducts; products *= 2) {
    image[0] *= 2;
    if (is_filter) filter[0] *= 2;
  }
  image.push_back(features);
  attrs.dims.input_batch = is_filter ? last : 0;
  attrs.dims.input_feature = is_filter ? 0 : last;
  attrs.dims.kernel_input = is_filter ? 0 : transposed ? last : last - 1;
  attrs.dims.kernel_output = transposed ? last - 1 : last;
  attrs.dims.output_batch = is_filter ? last - 1 : 0;
  attrs.dims.output_feature = last;
  if (!is_filter) filter.push_back(transposed ? outputs : features);
  filter.push_back(transposed ? features : outputs);

  bool channels_first = random.Percent(25);
  Dims of_image = DrawOrder(builder, rank + 2, channels_first);
  Dims of_filter = DrawOrder(builder, rank + 2, channels_first);
  Dims of_result = DrawOrder(builder, rank + 2, channels_first);
  ConvDims& dims = attrs.dims;
  Relabel(of_image, {&dims.input_batch, &dims.input_feature}, dims.input_spatial);
  Relabel(of_filter, {&dims.kernel_input, &dims.kernel_output}, dims.kernel_spatial);
  Relabel(of_result, {&dims.output_batch, &dims.output_feature}, dims.output_spatial);
  Instr* x = builder.Parameter(Shape::Array(type, Reordered(image, of_image)));
  if (random.Percent(25)) x = builder.Put(random.Pick({Op::kTanh, Op::kAbs}), {x});
  Instr* w = builder.Parameter(Shape::Array(type, Reordered(filter, of_filter)));
  return builder.Put(Op::kConvolution, {x, w}, attrs);
}

}  // namespace tokamak::fuzz
