// Prepares convolutions for cuDNN: features become the last dimension of input and result, output
// features the first of the filter, and the library's window replaces that of the program. Layout
// ops around the convolution keep its value:
//
//   conv(x, w)  ->  transpose(conv(pad(transpose(x)), transpose(reverse(w))))
//
// A convolution has one of three forms (LibraryConvolution): the forward one, y = conv(x, w), or
// the gradient with respect to x or to w. Sizes x, w, y and padding are always those of the forward
// convolution, also where the program computes a gradient. The pass queries the library for each
// convolution; if the library rejects asymmetric padding, the surplus zeros of one side are
// materialized and the library is queried again.

#include <algorithm>
#include <numeric>

#include "gen/library/convolution.h"
#include "gen/library/libraries.h"
#include "gen/library/tensor_convolution.h"
#include "gen/region.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

using ConvForm = LibraryConvolution::Form;
using ConvSpace = LibraryConvolution::SpatialDim;

int64_t At(const Shape& shape, int64_t d) {
  return shape.dim(static_cast<size_t>(d));
}

// Rewrites the filter gradient of a strided convolution, which has base dilation and a window
// larger than its result: exchanges input and kernel and reverses the result. The base dilation
// becomes window dilation. Null if `conv` is not such a gradient.
Instr* WithSidesSwapped(Instr& conv) {
  ConvolutionAttrs attrs = conv.attrs<ConvolutionAttrs>();
  const Shape &input = conv.operand(0)->shape(), &kernel = conv.operand(1)->shape();
  bool has_base_dilation = false;
  double taps = 1, results = 1;
  for (size_t d = 0; d < attrs.window.size(); ++d) {
    WindowDim& window = attrs.window[d];
    if (window.stride != 1 || window.window_dilation != 1 || window.reversed) return nullptr;
    const int64_t size = At(input, attrs.dims.input_spatial[d]),
                  result = At(conv.shape(), attrs.dims.output_spatial[d]);
    has_base_dilation = has_base_dilation || window.base_dilation > 1;
    taps *= static_cast<double>(window.size);
    results *= static_cast<double>(result);
    WindowDim swapped{.size = size, .pad_low = result - 1 - window.pad_low};
    swapped.window_dilation = window.base_dilation;
    swapped.pad_high = result + (size - 1) * window.base_dilation - window.size - swapped.pad_low;
    window = swapped;
  }
  if (!has_base_dilation || taps <= results || attrs.feature_group_count != 1 ||
      attrs.batch_group_count != 1 || !IsPlainArray(input) || !IsPlainArray(kernel))
    return nullptr;
  ConvDims& dims = attrs.dims;
  std::swap(dims.input_batch, dims.kernel_output);
  std::swap(dims.input_feature, dims.kernel_input);
  std::swap(dims.input_spatial, dims.kernel_spatial);
  std::swap(dims.output_batch, dims.output_feature);
  std::ranges::reverse(attrs.precision);
  Dims reversed_dims = dims.output_spatial;
  std::ranges::sort(reversed_dims);
  const Shape shape = conv.shape().WithoutLayout();
  Editor make(conv, Editor::Naming::kUnnamed);
  Instr* made =
      make.Make(Op::kConvolution, shape, {conv.operand(1), conv.operand(0)}, std::move(attrs));
  made->set_name(conv.name());
  make.Replace(make.Make(Op::kReverse, shape, {made}, DimensionsAttrs{reversed_dims}));
  return made;
}

class ConvolutionPreparer {
 public:
  ConvolutionPreparer(Instr& conv, LibraryConvolution read)
      : conv_(conv),
        make_(conv, Editor::Naming::kUnnamed),
        attrs_(conv.attrs<ConvolutionAttrs>()),
        read_(std::move(read)) {}

  // Queries the library for the convolution as it stands, then for one of an explicitly padded
  // array. Returns why not; empty on success.
  std::string Ask(TargetLibraries& libraries) {
    std::string why = libraries.WhyNot(read_);
    bool even = std::ranges::all_of(
        read_.space, [](const ConvSpace& dim) { return dim.pad_low == dim.pad_high; });
    if (why.empty() || even) return why;
    for (ConvSpace& dim : read_.space) {
      int64_t both = std::min(dim.pad_low, dim.pad_high);
      low_.push_back(dim.pad_low - both);
      high_.push_back(dim.pad_high - both);
      dim.x += low_.back() + high_.back();
      dim.pad_low = dim.pad_high = both;
    }
    return libraries.WhyNot(read_);
  }

  // Whether it already has the requested layout.
  bool IsLaidOut() const { return low_.empty() && MatchLaidOutConvolution(conv_).has_value(); }

  // The gradient of x is computed for the padded x and cut; the other forms read a padded x.
  void Run() {
    const ConvDims& from = attrs_.dims;
    const ConvDims to = LibraryDims(read_.form, attrs_.window.size());
    Instr* input = Moved(conv_.operand(0), Order(from.input_batch, from.input_feature,
                                                 from.input_spatial, to.input_batch));
    if (read_.form != ConvForm::kBackwardData) input = Padded(input);
    Instr* kernel = Moved(Reversed(conv_.operand(1)), Order(from.kernel_output, from.kernel_input,
                                                            from.kernel_spatial, to.kernel_output));
    ConvolutionAttrs attrs = attrs_;
    attrs.dims = to;
    SetWindow(attrs.window);
    const Dims order =
        Order(from.output_batch, from.output_feature, from.output_spatial, to.output_batch);
    Dims dims = Permuted(conv_.shape(), order), space_dims = dims;
    for (size_t d = 0; d < read_.space.size(); ++d)
      if (read_.form == ConvForm::kBackwardData) space_dims[d + 1] = read_.space[d].x;
    Instr* result = Make(Op::kConvolution, space_dims, {input, kernel}, std::move(attrs));
    result->set_name(conv_.name());
    if (space_dims != dims) result = Cut(result, dims);
    Dims back(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    result = Moved(result, back);
    make_.Replace(result);
  }

 private:
  Instr* Make(Op op, const Dims& dims, std::vector<Instr*> operands, Attrs attrs = {}) {
    return make_.Make(op, Shape::Array(read_.type, dims), std::move(operands), std::move(attrs));
  }

  // The dimension that comes first (`first` if `first_at` is 0, else `second`), the spatial
  // dimensions, then the other one.
  static Dims Order(int64_t first, int64_t second, const Dims& space, int64_t first_at) {
    if (first_at != 0) std::swap(first, second);
    Dims order = {first};
    order.insert(order.end(), space.begin(), space.end());
    order.push_back(second);
    return order;
  }
  static Dims Permuted(const Shape& shape, const Dims& order) {
    Dims dims;
    for (int64_t d : order) dims.push_back(At(shape, d));
    return dims;
  }

  Instr* Moved(Instr* x, const Dims& order) {
    if (std::ranges::is_sorted(order)) return x;
    Dims moved;
    for (int64_t d : order)
      if (At(x->shape(), d) > 1) moved.push_back(d);
    if (std::ranges::is_sorted(moved)) return Make(Op::kReshape, Permuted(x->shape(), order), {x});
    return Make(Op::kTranspose, Permuted(x->shape(), order), {x}, DimensionsAttrs{order});
  }

  // The filter with its taps in the library's order.
  Instr* Reversed(Instr* kernel) {
    Dims reversed_dims;
    for (size_t d = 0; d < attrs_.window.size(); ++d)
      if (attrs_.window[d].reversed != IsReversed(read_.form) && attrs_.window[d].size > 1)
        reversed_dims.push_back(attrs_.dims.kernel_spatial[d]);
    if (reversed_dims.empty()) return kernel;
    std::ranges::sort(reversed_dims);
    if (kernel->op() == Op::kReverse) {
      Dims there = kernel->attrs<DimensionsAttrs>().dimensions;
      std::ranges::sort(there);
      if (there == reversed_dims) return kernel->operand(0);
    }
    return Make(Op::kReverse, kernel->shape().dims(), {kernel}, DimensionsAttrs{reversed_dims});
  }

  Instr* Padded(Instr* x) {
    if (low_.empty()) return x;
    const size_t rank = x->shape().dims().size();
    PadAttrs pad{Dims(rank), Dims(rank), Dims(rank)};
    Dims dims = x->shape().dims();
    for (size_t d = 0; d < low_.size(); ++d) {
      pad.low[d + 1] = low_[d];
      pad.high[d + 1] = high_[d];
      dims[d + 1] += low_[d] + high_[d];
    }
    Instr* zero = Make(Op::kConstant, {}, {}, ConstantAttrs{Literal::Scalar(read_.type, 0)});
    return Make(Op::kPad, dims, {x, zero}, std::move(pad));
  }

  // Removes the gradient of the padding.
  Instr* Cut(Instr* x, const Dims& dims) {
    Dims begin(dims.size(), 0), end = dims, step(dims.size(), 1);
    for (size_t d = 0; d < low_.size(); ++d) {
      begin[d + 1] = low_[d];
      end[d + 1] += low_[d];
    }
    return Make(Op::kSlice, dims, {x}, SliceAttrs{begin, end, step});
  }

  // The window that the library computes, with the padding that is not materialized.
  void SetWindow(Window& window) const {
    for (size_t d = 0; d < window.size(); ++d) {
      window[d].reversed = IsReversed(read_.form);
      if (low_.empty()) continue;
      const ConvSpace& dim = read_.space[d];
      const int64_t reach = (dim.w - 1) * dim.dilation, steps = (dim.y - 1) * dim.stride;
      window[d].pad_low = read_.form == ConvForm::kBackwardData ? reach - dim.pad_low : dim.pad_low;
      window[d].pad_high = read_.form == ConvForm::kForward ? dim.pad_high
                           : read_.form == ConvForm::kBackwardData
                               ? dim.x + reach - steps - 1 - window[d].pad_low
                               : reach + steps + 1 - dim.x - dim.pad_low;
    }
  }

  Instr& conv_;
  Editor make_;
  const ConvolutionAttrs attrs_;
  LibraryConvolution read_;
  Dims low_, high_;  // materialized zeros of each spatial dimension
};

}  // namespace

// Assigns cuDNN's layout to convolutions that the library computes faster than kernels or dots:
// features last, and output features first in the filter. A window with asymmetric padding that the
// library does not support becomes a window over an explicitly padded array.
Result<Changed> AssignConvolutionLayouts(Module& module, PassContext& context) {
  TargetLibraries* libraries = context.target.libraries;
  if (libraries == nullptr) return Changed::kNo;
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() != Op::kConvolution) continue;
      if (Instr* swapped = WithSidesSwapped(*instr)) {
        context.Accepted("convolution.swap-sides", *swapped);
        instr = swapped;
        changed = true;
      }
      if (TensorConvolutionOf(*instr, context.machine()).BeatsLibrary()) {
        context.Rejected("convolution.library", *instr, nullptr,
                         "a kernel of tensor cores is predicted to be faster");
        continue;
      }
      std::optional<LibraryConvolution> read = MatchConvolution(*instr);
      if (!read || !PrefersConvolutionLibrary(*read, *instr)) continue;
      ConvolutionPreparer preparer(*instr, *read);
      if (std::string why_not = preparer.Ask(*libraries); !why_not.empty()) {
        context.Rejected("convolution.library", *instr, nullptr, why_not);
        continue;
      }
      if (preparer.IsLaidOut()) continue;
      context.Accepted("convolution.library", *instr);
      preparer.Run();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
