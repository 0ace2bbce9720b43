// Contractions. The accumulator of a dot starts at 0, so a dot never returns -0: a dot replaced by
// a product of floats needs 0 added.

#include <algorithm>
#include <numeric>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;
using m::y;

const DotAttrs& DotOf(const Instr* dot) {
  return dot->attrs<DotAttrs>();
}
int64_t ProductOf(const Shape& shape, const Dims& dims) {
  int64_t product = 1;
  for (int64_t d : dims) product *= SizeAt(shape, d);
  return product;
}

Dims FreeDims(const Shape& shape, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (!Contains(batch, d) && !Contains(contracting, d)) free.push_back(d);
  return free;
}

// One side of a dot: its batch and free dimensions at their positions in the result.
Instr* BroadcastTo(Editor& edit, const m::Match& match, Instr* side, const Dims& batch,
                   const Dims& contracting, int64_t first_free) {
  if (!IsIncreasing(batch)) return nullptr;
  Dims sizes, broadcast_dims;
  int64_t free = first_free;
  for (int64_t d = 0; d < side->shape().rank(); ++d) {
    if (Contains(contracting, d)) continue;
    auto it = std::ranges::find(batch, d);
    broadcast_dims.push_back(it == batch.end() ? free++ : it - batch.begin());
    sizes.push_back(SizeAt(side->shape(), d));
  }
  Shape shape = match.shape().WithoutLayout();
  Instr* reshaped = Reshaped(edit, side, std::move(sizes));
  if (side->shape().type() != shape.type() && reshaped != nullptr)
    reshaped = edit.MakeShaped(
        Op::kConvert, reshaped->shape().WithoutLayout().WithType(shape.type()), {reshaped});
  return edit.MakeShaped(Op::kBroadcast, std::move(shape), {reshaped},
                         DimensionsAttrs{std::move(broadcast_dims)});
}

Instr* ProductInsteadOfDot(Editor& edit, const m::Match& match) {
  const DotAttrs& attrs = DotOf(match.root());
  auto batch = static_cast<int64_t>(attrs.lhs_batch.size());
  Dims free = FreeDims(match[x]->shape(), attrs.lhs_batch, attrs.lhs_contracting);
  Instr* left = BroadcastTo(edit, match, match[x], attrs.lhs_batch, attrs.lhs_contracting, batch);
  Instr* right = BroadcastTo(edit, match, match[y], attrs.rhs_batch, attrs.rhs_contracting,
                             batch + static_cast<int64_t>(free.size()));
  Instr* product = edit.Make(Op::kMultiply, {left, right});
  if (!IsReal(match.type())) return product;
  return edit.Make(Op::kAdd, {product, edit.Filled(match.shape(), 0.0)});
}

// Products of narrow floats are exact in f32. A narrow result type is excluded: a value that rounds
// to -0 at the end would become 0.
bool IsOneProduct(const m::Match& match) {
  ElementType type = match.type();
  if (IsReal(type) && type != ElementType::kF32 && type != ElementType::kF64) return false;
  if (DotOf(match.root()).algorithm || match.shape().ElementCount() == 0) return false;
  if (ProductOf(match[x]->shape(), DotOf(match.root()).lhs_contracting) != 1) return false;
  for (const Instr* side : {match[x], match[y]}) {
    ElementType from = side->shape().type();
    if (from == type && (IsInteger(type) || type == ElementType::kPred || IsIeee(type))) continue;
    bool widens = IsIeee(from) && IsIeee(type) && InfoOf(from).bits < InfoOf(type).bits;
    if (!widens) return false;
  }
  return true;
}

// dot(transpose(x), y) uses the dimensions of x directly, unless the order of the free ones would
// change.
bool MapThrough(const Instr* transpose, Dims& batch, Dims& contracting) {
  const Dims& permutation = DimensionsOf(transpose);
  Dims free = FreeDims(transpose->shape(), batch, contracting);
  for (Dims* dims : {&free, &batch, &contracting})
    for (int64_t& d : *dims) d = permutation[static_cast<size_t>(d)];
  return IsIncreasing(free);
}
Instr* LeftThrough(Editor& edit, const m::Match& match) {
  DotAttrs attrs = DotOf(match.root());
  if (!MapThrough(match[a], attrs.lhs_batch, attrs.lhs_contracting)) return nullptr;
  return edit.MakeShaped(Op::kDot, match.shape().WithoutLayout(), {match[x], match[y]},
                         std::move(attrs));
}
Instr* RightThrough(Editor& edit, const m::Match& match) {
  DotAttrs attrs = DotOf(match.root());
  if (!MapThrough(match[a], attrs.rhs_batch, attrs.rhs_contracting)) return nullptr;
  return edit.MakeShaped(Op::kDot, match.shape().WithoutLayout(), {match[x], match[y]},
                         std::move(attrs));
}

// Integers of at most 16 bits that are widened. The sums are the same modulo the size of a result
// that is not wider.
bool AreWidenedIntegers(const m::Match& match) {
  if (!IsInteger(match.type())) return false;
  int wide = InfoOf(match.type()).bits;
  for (auto [narrow, operand] : {std::pair{match[x], 0}, std::pair{match[y], 1}}) {
    ElementType from = narrow->shape().type();
    int bits = InfoOf(match.root()->operand(static_cast<size_t>(operand))->shape().type()).bits;
    if (!IsInteger(from) || InfoOf(from).bits > 16 || InfoOf(from).bits >= bits || bits < wide)
      return false;
  }
  return true;
}
Instr* DotOfNarrowIntegers(Editor& edit, const m::Match& match) {
  return edit.MakeShaped(Op::kDot, match.shape().WithoutLayout(), {match[x], match[y]},
                         DotAttrs(DotOf(match.root())));
}

// ---- convolutions that are dots

// Along a spatial dimension, a window has one tap, or one result that reads all taps.
bool HasOneTap(const WindowDim& w) {
  return w.size == 1;
}

// Whether each spatial dimension has one tap or one result, and all taps are inside of the input:
// it is free or contracted. Contracted dimensions are one in memory, for those who split it.
bool IsDot(const m::Match& match) {
  const auto& attrs = match.root()->attrs<ConvolutionAttrs>();
  if (attrs.feature_group_count != 1 || attrs.batch_group_count != 1 || IsComplex(match.type()) ||
      match.shape().ElementCount() == 0)
    return false;
  Dims of_input = {attrs.dims.input_feature}, of_kernel = {attrs.dims.kernel_input};
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    const WindowDim& w = attrs.window[i];
    if (w.base_dilation != 1 || w.pad_low > 0 || w.pad_high > 0) return false;
    if (HasOneTap(w)) continue;
    if (SizeAt(match.shape(), attrs.dims.output_spatial[i]) != 1) return false;
    of_input.push_back(attrs.dims.input_spatial[i]);
    of_kernel.push_back(attrs.dims.kernel_spatial[i]);
  }
  if (attrs.dims.input_feature > of_input.back())
    std::ranges::rotate(of_input, of_input.begin() + 1);
  if (attrs.dims.kernel_input > of_kernel.back())
    std::ranges::rotate(of_kernel, of_kernel.begin() + 1);
  return AreAdjacent(of_input) && AreAdjacent(of_kernel);
}

// The elements of the input that some window reads.
Instr* SeenElements(Editor& edit, const m::Match& match) {
  const auto& attrs = match.root()->attrs<ConvolutionAttrs>();
  Dims dims = match[x]->shape().dims(), begin(dims.size(), 0), end = dims, step(dims.size(), 1);
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    const WindowDim& w = attrs.window[i];
    auto d = static_cast<size_t>(attrs.dims.input_spatial[i]);
    dims[d] = HasOneTap(w) ? SizeAt(match.shape(), attrs.dims.output_spatial[i]) : w.size;
    step[d] = HasOneTap(w) ? w.stride : w.window_dilation;
    begin[d] = -w.pad_low;
    end[d] = begin[d] + (dims[d] - 1) * step[d] + 1;
  }
  if (dims == match[x]->shape().dims()) return match[x];
  return edit.MakeShaped(Op::kSlice, Shape::Array(match[x]->shape().type(), dims), {match[x]},
                         SliceAttrs{begin, end, step});
}

// The kernel without dimensions of one tap; those left are in `kept`.
Instr* SeenKernel(Editor& edit, const m::Match& match, Dims& kept) {
  const auto& attrs = match.root()->attrs<ConvolutionAttrs>();
  const Dims& spatial = attrs.dims.kernel_spatial;
  Dims sizes, reversed;
  for (int64_t d = 0; d < match[y]->shape().rank(); ++d) {
    if (auto at = std::ranges::find(spatial, d); at != spatial.end()) {
      const WindowDim& w = attrs.window[static_cast<size_t>(at - spatial.begin())];
      if (HasOneTap(w)) continue;
      if (w.reversed) reversed.push_back(static_cast<int64_t>(kept.size()));
    }
    kept.push_back(d);
    sizes.push_back(SizeAt(match[y]->shape(), d));
  }
  Instr* kernel = Reshaped(edit, match[y], sizes);
  if (reversed.empty()) return kernel;
  return edit.Make(Op::kReverse, {kernel}, DimensionsAttrs{std::move(reversed)});
}

// The dot as [the free dimensions of the input in order ..., out].
Instr* DotInsteadOfConvolution(Editor& edit, const m::Match& match) {
  const auto& attrs = match.root()->attrs<ConvolutionAttrs>();
  const ConvDims& dims = attrs.dims;
  Dims kept;
  Instr *seen = SeenElements(edit, match), *kernel = SeenKernel(edit, match, kept);
  if (seen == nullptr || kernel == nullptr) return nullptr;
  DotAttrs dot{{}, {}, {}, {}, attrs.precision, {}, {}, {}};
  Dims sizes, positions;  // of the dot's dimensions; positions in the result
  auto contract = [&](int64_t of_input, int64_t of_kernel) {
    dot.lhs_contracting.push_back(of_input);
    dot.rhs_contracting.push_back(std::ranges::find(kept, of_kernel) - kept.begin());
  };
  // A convolution adds its products tap by tap. ExpandConvolutions reorders them.
  for (size_t i = 0; i < attrs.window.size(); ++i)
    if (!HasOneTap(attrs.window[i])) contract(dims.input_spatial[i], dims.kernel_spatial[i]);
  contract(dims.input_feature, dims.kernel_input);
  for (int64_t d = 0; d < match[x]->shape().rank(); ++d) {
    if (std::ranges::count(dot.lhs_contracting, d) > 0) continue;
    auto i =
        static_cast<size_t>(std::ranges::find(dims.input_spatial, d) - dims.input_spatial.begin());
    sizes.push_back(SizeAt(seen->shape(), d));
    positions.push_back(i < dims.input_spatial.size() ? dims.output_spatial[i] : dims.output_batch);
  }
  sizes.push_back(SizeAt(match[y]->shape(), dims.kernel_output));
  positions.push_back(dims.output_feature);
  Instr* product = edit.MakeShaped(Op::kDot, Shape::Array(match.type(), std::move(sizes)),
                                   {seen, kernel}, std::move(dot));
  // The result also has the dimensions of one result.
  Dims order(positions.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t d) { return positions[static_cast<size_t>(d)]; });
  if (!IsIncreasing(order))
    product = edit.Make(Op::kTranspose, {product}, DimensionsAttrs{std::move(order)});
  return Reshaped(edit, product, match.shape().dims());
}

// Whether every window has one tap without stride, and the channels of the images come first, so
// that all pixels are one dimension in memory.
bool HasPlanes(const m::Match& match) {
  const auto& attrs = match.root()->attrs<ConvolutionAttrs>();
  const ConvDims& dims = attrs.dims;
  return attrs.window.size() > 1 && IsDot(match) &&
         std::ranges::all_of(attrs.window,
                             [](const WindowDim& w) {
                               return HasOneTap(w) && w.stride == 1 && w.pad_low == 0 &&
                                      w.pad_high == 0;
                             }) &&
         AreAdjacent(dims.input_spatial) && AreAdjacent(dims.output_spatial) &&
         dims.input_spatial.back() + 1 == match.shape().rank() &&
         dims.output_spatial.back() + 1 == match.shape().rank();
}

// The same convolution of lines of pixels.
Instr* WithOneSpatialDim(Editor& edit, const m::Match& match) {
  auto attrs = match.root()->attrs<ConvolutionAttrs>();
  ConvDims& dims = attrs.dims;
  auto merged = [](Dims sizes, Dims& spatial) {
    int64_t pixels = 1;
    for (int64_t d : spatial) pixels *= sizes[static_cast<size_t>(d)];
    sizes.resize(sizes.size() - spatial.size());
    sizes.push_back(pixels);
    spatial = {spatial.front()};
    return sizes;
  };
  Instr* image = Reshaped(edit, match[x], merged(match[x]->shape().dims(), dims.input_spatial));
  // The kernel without its taps, and one at the end.
  Dims kernel_dims = {SizeAt(match[y]->shape(), dims.kernel_input),
                      SizeAt(match[y]->shape(), dims.kernel_output), 1};
  bool has_output_first = dims.kernel_output < dims.kernel_input;
  if (has_output_first) std::swap(kernel_dims[0], kernel_dims[1]);
  Instr* kernel = Reshaped(edit, match[y], kernel_dims);
  dims.kernel_input = has_output_first ? 1 : 0;
  dims.kernel_output = has_output_first ? 0 : 1;
  dims.kernel_spatial = {2};
  attrs.window = {{.size = 1}};
  Shape shape = Shape::Array(match.type(), merged(match.shape().dims(), dims.output_spatial));
  return Reshaped(edit, edit.MakeShaped(Op::kConvolution, std::move(shape), {image, kernel}, attrs),
                  match.shape().dims());
}

// Whether every window has one tap, with stride 1, and some dimension has base dilation.
bool IsDilatedPointwise(const m::Match& match) {
  const auto& attrs = match.root()->attrs<ConvolutionAttrs>();
  bool is_dilated = false;
  for (const WindowDim& w : attrs.window) {
    if (!HasOneTap(w) || w.stride != 1) return false;
    is_dilated = is_dilated || w.base_dilation > 1;
  }
  return is_dilated && !IsComplex(match.type()) && match.shape().ElementCount() > 0 &&
         match[x]->shape().ElementCount() > 0;
}

// Zeros between and around the results of the convolution without base dilation.
Instr* PadInsteadOfDilation(Editor& edit, const m::Match& match) {
  auto attrs = match.root()->attrs<ConvolutionAttrs>();
  Dims dims = match.shape().dims();
  PadAttrs pad{Dims(dims.size()), Dims(dims.size()), Dims(dims.size())};
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    auto d = static_cast<size_t>(attrs.dims.output_spatial[i]);
    WindowDim& w = attrs.window[i];
    pad.low[d] = w.pad_low;
    pad.high[d] = w.pad_high;
    pad.interior[d] = w.base_dilation - 1;
    dims[d] = SizeAt(match[x]->shape(), attrs.dims.input_spatial[i]);
    w = {.size = 1};
  }
  Instr* dense = edit.MakeShaped(Op::kConvolution, Shape::Array(match.type(), dims),
                                 {match[x], match[y]}, std::move(attrs));
  return edit.MakeShaped(Op::kPad, match.shape().WithoutLayout(),
                         {dense, edit.Constant(Literal::Scalar(match.type(), 0))}, std::move(pad));
}

}  // namespace

// long: a table
std::span<const Rule> DotRules() {
  static constexpr Rule kRules[] = {
      {"dot.empty", "a dot with an empty contracted dimension is 0", m::Dot(x, y),
       m::PositiveZero(),
       [](const m::Match& match) {
         return ProductOf(match[x]->shape(), DotOf(match.root()).lhs_contracting) == 0;
       },
       R"(x = f32[3,0] parameter(0)
          y = f32[0,4] parameter(1)
          ROOT d = f32[3,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
      {"dot.one-product", "a dot with contracted dimensions of size 1 is a product", m::Dot(x, y),
       ProductInsteadOfDot, IsOneProduct,
       R"(x = f32[61,1] parameter(0)
          y = f32[1,61] parameter(1)
          ROOT d = f32[61,61] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
      {"dot.left-transpose", "a transpose of lhs becomes dimension numbers of the dot",
       m::Dot(m::Bind(a, m::Transpose(x)), y), LeftThrough, nullptr,
       R"(x = f32[5,3] parameter(0)
          t = f32[3,5] transpose(x), dimensions={1,0}
          y = f32[5,4] parameter(1)
          ROOT d = f32[3,4] dot(t, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
      {"dot.right-transpose", "a transpose of rhs becomes dimension numbers of the dot",
       m::Dot(x, m::Bind(a, m::Transpose(y))), RightThrough, nullptr,
       R"(x = f32[2,5,3] parameter(0)
          y = f32[4,2,3] parameter(1)
          t = f32[2,3,4] transpose(y), dimensions={1,2,0}
          ROOT d = f32[2,5,4] dot(x, t), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1})"},
      {"dot.widened-integers", "a dot of widened integers is one of the narrow ones",
       m::Dot(m::Convert(x), m::Convert(y)), DotOfNarrowIntegers, AreWidenedIntegers,
       R"(x = s8[5,3] parameter(0)
          y = u8[3,4] parameter(1)
          a = s32[5,3] convert(x)
          b = s32[3,4] convert(y)
          ROOT d = s32[5,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
      {"convolution.pointwise-planes",
       "pixels that are adjacent in memory are one dimension of a convolution with one tap",
       m::Convolution(x, y), WithOneSpatialDim, HasPlanes,
       R"(x = f32[2,3,4,5] parameter(0)
          k = f32[6,3,1,1] parameter(1)
          ROOT c = f32[2,6,4,5] convolution(x, k), window={size=1x1}, dim_labels=bf01_oi01->bf01)"},
      {"convolution.pointwise", "a convolution whose windows have one tap or one result is a dot",
       m::Convolution(x, y), DotInsteadOfConvolution, IsDot,
       R"(x = f32[2,4,5,3] parameter(0)
          k = f32[1,5,3,6] parameter(1)
          ROOT c = f32[2,2,1,6] convolution(x, k), window={size=1x5 stride=2x1}, dim_labels=b01f_01io->b01f)"},
      {"convolution.dilated-pointwise",
       "a convolution with one tap and base dilation has zeros between its results",
       m::Convolution(x, y), PadInsteadOfDilation, IsDilatedPointwise,
       R"(x = f32[2,4,5,3] parameter(0)
          k = f32[1,1,3,6] parameter(1)
          ROOT c = f32[2,7,10,6] convolution(x, k), window={size=1x1 pad=0_0x0_1 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f)"},
  };
  return kRules;
}

}  // namespace tokamak
