// Convolutions as dots (im2col), for all convolutions that no library computes. A gather collects
// the input elements that each output position reads through each tap of the window; the dot
// contracts taps and input features with the kernel:
//
//   x [B, H, W, C]   ->  pad  ->  gather [B, OH, OW, KH, KW, C]
//   k [KH, KW, C, O] ->  dot over KH, KW, C  ->  [B, OH, OW, O]
//
// The kernel of a dot with at most 1024 columns gathers elements as it reads them, so the im2col
// matrix, KH * KW times as large as the input, is not materialized. Strides and window dilation are
// in the indices, base dilation and padding in the pad. Depthwise convolutions have one output
// feature per group and become a multiply and a reduction.
//
// The GPU's bulk copy engine reads the windows of convolutions of 16-bit numbers as they are
// (gen/gpu/affine_view.h): neither the gather nor the pad is computed. In the gradient of a filter,
// K is all pixels of the batch and there are few results. Slices of the batch then become a batch
// dimension of the dot, whose results are added, so that all SMs multiply:
//
//   dot over OH, OW, B/S  ->  [S, KH, KW, C, O]  ->  sum over S

#include <algorithm>
#include <utility>
#include <vector>

#include "gen/element.h"
#include "gen/library/dot.h"
#include "gen/library/tensor_convolution.h"
#include "gen/region.h"
#include "passes/passes.h"
#include "passes/target/left_to_library.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Dimensions of the operands and the result of the dot besides the spatial ones: both group
// dimensions and the batch; these and the feature. Structure of the arrays below.
constexpr int kGroupDims = 3, kNonSpatialDims = 4;

// Maximum bytes of the im2col matrix if it may be materialized. Chosen: a GiB is in proportion to
// the memory of machines. It is for types that no `contract` kernel supports and for dots with more
// than kFewColumns columns. Chosen: those would gather it once for each tile of columns.
constexpr int64_t kConvolutionMostBytes = int64_t{1} << 30, kFewColumns = 1024;

// One convolution. Dimension orders: the input is [batch group, batch, space..., feature group,
// feature], the kernel [space..., feature, batch group, feature group, output feature]; at least
// one of the group counts is 1.
class ConvolutionExpander {
 public:
  ConvolutionExpander(Instr& conv, const TensorConvolution& tensor)
      : conv_(conv),
        make_(conv, Editor::Naming::kUnnamed),
        input_(conv.operand(0)),
        kernel_(conv.operand(1)),
        attrs_(conv.attrs<ConvolutionAttrs>()),
        rank_(attrs_.window.size()),
        tensor_(tensor) {
    // Then the results of the dot are in the order of the convolution's.
    for (int64_t d : attrs_.dims.output_spatial)
      batch_last_ = batch_last_ || (tensor.slices > 0 && d < attrs_.dims.output_batch);
  }

  // A dot with many columns, or of complex numbers, materializes the matrix: it must be small
  // enough.
  bool IsFit() const {
    for (const Instr* operand : conv_.operands())
      if (!IsFitArray(operand->shape())) return false;
    if (!IsFitArray(conv_.shape()) || attrs_.dims.input_spatial.size() != rank_) return false;
    if (IsDirect() || tensor_.slices > 0 ||
        (OutFeatures() <= kFewColumns && !IsComplex(conv_.shape().type())))
      return true;
    double elements = Products() / static_cast<double>(OutFeatures());
    return elements * static_cast<double>(BytesOf(conv_.operand(0)->shape().type())) <=
           static_cast<double>(kConvolutionMostBytes);
  }

  void Run() {
    if (tensor_.slices > 0) return RunTensor();
    if (IsDirect()) return RunDirect();
    Instr* seen = Gathered(Padded(Arranged()));
    DotAttrs dot;
    dot.precision = attrs_.precision;
    auto s = static_cast<int64_t>(rank_);
    dot.lhs_batch = {0, 2 + s};
    dot.rhs_batch = {s + 1, s + 2};
    for (int64_t i = 0; i <= s; ++i) {
      dot.lhs_contracting.push_back(kGroupDims + s + i);
      dot.rhs_contracting.push_back(i);
    }
    Dims dims = {BatchGroups(), FeatureGroups(), Batch()};
    for (size_t d = 0; d < rank_; ++d) dims.push_back(OutSpace(d));
    dims.push_back(OutFeatures());
    Instr* product = Make(Op::kDot, conv_.shape().type(), dims, {seen, Kernel()}, std::move(dot));
    product->set_name(conv_.name());
    Finish(Transposed(product, OutputOrder()));
  }

  // Whether each group has one output feature (depthwise convolutions and their kernel gradients).
  // The dot would be a matrix-vector product that materializes the matrix; instead the products are
  // reduced directly.
  bool IsDirect() const {
    // Multiplications. Chosen: smaller dots match the interpreter bit for bit.
    constexpr double kLeastDirectWork = 4096;
    return OutFeatures() == 1 && Products() >= kLeastDirectWork && !IsComplex(conv_.shape().type());
  }

 private:
  // Without the dimensions of groups, so that the results have the dimensions of the convolution's.
  void RunTensor() {
    auto s = static_cast<int64_t>(rank_);
    PutFeaturesLast();
    Instr* seen = WithoutDims(Gathered(Padded(Arranged())), {2 + s, 0});
    Instr* kernel = WithoutDims(Kernel(), {2 + s, 1 + s});
    if (tensor_.copies_filter) kernel = WithInputsLast(kernel);
    DotAttrs dot;
    dot.precision = attrs_.precision;
    for (int64_t i = 0; i <= s; ++i) {
      dot.lhs_contracting.push_back(1 + s + i);
      dot.rhs_contracting.push_back(i + (tensor_.copies_filter ? 1 : 0));
    }
    Dims dims(seen->shape().dims().begin(), seen->shape().dims().begin() + 1 + s);
    dims.push_back(OutFeatures());
    Instr* product = tensor_.slices > 1 ? SumOfSlices(seen, kernel, dims, std::move(dot))
                                        : Make(Op::kDot, conv_.shape().type(), dims, {seen, kernel},
                                               std::move(dot));
    product->set_name(conv_.name());
    Dims order;
    for (int64_t d : OutputOrder())
      if (d >= 2) order.push_back(d - 2);
    Finish(Transposed(product, order));
  }

  // Images of other layouts are transposed, so that lines of features are adjacent. Both operands
  // of the gradient of a filter are images.
  void PutFeaturesLast() {
    ConvDims& dims = attrs_.dims;
    if (!tensor_.is_filter)
      return PutLast(input_, dims.input_batch, dims.input_spatial, dims.input_feature);
    PutLast(input_, dims.input_feature, dims.input_spatial, dims.input_batch);
    PutLast(kernel_, dims.kernel_input, dims.kernel_spatial, dims.kernel_output);
  }
  void PutLast(Instr*& x, int64_t& images, Dims& space, int64_t& features) {
    auto last = static_cast<int64_t>(rank_) + 1;
    if (features == last) return;
    Dims order = {images};
    order.insert(order.end(), space.begin(), space.end());
    order.push_back(features);
    x = Transposed(x, order);
    images = 0;
    for (size_t d = 0; d < rank_; ++d) space[d] = static_cast<int64_t>(d) + 1;
    features = last;
  }

  // The filter [space..., in, out] as [out, space..., in].
  Instr* WithInputsLast(Instr* kernel) {
    auto s = static_cast<int64_t>(rank_);
    Dims order = {s + 1};
    for (int64_t d = 0; d <= s; ++d) order.push_back(d);
    return Transposed(kernel, order);
  }

  Instr* WithoutDims(Instr* x, const Dims& descending) {
    Dims dims = x->shape().dims();
    for (int64_t d : descending) dims.erase(dims.begin() + d);
    return Reshaped(x, std::move(dims));
  }

  // The dot in slices of the last contracted dimension (the batch of a filter gradient) or of the
  // first one, which are added.
  Instr* SumOfSlices(Instr* seen, Instr* kernel, Dims dims, DotAttrs dot) {
    auto sliced = [&](Instr* x, int64_t d) {
      Dims of_x = x->shape().dims();
      of_x[static_cast<size_t>(d)] /= tensor_.slices;
      of_x.insert(of_x.begin() + d, tensor_.slices);
      return Reshaped(x, of_x);
    };
    size_t cut = tensor_.cuts_space ? 0 : rank_;
    dot.lhs_batch = {dot.lhs_contracting[cut]};
    dot.rhs_batch = {dot.rhs_contracting[cut]};
    // The dimension of slices is in front of it.
    for (size_t i = cut; i <= rank_; ++i) {
      ++dot.lhs_contracting[i];
      ++dot.rhs_contracting[i];
    }
    Dims of_slices = dims;
    of_slices.insert(of_slices.begin(), tensor_.slices);
    std::vector<Instr*> operands = {sliced(seen, dot.lhs_batch[0]),
                                    sliced(kernel, dot.rhs_batch[0])};
    Instr* slices = Make(Op::kDot, ElementType::kF32, of_slices, operands, std::move(dot));
    slices->set_name(conv_.name() + ".slices");
    Instr* zero = Make(Op::kConstant, ElementType::kF32, {}, {},
                       ConstantAttrs{Literal::Scalar(ElementType::kF32, 0)});
    Instr* sum = Make(Op::kReduce, ElementType::kF32, dims, {slices, zero}, DimensionsAttrs{{0}});
    sum->set_called({AdditionFor(conv_, ElementType::kF32)});
    return Converted(sum, conv_.shape().type());
  }

  // Multiplies with the dimensions of the output and [window..., feature], then reduces the latter.
  // With at least kManyFeatures features that are adjacent in memory, the reduction runs along
  // rows; otherwise adjacent results are computed together. In the gradient of a filter, the
  // features are the images, and the results are adjacent.
  void RunDirect() {
    constexpr int64_t kManyFeatures = 16;  // elements of such a row (chosen: a vector of f32)
    auto s = static_cast<int64_t>(rank_);
    // The positions of the result dimensions, then of the reduced dimensions, in the gathered input
    // and in the kernel.
    Dims in_seen = {0, 2 + s, 1}, in_kernel = {1 + s, 2 + s, -1};
    for (int64_t d = 0; d < s; ++d) in_seen.push_back(2 + d);
    in_kernel.resize(static_cast<size_t>(kNonSpatialDims + s), -1);
    in_seen.push_back(-1);  // the single output feature
    Dims axes = OutputOrder(), sums;
    std::erase(axes, kGroupDims + s);
    for (int64_t i = 0; i <= s; ++i) {
      in_seen.push_back(kGroupDims + s + i);
      in_kernel.push_back(i);
      sums.push_back(kNonSpatialDims + s + i);
    }
    bool has_rows = InFeatures() >= kManyFeatures &&
                    attrs_.dims.input_feature == static_cast<int64_t>(rank_) + 1;
    axes.insert(has_rows ? axes.end() : axes.begin(), sums.begin(), sums.end());

    Instr *seen = Gathered(Padded(Arranged())), *kernel = Kernel();
    ElementType type = AccumulatorElementType(conv_.shape().type());
    Dims order, kept, reduced_dims, kernel_dims(static_cast<size_t>(s + kGroupDims));
    for (int64_t i = 0; i < static_cast<int64_t>(axes.size()); ++i) {
      auto axis = static_cast<size_t>(axes[static_cast<size_t>(i)]);
      order.push_back(in_seen[axis]);
      if (in_kernel[axis] >= 0) kernel_dims[static_cast<size_t>(in_kernel[axis])] = i;
      if (static_cast<int64_t>(axis) > kGroupDims + s) {
        reduced_dims.push_back(i);
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
    Instr* sum = Make(Op::kReduce, type, kept, {products, zero}, DimensionsAttrs{reduced_dims});
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
  const Shape& input() const { return input_->shape(); }
  const Shape& kernel() const { return kernel_->shape(); }
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
    if (tensor_.slices > 0 && x->shape().dims() == dims) return x;
    return Make(Op::kReshape, x->shape().type(), std::move(dims), {x});
  }

  // The input as [batch group, batch, space..., feature group, feature].
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
    return Reshaped(Transposed(input_, order), dims);
  }

  Instr* Padded(Instr* x) {
    PadAttrs pad{Dims(rank_ + kNonSpatialDims), Dims(rank_ + kNonSpatialDims),
                 Dims(rank_ + kNonSpatialDims)};
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
    gather.offset_dims = {0, batch_last_ ? 1 + s : 1, 2 + s, kGroupDims + 2 * s};
    gather.slice_sizes = x->shape().dims();
    Dims dims = {BatchGroups()}, positions, taps;
    for (size_t d = 0; d < rank_; ++d) {
      gather.collapsed_slice_dims.push_back(2 + static_cast<int64_t>(d));
      gather.start_index_map.push_back(2 + static_cast<int64_t>(d));
      gather.slice_sizes[2 + d] = 1;
      positions.push_back(OutSpace(d));
      taps.push_back(attrs_.window[d].size);
    }
    if (!batch_last_) dims.push_back(Batch());
    dims.insert(dims.end(), positions.begin(), positions.end());
    if (batch_last_) dims.push_back(Batch());
    dims.push_back(FeatureGroups());
    dims.insert(dims.end(), taps.begin(), taps.end());
    dims.push_back(InFeatures());
    // A single tap without stride or dilation reads the input unchanged, and so does a window that
    // covers all of it.
    if (Taps() == 1 && dims.size() == kNonSpatialDims + 2 * rank_ && SeesAll(x) && !batch_last_)
      return Reshaped(x, dims);
    if (CoversAll(x)) return Reshaped(x, dims);
    gather.index_vector_dim = 2 * s;
    positions.insert(positions.end(), taps.begin(), taps.end());
    Instr* starts = Starts(positions);
    return Make(Op::kGather, x->shape().type(), dims, {x, starts}, std::move(gather));
  }

  bool SeesAll(const Instr* x) const {
    for (size_t d = 0; d < rank_; ++d)
      if (x->shape().dim(2 + d) != OutSpace(d)) return false;
    return true;
  }

  bool CoversAll(const Instr* x) const {
    for (size_t d = 0; d < rank_; ++d)
      if (OutSpace(d) != 1 || x->shape().dim(2 + d) != attrs_.window[d].size ||
          attrs_.window[d].window_dilation != 1)
        return false;
    return FeatureGroups() == 1;
  }

  // The index in the padded input that each output position reads through each tap.
  Instr* Starts(const Dims& positions) {
    std::vector<Instr*> parts;
    Dims dims = positions;
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
                DimensionAttrs{static_cast<int64_t>(positions.size())});
  }

  // The kernel as [space..., feature, batch group, feature group, output feature].
  Instr* Kernel() {
    Instr* kernel = kernel_;
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

  // The positions of [batch group, feature group, batch, space..., output feature] in the result.
  Dims OutputOrder() const {
    Dims order;
    for (int64_t d = 0; d < conv_.shape().rank(); ++d) {
      if (d == attrs_.dims.output_batch) {
        order.push_back(batch_last_ ? 2 + static_cast<int64_t>(rank_) : 2);
      } else if (d == attrs_.dims.output_feature) {
        order.insert(order.end(), {0, 1, static_cast<int64_t>(kGroupDims + rank_)});
      } else {
        auto at =
            std::find(attrs_.dims.output_spatial.begin(), attrs_.dims.output_spatial.end(), d);
        order.push_back((batch_last_ ? 2 : kGroupDims) + (at - attrs_.dims.output_spatial.begin()));
      }
    }
    return order;
  }

  void Finish(Instr* elements) { make_.Replace(Reshaped(elements, conv_.shape().dims())); }

  Instr& conv_;
  Editor make_;
  Instr *input_, *kernel_;  // the operands
  ConvolutionAttrs attrs_;
  size_t rank_;
  const TensorConvolution tensor_;
  bool batch_last_ = false;  // of the dot's rows, behind the dimensions of space
};

// Contracts the dimensions of a dot in their order in memory, if it is the same in both operands:
// kernels step through both at once. Rules keep the order of the sums that they replace.
bool ContractInOrder(Instr& dot) {
  DotAttrs attrs = dot.attrs<DotAttrs>();
  auto [left, right] = ContractingOrders(attrs).front();  // in order in lhs
  if (left == attrs.lhs_contracting || !std::ranges::is_sorted(right) || !attrs.lhs_ragged.empty())
    return false;
  attrs.lhs_contracting = std::move(left);
  attrs.rhs_contracting = std::move(right);
  dot.set_attrs(std::move(attrs));
  return true;
}

}  // namespace

// Expands convolutions into dots (im2col): the inputs of each window position are gathered into the
// columns of one matrix; the kernel is the other. With one output feature per group they become a
// multiply and a reduction. Convolutions stay if the materialized matrix would be too large, if
// they have no elements, or if the machine's library computes them.
//
// Dots contract their dimensions in their order in memory (record contraction.memory-order).
Result<Changed> ExpandConvolutions(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() == Op::kDot && ContractInOrder(*instr)) {
        context.Accepted("contraction.memory-order", *instr);
        changed = true;
      }
      if (instr->op() != Op::kConvolution) continue;
      TensorConvolution tensor = TensorConvolutionOf(*instr, context.machine());
      if (IsLeftToLibrary(*instr, tensor, context.target)) continue;
      if (tensor.has_phases) tensor = {};
      ConvolutionExpander expander(*instr, tensor);
      if (!expander.IsFit()) continue;
      std::string slices = tensor.slices > 1 ? std::to_string(tensor.slices) + " slices" : "";
      if (tensor.slices == 0) {
        context.Accepted(expander.IsDirect() ? "convolution.as-sum" : "convolution.as-dot", *instr);
      } else if (tensor.BeatsLibrary()) {
        context.AcceptedByCost("convolution.tensor-cores", *instr, tensor.library_us, tensor.us,
                               slices);
      } else {  // without a library that computes it
        context.Accepted("convolution.tensor-cores", *instr, nullptr, slices);
      }
      expander.Run();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
