#include <algorithm>

#include "gen/element.h"
#include "gen/region.h"
#include "passes/passes.h"
#include "passes/target/left_to_library.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Bytes of the matrix that is gathered, where it may be stored: for products with more columns,
// which would gather it anew again and again, and of what no `contract` kernel multiplies.
constexpr int64_t kConvolutionMostBytes = int64_t{1} << 30, kFewColumns = 1024;

// One convolution. Orders: the input is [batch group, batch, space..., feature group, feature], the
// kernel [space..., feature, batch group, feature group, output feature]; of the groups one is 1.
class ConvolutionExpander {
 public:
  explicit ConvolutionExpander(Instr& conv)
      : conv_(conv),
        make_(conv, Editor::Naming::kUnnamed),
        attrs_(conv.attrs<ConvolutionAttrs>()),
        rank_(attrs_.window.size()) {}

  bool IsFit() const {
    for (const Instr* operand : conv_.operands())
      if (!IsFitArray(operand->shape())) return false;
    if (!IsFitArray(conv_.shape()) || attrs_.dims.input_spatial.size() != rank_) return false;
    if (IsDirect() || (OutFeatures() <= kFewColumns && !IsComplex(conv_.shape().type())))
      return true;
    double elements = Products() / static_cast<double>(OutFeatures());
    return elements * static_cast<double>(BytesOf(conv_.operand(0)->shape().type())) <=
           static_cast<double>(kConvolutionMostBytes);
  }

  void Run() {
    if (IsDirect()) return RunDirect();
    Instr* seen = Gathered(Padded(Arranged()));
    DotAttrs dot;
    dot.precision = attrs_.precision;
    auto s = static_cast<int64_t>(rank_);
    dot.lhs_batch = {0, 2 + s};
    dot.rhs_batch = {s + 1, s + 2};
    for (int64_t i = 0; i <= s; ++i) {
      dot.lhs_contracting.push_back(3 + s + i);
      dot.rhs_contracting.push_back(i);
    }
    Dims dims = {BatchGroups(), FeatureGroups(), Batch()};
    for (size_t d = 0; d < rank_; ++d) dims.push_back(OutSpace(d));
    dims.push_back(OutFeatures());
    Instr* product = Make(Op::kDot, conv_.shape().type(), dims, {seen, Kernel()}, std::move(dot));
    product->set_name(conv_.name());
    Finish(Transposed(product, OutputOrder()));
  }

  // One output feature a group (depthwise ones, and their kernels' gradients): the product would be
  // one of a matrix and a vector, for which the matrix had to be stored. Summed up where it is
  // seen.
  bool IsDirect() const {
    constexpr double kLeastWork = 4096;  // smaller dots have the interpreter's very bits
    return OutFeatures() == 1 && Products() >= kLeastWork && !IsComplex(conv_.shape().type());
  }

 private:
  // Products with the dimensions of the output and [window..., feature], which are summed up. Many
  // features are neighbours, and their sums rows'; else neighbouring results are taken together.
  void RunDirect() {
    constexpr int64_t kManyFeatures = 16;
    auto s = static_cast<int64_t>(rank_);
    // Where those of the dot's result, then those summed up, stand in what is seen and in the
    // kernel.
    Dims in_seen = {0, 2 + s, 1}, in_kernel = {1 + s, 2 + s, -1};
    for (int64_t d = 0; d < s; ++d) in_seen.push_back(2 + d);
    in_kernel.resize(static_cast<size_t>(4 + s), -1);
    in_seen.push_back(-1);  // the one output feature
    Dims axes = OutputOrder(), sums;
    std::erase(axes, 3 + s);
    for (int64_t i = 0; i <= s; ++i) {
      in_seen.push_back(3 + s + i);
      in_kernel.push_back(i);
      sums.push_back(4 + s + i);
    }
    axes.insert(InFeatures() < kManyFeatures ? axes.begin() : axes.end(), sums.begin(), sums.end());

    Instr *seen = Gathered(Padded(Arranged())), *kernel = Kernel();
    ElementType type = WideType(conv_.shape().type());
    Dims order, kept, folded, kernel_dims(static_cast<size_t>(s + 3));
    for (int64_t i = 0; i < static_cast<int64_t>(axes.size()); ++i) {
      auto axis = static_cast<size_t>(axes[static_cast<size_t>(i)]);
      order.push_back(in_seen[axis]);
      if (in_kernel[axis] >= 0) kernel_dims[static_cast<size_t>(in_kernel[axis])] = i;
      if (static_cast<int64_t>(axis) > 3 + s) {
        folded.push_back(i);
      } else {
        kept.push_back(At(seen->shape(), in_seen[axis]));
      }
    }
    Dims without = kernel->shape().dims();
    without.pop_back();
    Instr* lhs = Converted(Transposed(seen, order), type);
    const Dims dims = lhs->shape().dims();
    Instr* rhs = Make(Op::kBroadcast, type, dims, {Converted(Reshaped(kernel, without), type)},
                      DimensionsAttrs{kernel_dims});
    Instr* products = Make(Op::kMultiply, type, dims, {lhs, rhs});
    Instr* zero = Make(Op::kConstant, type, {}, {}, ConstantAttrs{Literal::Scalar(type, 0)});
    Instr* sum = Make(Op::kReduce, type, kept, {products, zero}, DimensionsAttrs{folded});
    sum->set_called({AdditionFor(conv_, type)});
    sum->set_name(conv_.name());
    Finish(Converted(sum, conv_.shape().type()));
  }

  Instr* Converted(Instr* x, ElementType type) {
    if (x->shape().type() == type) return x;
    return Make(Op::kConvert, type, x->shape().dims(), {x});
  }

  static bool IsFitArray(const Shape& shape) {
    return IsPlainArray(shape) && shape.ElementCount() > 0;
  }
  static int64_t At(const Shape& shape, int64_t d) { return shape.dim(static_cast<size_t>(d)); }
  const Shape& input() const { return conv_.operand(0)->shape(); }
  const Shape& kernel() const { return conv_.operand(1)->shape(); }
  int64_t BatchGroups() const { return attrs_.batch_group_count; }
  int64_t FeatureGroups() const { return attrs_.feature_group_count; }
  int64_t Batch() const { return At(input(), attrs_.dims.input_batch) / BatchGroups(); }
  int64_t InFeatures() const { return At(kernel(), attrs_.dims.kernel_input); }
  int64_t OutFeatures() const {
    return At(kernel(), attrs_.dims.kernel_output) / (BatchGroups() * FeatureGroups());
  }
  int64_t InSpace(size_t d) const { return At(input(), attrs_.dims.input_spatial[d]); }
  int64_t OutSpace(size_t d) const { return At(conv_.shape(), attrs_.dims.output_spatial[d]); }
  int64_t Taps() const {
    int64_t taps = 1;
    for (const WindowDim& window : attrs_.window) taps *= window.size;
    return taps;
  }

  double Products() const {
    return static_cast<double>(conv_.shape().ElementCount()) * static_cast<double>(Taps()) *
           static_cast<double>(InFeatures());
  }

  Instr* Make(Op op, ElementType type, Dims dims, std::vector<Instr*> operands, Attrs attrs = {}) {
    return make_.Make(op, Shape::Array(type, std::move(dims)), std::move(operands),
                      std::move(attrs));
  }
  Instr* Transposed(Instr* x, const Dims& order) {
    Dims dims, moved;
    for (int64_t d : order) {
      dims.push_back(At(x->shape(), d));
      if (dims.back() > 1) moved.push_back(d);
    }
    if (std::is_sorted(moved.begin(), moved.end())) return Reshaped(x, dims);
    return Make(Op::kTranspose, x->shape().type(), dims, {x}, DimensionsAttrs{order});
  }
  Instr* Reshaped(Instr* x, Dims dims) {
    return Make(Op::kReshape, x->shape().type(), std::move(dims), {x});
  }

  Instr* Arranged() {
    Dims order = {attrs_.dims.input_batch};
    Dims dims = {BatchGroups(), Batch()};
    for (size_t d = 0; d < rank_; ++d) {
      order.push_back(attrs_.dims.input_spatial[d]);
      dims.push_back(InSpace(d));
    }
    order.push_back(attrs_.dims.input_feature);
    dims.push_back(FeatureGroups());
    dims.push_back(InFeatures());
    return Reshaped(Transposed(conv_.operand(0), order), dims);
  }

  Instr* Padded(Instr* x) {
    PadAttrs pad{Dims(rank_ + 4), Dims(rank_ + 4), Dims(rank_ + 4)};
    Dims dims = x->shape().dims();
    bool any = false;
    for (size_t d = 0; d < rank_; ++d) {
      const WindowDim& window = attrs_.window[d];
      pad.low[2 + d] = window.pad_low;
      pad.high[2 + d] = window.pad_high;
      pad.interior[2 + d] = window.base_dilation - 1;
      dims[2 + d] = (dims[2 + d] - 1) * window.base_dilation + 1 + window.pad_low + window.pad_high;
      any = any || window.pad_low != 0 || window.pad_high != 0 || window.base_dilation != 1;
    }
    if (!any) return x;
    ElementType type = x->shape().type();
    Instr* zero = Make(Op::kConstant, type, {}, {}, ConstantAttrs{Literal::Scalar(type, 0)});
    return Make(Op::kPad, type, dims, {x, zero}, std::move(pad));
  }

  // [batch group, batch, output space..., feature group, window..., feature]
  Instr* Gathered(Instr* x) {
    GatherAttrs gather;
    auto s = static_cast<int64_t>(rank_);
    gather.offset_dims = {0, 1, 2 + s, 3 + 2 * s};
    gather.slice_sizes = x->shape().dims();
    Dims dims = {BatchGroups(), Batch()}, places, taps;
    for (size_t d = 0; d < rank_; ++d) {
      gather.collapsed_slice_dims.push_back(2 + static_cast<int64_t>(d));
      gather.start_index_map.push_back(2 + static_cast<int64_t>(d));
      gather.slice_sizes[2 + d] = 1;
      places.push_back(OutSpace(d));
      taps.push_back(attrs_.window[d].size);
    }
    dims.insert(dims.end(), places.begin(), places.end());
    dims.push_back(FeatureGroups());
    dims.insert(dims.end(), taps.begin(), taps.end());
    dims.push_back(InFeatures());
    // One tap that steps over nothing sees the input as it is.
    if (Taps() == 1 && dims.size() == 4 + 2 * rank_ && SeesAll(x)) return Reshaped(x, dims);
    gather.index_vector_dim = 2 * s;
    places.insert(places.end(), taps.begin(), taps.end());
    Instr* starts = Starts(places);
    return Make(Op::kGather, x->shape().type(), dims, {x, starts}, std::move(gather));
  }

  bool SeesAll(const Instr* x) const {
    for (size_t d = 0; d < rank_; ++d)
      if (x->shape().dim(2 + d) != OutSpace(d)) return false;
    return true;
  }

  // Where in the padded input each place of the output sees through each tap.
  Instr* Starts(const Dims& places) {
    std::vector<Instr*> parts;
    Dims dims = places;
    dims.push_back(1);
    for (size_t d = 0; d < rank_; ++d) {
      auto scaled = [&](size_t dimension, int64_t factor) {
        Instr* iota = Make(Op::kIota, ElementType::kS32, dims, {},
                           IotaAttrs{static_cast<int64_t>(dimension)});
        Instr* number = Make(Op::kConstant, ElementType::kS32, {}, {},
                             ConstantAttrs{Literal::ScalarInt(ElementType::kS32, factor)});
        Instr* all = Make(Op::kBroadcast, ElementType::kS32, dims, {number}, DimensionsAttrs{{}});
        return Make(Op::kMultiply, ElementType::kS32, dims, {iota, all});
      };
      parts.push_back(Make(Op::kAdd, ElementType::kS32, dims,
                           {scaled(d, attrs_.window[d].stride),
                            scaled(rank_ + d, attrs_.window[d].window_dilation)}));
    }
    if (parts.size() == 1) return parts[0];
    dims.back() = static_cast<int64_t>(rank_);
    return Make(Op::kConcatenate, ElementType::kS32, dims, parts,
                DimensionAttrs{static_cast<int64_t>(places.size())});
  }

  Instr* Kernel() {
    Instr* kernel = conv_.operand(1);
    Dims reversed, order, dims;
    for (size_t d = 0; d < rank_; ++d) {
      if (attrs_.window[d].reversed) reversed.push_back(attrs_.dims.kernel_spatial[d]);
      order.push_back(attrs_.dims.kernel_spatial[d]);
      dims.push_back(attrs_.window[d].size);
    }
    if (!reversed.empty())
      kernel = Make(Op::kReverse, kernel->shape().type(), kernel->shape().dims(), {kernel},
                    DimensionsAttrs{reversed});
    order.push_back(attrs_.dims.kernel_input);
    order.push_back(attrs_.dims.kernel_output);
    for (int64_t size : {InFeatures(), BatchGroups(), FeatureGroups(), OutFeatures()})
      dims.push_back(size);
    return Reshaped(Transposed(kernel, order), dims);
  }

  // How [batch group, feature group, batch, space..., output feature] stand in the result.
  Dims OutputOrder() const {
    Dims order;
    for (int64_t d = 0; d < conv_.shape().rank(); ++d) {
      if (d == attrs_.dims.output_batch) {
        order.push_back(2);
      } else if (d == attrs_.dims.output_feature) {
        order.insert(order.end(), {0, 1, static_cast<int64_t>(3 + rank_)});
      } else {
        auto at =
            std::find(attrs_.dims.output_spatial.begin(), attrs_.dims.output_spatial.end(), d);
        order.push_back(3 + (at - attrs_.dims.output_spatial.begin()));
      }
    }
    return order;
  }

  void Finish(Instr* elements) { make_.Replace(Reshaped(elements, conv_.shape().dims())); }

  Instr& conv_;
  Editor make_;
  const ConvolutionAttrs attrs_;
  size_t rank_;
};

}  // namespace

// Convolutions become products of matrices: what each place of the window sees is gathered into the
// columns of one matrix, the kernel is the other; or, with one output feature a group, sums of
// products. Those whose matrix would be stored and too large, those of no
// elements, and those that the machine's library computes, stay.
Result<Changed> ExpandConvolutions(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() != Op::kConvolution || IsLeftToLibrary(*instr, context.target)) continue;
      ConvolutionExpander expander(*instr);
      if (!expander.IsFit()) continue;
      context.Taken(expander.IsDirect() ? "convolution.as-sum" : "convolution.as-dot", *instr);
      expander.Run();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
