#include "fusion/library_convolutions.h"

#include <algorithm>
#include <numeric>

#include "fusion/contraction.h"
#include "fusion/expand_ops.h"
#include "gen/region.h"

namespace tokamak {
namespace {

using Form = LibraryConvolution::Form;
using Space = LibraryConvolution::Space;

// Fewer multiplications are done sooner by a kernel of ours, in the launch of what is around it.
constexpr double kConvolutionLeastWork = 1 << 22;

int64_t At(const Shape& shape, int64_t d) {
  return shape.dim(static_cast<size_t>(d));
}

// Zeros after the last element of x, so that there are y results: as many as before the first one
// where that will do.
std::optional<int64_t> PadHigh(const Space& dim) {
  int64_t least = (dim.y - 1) * dim.stride + (dim.w - 1) * dim.dilation + 1 - dim.x - dim.pad_low;
  int64_t most = least + dim.stride - 1;
  if (dim.pad_low >= least && dim.pad_low <= most) return dim.pad_low;
  if (most < 0) return std::nullopt;
  return std::max<int64_t>(least, 0);
}

int64_t Count(const std::vector<Space>& space, int64_t Space::*of) {
  int64_t count = 1;
  for (const Space& dim : space) count *= dim.*of;
  return count;
}

double Multiplications(const LibraryConvolution& c) {
  return static_cast<double>(c.batch) * static_cast<double>(Count(c.space, &Space::y)) *
         static_cast<double>(c.outputs) * static_cast<double>(c.inputs / c.groups) *
         static_cast<double>(Count(c.space, &Space::w));
}

// Reads a convolution, wherever its dimensions stand.
class Reader {
 public:
  explicit Reader(const Instr& conv)
      : conv_(conv),
        attrs_(conv.attrs<ConvolutionAttrs>()),
        input_(conv.operand(0)->shape()),
        kernel_(conv.operand(1)->shape()),
        output_(conv.shape()) {}

  std::optional<LibraryConvolution> Read() {
    if (!IsFit()) return std::nullopt;
    read_.type = output_.type();
    read_.tf32 =
        read_.type == ElementType::kF32 &&
        std::ranges::all_of(attrs_.precision, [](Precision p) { return p == Precision::kDefault; });
    read_.space.resize(attrs_.window.size());
    bool fits = HasHoles() ? ReadBackwardData() : IsFilter() ? ReadBackwardFilter() : ReadForward();
    if (!fits) return std::nullopt;
    for (Space& dim : read_.space) {
      std::optional<int64_t> high = dim.pad_low < 0 ? std::nullopt : PadHigh(dim);
      if (!high) return std::nullopt;
      dim.pad_high = *high;
    }
    return read_;
  }

 private:
  bool IsFit() const {
    ElementType type = output_.type();
    if (type != ElementType::kF32 && type != ElementType::kBF16 && type != ElementType::kF16)
      return false;
    for (const Shape* shape : {&input_, &kernel_, &output_})
      if (!IsPlainArray(*shape) || shape->type() != type || shape->ElementCount() == 0)
        return false;
    const size_t rank = attrs_.window.size();
    return rank >= 1 && rank <= 3 && output_.rank() == static_cast<int64_t>(rank) + 2;
  }
  bool HasHoles() const {
    return std::ranges::any_of(attrs_.window,
                               [](const WindowDim& dim) { return dim.base_dilation > 1; });
  }
  // Whether what it gives is a filter, as gradients are written: of what stood first it makes sums,
  // with more taps than results.
  bool IsFilter() const {
    double taps = 1, results = 1;
    for (size_t d = 0; d < attrs_.window.size(); ++d) {
      taps *= static_cast<double>(attrs_.window[d].size);
      results *= static_cast<double>(Out(d));
    }
    return attrs_.batch_group_count > 1 ||
           (taps > results && attrs_.dims.input_feature < attrs_.dims.input_batch);
  }
  int64_t In(size_t d) const { return At(input_, attrs_.dims.input_spatial[d]); }
  int64_t Out(size_t d) const { return At(output_, attrs_.dims.output_spatial[d]); }

  bool ReadForward() {
    if (attrs_.batch_group_count != 1) return false;
    read_.form = Form::kForward;
    read_.batch = At(input_, attrs_.dims.input_batch);
    read_.inputs = At(input_, attrs_.dims.input_feature);
    read_.outputs = At(output_, attrs_.dims.output_feature);
    read_.groups = attrs_.feature_group_count;
    for (size_t d = 0; d < attrs_.window.size(); ++d) {
      const WindowDim& window = attrs_.window[d];
      read_.space[d] = {.x = In(d),
                        .w = window.size,
                        .y = Out(d),
                        .pad_low = window.pad_low,
                        .stride = window.stride,
                        .dilation = window.window_dilation};
    }
    return true;
  }

  bool ReadBackwardData() {
    if (attrs_.batch_group_count != 1 || attrs_.feature_group_count != 1) return false;
    read_.form = Form::kBackwardData;
    read_.batch = At(input_, attrs_.dims.input_batch);
    read_.inputs = At(output_, attrs_.dims.output_feature);
    read_.outputs = At(input_, attrs_.dims.input_feature);
    for (size_t d = 0; d < attrs_.window.size(); ++d) {
      const WindowDim& window = attrs_.window[d];
      if (window.stride != 1) return false;
      read_.space[d] = {.x = Out(d),
                        .w = window.size,
                        .y = In(d),
                        .pad_low = (window.size - 1) * window.window_dilation - window.pad_low,
                        .stride = window.base_dilation,
                        .dilation = window.window_dilation};
    }
    return true;
  }

  bool ReadBackwardFilter() {
    if (attrs_.feature_group_count != 1) return false;
    read_.form = Form::kBackwardFilter;
    read_.batch = At(input_, attrs_.dims.input_feature);
    read_.inputs = At(input_, attrs_.dims.input_batch);
    read_.outputs = At(output_, attrs_.dims.output_feature);
    read_.groups = attrs_.batch_group_count;
    for (size_t d = 0; d < attrs_.window.size(); ++d) {
      const WindowDim& window = attrs_.window[d];
      if (window.reversed && window.size > 1) return false;
      read_.space[d] = {.x = In(d),
                        .w = Out(d),
                        .y = window.size,
                        .pad_low = window.pad_low,
                        .stride = window.window_dilation,
                        .dilation = window.stride};
    }
    return true;
  }

  const Instr& conv_;
  const ConvolutionAttrs& attrs_;
  const Shape &input_, &kernel_, &output_;
  LibraryConvolution read_;
};

// Where the dimensions of a convolution of this form stand that is laid out.
ConvDims LaidOut(Form form, size_t rank) {
  const auto last = static_cast<int64_t>(rank) + 1;
  ConvDims dims;
  for (Dims* space : {&dims.input_spatial, &dims.kernel_spatial, &dims.output_spatial})
    for (int64_t d = 1; d < last; ++d) space->push_back(d);
  dims.input_batch = form == Form::kBackwardFilter ? last : 0;
  dims.input_feature = last - dims.input_batch;
  dims.kernel_output = form == Form::kForward ? 0 : last;
  dims.kernel_input = last - dims.kernel_output;
  dims.output_batch = dims.input_batch;
  dims.output_feature = dims.input_feature;
  return dims;
}

// Which taps a window reads from the last one on, when it is laid out.
bool IsReversed(Form form) {
  return form == Form::kBackwardData;
}

// A window of more taps than there are results, but for a filter's gradient: 7x7 that leave 1x1
// took 276 us against 65 as a product, and a filter of 56x56 had wrong values (cuDNN 9.19, H200).
bool HasManyTaps(const LibraryConvolution& c) {
  return c.form != Form::kBackwardFilter &&
         Count(c.space, &Space::w) >
             Count(c.space, c.form == Form::kForward ? &Space::y : &Space::x);
}

// Whether products of matrices, or sums of products, are as good (expand_convolutions.h): one tap
// that sees every element, one output a group, or a few inputs, of which cuDNN takes one after the
// other (64 groups of 1 input and 4 outputs, 32 x 56x56: 1.35 ms against 0.59).
bool IsForOthers(const LibraryConvolution& c) {
  constexpr int64_t kFewInputs = 4;
  bool plain = c.form == Form::kForward && c.groups == 1;
  for (const Space& dim : c.space)
    plain = plain && dim.w == 1 && dim.stride == 1 && dim.pad_low == 0 && dim.pad_high == 0;
  bool narrow = c.groups > 1 && c.inputs / c.groups < kFewInputs;
  return plain || narrow || HasManyTaps(c) || c.outputs == c.groups ||
         Multiplications(c) < kConvolutionLeastWork;
}

// The filter's gradient of a convolution with holes, which sees the larger image through the
// smaller one: the images change places, and the result is turned around. No holes are left. Null
// when it is none.
Instr* WithSidesSwapped(Instr& conv) {
  ConvolutionAttrs attrs = conv.attrs<ConvolutionAttrs>();
  const Shape &input = conv.operand(0)->shape(), &kernel = conv.operand(1)->shape();
  bool has_holes = false;
  double taps = 1, results = 1;
  for (size_t d = 0; d < attrs.window.size(); ++d) {
    WindowDim& window = attrs.window[d];
    if (window.stride != 1 || window.window_dilation != 1 || window.reversed) return nullptr;
    const int64_t size = At(input, attrs.dims.input_spatial[d]),
                  result = At(conv.shape(), attrs.dims.output_spatial[d]);
    has_holes = has_holes || window.base_dilation > 1;
    taps *= static_cast<double>(window.size);
    results *= static_cast<double>(result);
    WindowDim swapped{.size = size, .pad_low = result - 1 - window.pad_low};
    swapped.window_dilation = window.base_dilation;
    swapped.pad_high = result + (size - 1) * window.base_dilation - window.size - swapped.pad_low;
    window = swapped;
  }
  if (!has_holes || taps <= results || attrs.feature_group_count != 1 ||
      attrs.batch_group_count != 1 || !IsPlainArray(input) || !IsPlainArray(kernel))
    return nullptr;
  ConvDims& dims = attrs.dims;
  std::swap(dims.input_batch, dims.kernel_output);
  std::swap(dims.input_feature, dims.kernel_input);
  std::swap(dims.input_spatial, dims.kernel_spatial);
  std::swap(dims.output_batch, dims.output_feature);
  std::ranges::reverse(attrs.precision);
  Computation& computation = *conv.parent();
  Dims turned = dims.output_spatial;
  std::ranges::sort(turned);
  const Shape shape = conv.shape().WithoutLayout();
  Instr* made = computation.Append(Op::kConvolution, shape, {conv.operand(1), conv.operand(0)},
                                   std::move(attrs), conv.name());
  Instr* result = computation.Append(Op::kReverse, shape, {made}, DimensionsAttrs{turned});
  for (Instr* instr : {made, result}) {
    instr->set_origins(conv.origins());
    instr->set_pos(conv.pos());
  }
  for (Instr* before : conv.extras().control_predecessors) made->AddControlPredecessor(before);
  const bool is_root = computation.root() == &conv;
  computation.ReplaceUses(&conv, result);
  if (is_root) computation.set_root(result);
  computation.Remove(&conv);
  return made;
}

class ConvolutionPreparer {
 public:
  ConvolutionPreparer(Instr& conv, LibraryConvolution read)
      : conv_(conv),
        computation_(*conv.parent()),
        attrs_(conv.attrs<ConvolutionAttrs>()),
        read_(std::move(read)) {}

  // Asks for it as it is, then for one of an array that is padded. Says why not.
  std::string Ask(ConvolutionLibrary& library) {
    std::string why = library.WhyNot(read_);
    bool even = std::ranges::all_of(read_.space,
                                    [](const Space& dim) { return dim.pad_low == dim.pad_high; });
    if (why.empty() || even) return why;
    for (Space& dim : read_.space) {
      int64_t both = std::min(dim.pad_low, dim.pad_high);
      low_.push_back(dim.pad_low - both);
      high_.push_back(dim.pad_high - both);
      dim.x += low_.back() + high_.back();
      dim.pad_low = dim.pad_high = both;
    }
    return library.WhyNot(read_);
  }

  void Run() {
    const ConvDims& from = attrs_.dims;
    const ConvDims to = LaidOut(read_.form, attrs_.window.size());
    Instr* input = Moved(conv_.operand(0), Order(from.input_batch, from.input_feature,
                                                 from.input_spatial, to.input_batch));
    if (read_.form != Form::kBackwardData) input = Padded(input);
    Instr* kernel = Moved(Turned(conv_.operand(1)), Order(from.kernel_output, from.kernel_input,
                                                          from.kernel_spatial, to.kernel_output));
    ConvolutionAttrs attrs = attrs_;
    attrs.dims = to;
    SetWindow(attrs.window);
    const Dims order =
        Order(from.output_batch, from.output_feature, from.output_spatial, to.output_batch);
    Dims dims = Permuted(conv_.shape(), order), space_dims = dims;
    for (size_t d = 0; d < read_.space.size(); ++d)
      if (read_.form == Form::kBackwardData) space_dims[d + 1] = read_.space[d].x;
    Instr* result = Make(Op::kConvolution, space_dims, {input, kernel}, std::move(attrs));
    result->set_name(conv_.name());
    if (space_dims != dims) result = Cut(result, dims);
    Dims back(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    result = Moved(result, back);
    for (Instr* before : conv_.extras().control_predecessors) result->AddControlPredecessor(before);
    Expansion(conv_).Replace(result);
  }

 private:
  Instr* Make(Op op, const Dims& dims, std::vector<Instr*> operands, Attrs attrs = {}) {
    Instr* made = computation_.Append(op, Shape::Array(read_.type, dims), std::move(operands),
                                      std::move(attrs));
    made->set_origins(conv_.origins());
    made->set_pos(conv_.pos());
    return made;
  }

  // The dimension that stands first (`first_at` 0: `first`, else `second`), space, the other.
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

  // The filter, with its taps in the order in which the library has them.
  Instr* Turned(Instr* kernel) {
    Dims turned;
    for (size_t d = 0; d < attrs_.window.size(); ++d)
      if (attrs_.window[d].reversed != IsReversed(read_.form) && attrs_.window[d].size > 1)
        turned.push_back(attrs_.dims.kernel_spatial[d]);
    if (turned.empty()) return kernel;
    std::ranges::sort(turned);
    if (kernel->op() == Op::kReverse) {
      Dims there = kernel->attrs<DimensionsAttrs>().dimensions;
      std::ranges::sort(there);
      if (there == turned) return kernel->operand(0);
    }
    return Make(Op::kReverse, kernel->shape().dims(), {kernel}, DimensionsAttrs{turned});
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

  // Without the gradient of what is padding.
  Instr* Cut(Instr* x, const Dims& dims) {
    Dims begin(dims.size(), 0), end = dims, step(dims.size(), 1);
    for (size_t d = 0; d < low_.size(); ++d) {
      begin[d + 1] = low_[d];
      end[d + 1] += low_[d];
    }
    return Make(Op::kSlice, dims, {x}, SliceAttrs{begin, end, step});
  }

  // The window of what the library computes: with the padding that is not stored.
  void SetWindow(Window& window) const {
    for (size_t d = 0; d < window.size(); ++d) {
      window[d].reversed = IsReversed(read_.form);
      if (low_.empty()) continue;
      const Space& dim = read_.space[d];
      const int64_t reach = (dim.w - 1) * dim.dilation, steps = (dim.y - 1) * dim.stride;
      window[d].pad_low = read_.form == Form::kBackwardData ? reach - dim.pad_low : dim.pad_low;
      window[d].pad_high = read_.form == Form::kForward ? dim.pad_high
                           : read_.form == Form::kBackwardData
                               ? dim.x + reach - steps - 1 - window[d].pad_low
                               : reach + steps + 1 - dim.x - dim.pad_low;
    }
  }

  Instr& conv_;
  Computation& computation_;
  const ConvolutionAttrs attrs_;
  LibraryConvolution read_;
  Dims low_, high_;  // zeros that are stored, of each dimension of space
};

}  // namespace

std::optional<LibraryConvolution> LibraryConvolutionOf(const Instr& conv) {
  if (conv.op() != Op::kConvolution) return std::nullopt;
  std::optional<LibraryConvolution> read = Reader(conv).Read();
  if (!read) return std::nullopt;
  const ConvolutionAttrs& attrs = conv.attrs<ConvolutionAttrs>();
  if (attrs.dims != LaidOut(read->form, attrs.window.size())) return std::nullopt;
  for (const WindowDim& dim : attrs.window)
    if (dim.reversed != IsReversed(read->form)) return std::nullopt;
  return read;
}

bool IsForConvolutionLibrary(const Instr& instr, const Machine& machine) {
  return machine.is_gpu() && machine.matrix_library && LibraryConvolutionOf(instr).has_value();
}

bool PrepareConvolutions(Module& module, ConvolutionLibrary& library, DecisionLog& log) {
  bool any = false;
  for (const auto& computation : module.computations()) {
    bool changed = false;
    for (Instr* instr : computation->Instrs()) {
      if (instr->op() != Op::kConvolution) continue;
      if (Instr* swapped = WithSidesSwapped(*instr)) {
        instr = swapped;
        changed = true;
      }
      std::optional<LibraryConvolution> read = Reader(*instr).Read();
      if (!read || IsForOthers(*read) || IsSmallInLoop(*instr, Multiplications(*read))) continue;
      ConvolutionPreparer preparer(*instr, *read);
      std::string why_not = preparer.Ask(library);
      log.Add({.pass = "fuse",
               .rule = "convolution.library",
               .verdict = why_not.empty() ? Verdict::kTaken : Verdict::kRejected,
               .subject = LabelOf(*instr),
               .origins = instr->origins(),
               .because = why_not});
      if (!why_not.empty()) continue;
      preparer.Run();
      any = changed = true;
    }
    if (changed) computation->PutInOrder();
  }
  return any;
}

}  // namespace tokamak
