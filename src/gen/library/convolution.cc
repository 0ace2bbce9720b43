#include "gen/library/convolution.h"

#include <algorithm>
#include <cmath>

#include "cost/panel_rates.h"
#include "gen/library/dot.h"
#include "gen/region.h"
#include "ir/dot_precision.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

using ConvForm = LibraryConvolution::Form;
using ConvSpace = LibraryConvolution::SpatialDim;

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
    read_.tf32 = read_.type == ElementType::kF32 && AreAllDefault(attrs_.precision);
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
  return plain || narrow || c.HasManyTaps() || c.outputs == c.groups ||
         c.Multiplications() < LibraryConvolution::kLeastWork;
}

}  // namespace

int64_t LibraryConvolution::Count(int64_t SpatialDim::*of) const {
  int64_t count = 1;
  for (const SpatialDim& dim : space) count *= dim.*of;
  return count;
}

double LibraryConvolution::Multiplications() const {
  return static_cast<double>(batch) * static_cast<double>(Count(&SpatialDim::y)) *
         static_cast<double>(outputs) * static_cast<double>(inputs / groups) *
         static_cast<double>(Count(&SpatialDim::w));
}

bool LibraryConvolution::HasManyTaps() const {
  return form != Form::kBackwardFilter &&
         Count(&SpatialDim::w) > Count(form == Form::kForward ? &SpatialDim::y : &SpatialDim::x);
}

// Implicit GEMM with the limits of the contract generator's kernels: tiles of 128 rows and up to
// 256 columns, whose panels come from the L2 cache. Libraries split K of few tiles over all SMs.
Work WorkOf(const LibraryConvolution& c, const Machine& machine) {
  // Rows and columns of tiles, their unit, the unit of channels, and K of a part of the sums at
  // least. Chosen: as for matrix products; channels in multiples of 4 fit the times of a first
  // layer.
  constexpr int64_t kTile = 128, kWideTile = 256, kTileUnit = 32, kChannelUnit = 4;
  constexpr double kMinSplitDepth = 512;
  // Threads of a block. Chosen: as for the library's matrix products; it only says that an SM with
  // a block is occupied.
  constexpr double kLibraryThreads = 256;
  // Times the time of such tiles. Measured on H200 (cuDNN 9.19): 30 us for 3.7 G multiplications in
  // bf16 and in TF32, 63 us for filter gradients in TF32.
  constexpr double kSlower = 1.4, kTf32FilterSlower = 2.8;
  bool is_filter = c.form == ConvForm::kBackwardFilter;
  auto images = static_cast<double>(c.batch), groups = static_cast<double>(c.groups),
       inputs = static_cast<double>(c.inputs), outputs = static_cast<double>(c.outputs);
  double x = images * static_cast<double>(c.Count(&ConvSpace::x)) * inputs,
         w = static_cast<double>(c.Count(&ConvSpace::w)) * inputs / groups * outputs,
         y = images * static_cast<double>(c.Count(&ConvSpace::y)) * outputs;
  double result = c.form == ConvForm::kForward ? y : is_filter ? w : x;
  int64_t of_group = (c.form == ConvForm::kBackwardData ? c.inputs : c.outputs) / c.groups;
  int64_t columns = std::min(RoundUp(of_group, kTileUnit), kWideTile);
  double rows = result / groups / static_cast<double>(of_group),
         depth = c.Multiplications() / result;
  // The channels that are rows or K.
  int64_t channels = (c.form == ConvForm::kBackwardData ? c.outputs : c.inputs) / c.groups;
  double padding =
      static_cast<double>(RoundUp(channels, kChannelUnit)) / static_cast<double>(channels);
  (is_filter ? rows : depth) *= padding;
  Work work;
  auto bytes = static_cast<double>(BytesOf(c.type));
  work.reads = (x + w + y - result) * bytes;
  work.writes = result * bytes;
  work.threads = kLibraryThreads;
  double tiles = groups * std::ceil(rows / kTile) * static_cast<double>(CeilDiv(of_group, columns));
  work.tasks = std::max(tiles, std::min(static_cast<double>(machine.cores),
                                        std::floor(tiles * depth / kMinSplitDepth)));
  if (c.type == ElementType::kF32 && !c.tf32) {
    work[Pipe::kMultiply] = c.Multiplications();
    return work;
  }
  bool is_tf32 = c.type == ElementType::kF32;
  double times = is_tf32 && is_filter ? kTf32FilterSlower : kSlower;
  double of_tiles = tiles * depth * times;
  work[Pipe::kTensor] = of_tiles * static_cast<double>(kTile * columns) *
                        static_cast<double>(is_tf32 ? kTf32Products : 1);
  work.copied_bytes = of_tiles * static_cast<double>(kTile + columns) * bytes;
  return work;
}

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

bool CanSplitBaseDilation(const Window& window) {
  // Convolutions after the split. Chosen: each is a kernel to launch and compile.
  constexpr int64_t kMaxSplits = 16;
  int64_t splits = 1;
  for (const WindowDim& dim : window) {
    if (dim.base_dilation == 1) continue;
    if (dim.stride != 1 || dim.window_dilation != 1 || dim.reversed) return false;
    splits *= dim.base_dilation;
    if (splits > kMaxSplits) return false;
  }
  return splits > 1;
}

std::optional<LibraryConvolution> MatchConvolution(const Instr& conv) {
  return ConvolutionReader(conv).Read();
}

bool PrefersConvolutionLibrary(const LibraryConvolution& convolution, const Instr& conv) {
  return !OtherLoweringIsFaster(convolution) &&
         !PrefersKernelInLoop(conv, convolution.Multiplications());
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
