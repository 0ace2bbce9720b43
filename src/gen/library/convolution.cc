#include "gen/library/convolution.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "cost/rates.h"
#include "cost/units.h"
#include "gen/gpu/window_tiling.h"
#include "gen/library/dot.h"
#include "gen/region.h"

namespace tokamak {
namespace {

using ConvForm = LibraryConvolution::Form;
using ConvSpace = LibraryConvolution::SpatialDim;

// Multiplications. Chosen: smaller convolutions take less time than the call with its reordered
// operands, and a generated kernel fuses them with their neighbours.
constexpr double kConvolutionLeastWork = 1 << 22;

int64_t At(const Shape& shape, int64_t d) {
  return shape.dim(static_cast<size_t>(d));
}

// Padding after the last element of x such that there are y results; the same as before the first
// element if possible.
std::optional<int64_t> PadHigh(const ConvSpace& dim) {
  int64_t least = (dim.y - 1) * dim.stride + (dim.w - 1) * dim.dilation + 1 - dim.x - dim.pad_low;
  int64_t most = least + dim.stride - 1;
  if (dim.pad_low >= least && dim.pad_low <= most) return dim.pad_low;
  if (most < 0) return std::nullopt;
  return std::max<int64_t>(least, 0);
}

int64_t CountOf(const std::vector<ConvSpace>& space, int64_t ConvSpace::*of) {
  int64_t count = 1;
  for (const ConvSpace& dim : space) count *= dim.*of;
  return count;
}

double Multiplications(const LibraryConvolution& c) {
  return static_cast<double>(c.batch) * static_cast<double>(CountOf(c.space, &ConvSpace::y)) *
         static_cast<double>(c.outputs) * static_cast<double>(c.inputs / c.groups) *
         static_cast<double>(CountOf(c.space, &ConvSpace::w));
}

// Analyzes a convolution with any dimension numbers.
class ConvolutionReader {
 public:
  explicit ConvolutionReader(const Instr& conv)
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
    bool fits = HasBaseDilation() ? ReadBackwardData()
                : IsFilter()      ? ReadBackwardFilter()
                                  : ReadForward();
    if (!fits) return std::nullopt;
    for (ConvSpace& dim : read_.space) {
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
    // Spatial dimensions, by definition of cuDNN's convolutions.
    constexpr size_t kMaxSpatialDims = 3;
    const size_t rank = attrs_.window.size();
    return rank >= 1 && rank <= kMaxSpatialDims && output_.rank() == static_cast<int64_t>(rank) + 2;
  }
  bool HasBaseDilation() const {
    return std::ranges::any_of(attrs_.window,
                               [](const WindowDim& dim) { return dim.base_dilation > 1; });
  }
  // Whether the result is a filter gradient as autodiff writes it: batch groups, or more taps than
  // results with the feature dimension of the input before its batch dimension.
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
    read_.form = ConvForm::kForward;
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
    read_.form = ConvForm::kBackwardData;
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
    read_.form = ConvForm::kBackwardFilter;
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

// More taps than results, except for filter gradients. A 7x7 window with 1x1 results took 276 us
// against 65 us as a matrix product, and a 56x56 filter gave wrong results (cuDNN 9.19, H200).
bool HasManyTaps(const LibraryConvolution& c) {
  return c.form != ConvForm::kBackwardFilter &&
         CountOf(c.space, &ConvSpace::w) >
             CountOf(c.space, c.form == ConvForm::kForward ? &ConvSpace::y : &ConvSpace::x);
}

// Whether matrix products or dot products are as good (expand_convolutions.h): a single tap that
// covers every element, one output per group, or few inputs per group, which cuDNN processes one
// after another (64 groups of 1 input and 4 outputs, 32 x 56x56: 1.35 ms against 0.59).
bool OtherLoweringIsFaster(const LibraryConvolution& c) {
  // Inputs per group. Chosen: with fewer, a matrix product of the group does not fill a vector.
  constexpr int64_t kFewGroupInputs = 4;
  bool plain = c.form == ConvForm::kForward && c.groups == 1;
  for (const ConvSpace& dim : c.space)
    plain = plain && dim.w == 1 && dim.stride == 1 && dim.pad_low == 0 && dim.pad_high == 0;
  bool narrow = c.groups > 1 && c.inputs / c.groups < kFewGroupInputs;
  return plain || narrow || HasManyTaps(c) || c.outputs == c.groups ||
         Multiplications(c) < kConvolutionLeastWork;
}

// Whether the operand is in memory as it is, or computed in that order.
bool IsInOrder(const Instr& operand) {
  const Instr* instr = &operand;
  while (instr->op() == Op::kReshape) instr = instr->operand(0);
  if (instr->op() != Op::kTranspose) return true;
  const Dims& order = instr->attrs<DimensionsAttrs>().dimensions;
  return order.back() + 1 == static_cast<int64_t>(order.size());
}

// Whether the features are the last dimensions, which the bulk copy engine reads 128 bytes of.
// Other layouts need transposed copies, as for the library.
bool IsTensorLayout(const Instr& conv, ConvForm form) {
  const ConvDims& dims = conv.attrs<ConvolutionAttrs>().dims;
  int64_t last = conv.shape().rank() - 1;
  bool is_filter = form == ConvForm::kBackwardFilter;
  return (is_filter ? dims.input_batch : dims.input_feature) == last &&
         (dims.kernel_output == last || (!is_filter && dims.kernel_input == last)) &&
         dims.output_feature == last && IsInOrder(*conv.operand(0)) && IsInOrder(*conv.operand(1));
}

// A convolution as a dot in tiles of 128 x 128 results and panels of 64 elements of K, as the
// contract generator would compute it.
class TensorConvolutionChoice {
 public:
  TensorConvolutionChoice(const LibraryConvolution& c, const Machine& machine)
      : c_(c), machine_(machine) {}

  TensorConvolution Choose() const {
    bool is_filter = c_.form == ConvForm::kBackwardFilter;
    if ((c_.type != ElementType::kBF16 && c_.type != ElementType::kF16) || c_.groups != 1 ||
        c_.form == ConvForm::kBackwardData || c_.inputs % kConvUnit != 0 ||
        c_.outputs % kConvUnit != 0 || c_.space.size() > kMaxTensorSpace)
      return {};
    for (const ConvSpace& dim : c_.space)
      if ((is_filter ? dim.stride : std::max(dim.stride, dim.dilation)) > TileCopy::kMaxStep)
        return {};
    int64_t depth = is_filter ? c_.batch * CountOf(c_.space, &ConvSpace::y)
                              : CountOf(c_.space, &ConvSpace::w) * RoundUp(c_.inputs, kConvLine);
    double all = RowElements(is_filter ? kConvLine : kConvTile) *
                 static_cast<double>(RoundUp(c_.outputs, kConvColumnUnit) * depth);
    if (Multiplications(c_) < kConvMinUse * all) return {};
    if (is_filter) return BestSlices(depth);
    double tiles = RowElements(kConvSmallTile) / static_cast<double>(kConvSmallTile) *
                   static_cast<double>(CeilDiv(c_.outputs, kConvSmallTile));
    bool is_split =
        depth >= kConvDeep && tiles < kConvTilesPerSm * static_cast<double>(machine_.cores);
    return {is_split ? 0 : 1, false};
  }

 private:
  // Elements of 16 bytes (hardware: TileCopy::kAlignment), of a panel's line of 128 bytes, and the
  // unit of columns (hardware: MatrixMultiply).
  static constexpr int64_t kConvUnit = 8, kConvLine = 64, kConvColumnUnit = 32;
  // Rows and columns of tiles. Chosen: some of the generator's (tensor_tiling.cc).
  static constexpr int64_t kConvSmallTile = 64, kConvTile = 128, kConvWideTile = 256;
  // Dimensions of the window that fit a tensor of the bulk copy engine, beside batch and features.
  static constexpr size_t kMaxTensorSpace = TileCopy::kMaxRank - 2;
  // Fraction of the multiplications of the tiles that are not padding, at least. Chosen: with less,
  // the library's tiles are the better ones.
  static constexpr double kConvMinUse = 0.6;
  // With a K of at least this size and fewer small tiles per SM, K should be split, which the
  // library does. Chosen: as for dots (PrefersTensorContract, dot.cc).
  static constexpr int64_t kConvDeep = 1024;
  static constexpr double kConvTilesPerSm = 0.5;
  // K of a slice at least, and slices at most. Chosen: beyond, storing the sums takes as long as
  // the multiplies.
  static constexpr int64_t kConvMinSliceDepth = 512, kConvMaxSlices = 64;
  // Nanoseconds of an SM per byte of panels along rows and columns. Measured on H200: 1.9 to 2.2 ns
  // per line of 128 bytes, for gradients of 3 x 3 filters of 64 and 128 features.
  static constexpr double kPixelByteNs = 2.0 / 128;

  // Rows of all tiles, of this many each.
  double RowElements(int64_t rows) const {
    using Along = gpu::WindowDimension::Along;
    bool is_filter = c_.form == ConvForm::kBackwardFilter;
    gpu::WindowTiling window;
    gpu::WindowDimension features{.size = c_.inputs, .terms = {}};
    if (is_filter) {
      features.terms = {{Along::kRow, 0}};
      window.rows.push_back({c_.inputs});
      for (const ConvSpace& dim : c_.space) window.rows.push_back({dim.w});
    } else {
      features.terms = {{Along::kDepth, 0}};
      for (const ConvSpace& dim : c_.space) window.rows.push_back({dim.y});
      window.rows.push_back({c_.batch});
    }
    window.is_k_major[0] = !is_filter;
    window.tensors[0] = {features};
    for (size_t i = 0; i < window.rows.size(); ++i) {
      window.row_order.push_back(i);
      if (is_filter) continue;
      int64_t step = i < c_.space.size() ? c_.space[i].stride : 1;
      window.tensors[0].push_back({.size = window.rows[i].size, .terms = {{Along::kRow, i, step}}});
    }
    if (!gpu::SetRowBoxes(window, rows, kConvLine)) return std::numeric_limits<double>::infinity();
    return static_cast<double>(window.RowTiles() * rows);
  }

  // The fastest slices of the batch or of the first dimension of images; none if pixels do not fill
  // panels exactly.
  TensorConvolution BestSlices(int64_t depth) const {
    TensorConvolution best;
    double best_ns = std::numeric_limits<double>::infinity();
    // The slices are another dimension of the tensors.
    int64_t most = c_.space.size() == kMaxTensorSpace ? 1 : kConvMaxSlices;
    for (bool cuts_space : {false, true}) {
      int64_t size = cuts_space ? c_.space[0].y : c_.batch;
      for (int64_t slices = 1; slices <= std::min(size, most); ++slices) {
        if (size % slices != 0 || !FillsPanels(cuts_space, slices)) continue;
        if (slices > 1 && depth / slices < kConvMinSliceDepth) break;
        double ns = SlicesNs(depth, slices);
        if (ns >= best_ns) continue;
        best_ns = ns;
        best = {slices, cuts_space};
      }
    }
    return best;
  }

  // Nanoseconds of the multiplies with the best tiles, and of the sums of slices.
  double SlicesNs(int64_t depth, int64_t slices) const {
    const Rates& rates = RatesOf(machine_);
    double least = std::numeric_limits<double>::infinity();
    for (int64_t rows : {kConvSmallTile, kConvTile})
      for (int64_t columns : {kConvSmallTile, kConvTile, kConvWideTile}) {
        auto tiles =
            static_cast<int64_t>(RowElements(rows)) / rows * CeilDiv(c_.outputs, columns) * slices;
        double ns = std::max(
            static_cast<double>(rows * columns) * rates.ns[static_cast<size_t>(Pipe::kTensor)],
            static_cast<double>((rows + columns) * BytesOf(c_.type)) * kPixelByteNs);
        least = std::min(least, ns * static_cast<double>(CeilDiv(tiles, machine_.cores) * depth) /
                                    static_cast<double>(slices));
      }
    if (slices == 1) return least;
    double bytes = 2 * static_cast<double>(slices * CountOf(c_.space, &ConvSpace::w) * c_.inputs *
                                           c_.outputs * static_cast<int64_t>(sizeof(float)));
    return least + bytes / BandwidthAt(rates.all, bytes).copy + rates.graph_gap_us * kNsPerUs;
  }

  // Whether powers of two that divide the sizes of a slice make a panel.
  bool FillsPanels(bool cuts_space, int64_t slices) const {
    int64_t images = cuts_space ? c_.batch : c_.batch / slices;
    int64_t box = images & -images;
    for (size_t d = 0; d < c_.space.size(); ++d) {
      int64_t size = cuts_space && d == 0 ? c_.space[d].y / slices : c_.space[d].y;
      box *= size & -size;
    }
    return box >= kConvLine;
  }

  const LibraryConvolution& c_;
  const Machine& machine_;
};

}  // namespace

ConvDims LibraryDims(ConvForm form, size_t rank) {
  const auto last = static_cast<int64_t>(rank) + 1;
  ConvDims dims;
  for (Dims* space : {&dims.input_spatial, &dims.kernel_spatial, &dims.output_spatial})
    for (int64_t d = 1; d < last; ++d) space->push_back(d);
  dims.input_batch = form == ConvForm::kBackwardFilter ? last : 0;
  dims.input_feature = last - dims.input_batch;
  dims.kernel_output = form == ConvForm::kForward ? 0 : last;
  dims.kernel_input = last - dims.kernel_output;
  dims.output_batch = dims.input_batch;
  dims.output_feature = dims.input_feature;
  return dims;
}

bool IsReversed(ConvForm form) {
  return form == ConvForm::kBackwardData;
}

std::optional<LibraryConvolution> MatchConvolution(const Instr& conv) {
  return ConvolutionReader(conv).Read();
}

TensorConvolution TensorConvolutionOf(const Instr& conv, const Machine& machine) {
  if (!machine.is_gpu() || !machine.async_multiply || conv.op() != Op::kConvolution) return {};
  std::optional<LibraryConvolution> read = ConvolutionReader(conv).Read();
  if (!read || !IsTensorLayout(conv, read->form) || HasManyTaps(*read) ||
      Multiplications(*read) < kConvolutionLeastWork ||
      PrefersKernelInLoop(conv, Multiplications(*read)))
    return {};
  return TensorConvolutionChoice(*read, machine).Choose();
}

bool PrefersConvolutionLibrary(const LibraryConvolution& convolution, const Instr& conv) {
  return !OtherLoweringIsFaster(convolution) &&
         !PrefersKernelInLoop(conv, Multiplications(convolution));
}

std::optional<LibraryConvolution> MatchLaidOutConvolution(const Instr& conv) {
  if (conv.op() != Op::kConvolution) return std::nullopt;
  std::optional<LibraryConvolution> read = ConvolutionReader(conv).Read();
  if (!read) return std::nullopt;
  const ConvolutionAttrs& attrs = conv.attrs<ConvolutionAttrs>();
  if (attrs.dims != LibraryDims(read->form, attrs.window.size())) return std::nullopt;
  for (const WindowDim& dim : attrs.window)
    if (dim.reversed != IsReversed(read->form)) return std::nullopt;
  return read;
}

bool UsesConvolutionLibrary(const Instr& instr, const Machine& machine) {
  return machine.is_gpu() && machine.uses_library && MatchLaidOutConvolution(instr).has_value();
}

}  // namespace tokamak
