// Contractions. The accumulator of a dot starts at 0, so a dot never returns -0: a dot replaced by
// a product of floats needs 0 added.

#include <algorithm>

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

// A convolution with 1x1 windows and a single group.
bool IsPointwise(const m::Match& match) {
  const auto& attrs = match.root()->attrs<ConvolutionAttrs>();
  if (attrs.feature_group_count != 1 || attrs.batch_group_count != 1) return false;
  return std::ranges::all_of(attrs.window, [](const WindowDim& w) {
    return w.size == 1 && w.stride == 1 && w.pad_low == 0 && w.pad_high == 0 &&
           w.base_dilation == 1;
  });
}
Instr* DotInsteadOfConvolution(Editor& edit, const m::Match& match) {
  const auto& attrs = match.root()->attrs<ConvolutionAttrs>();
  const ConvDims& dims = attrs.dims;
  // The kernel as [in, out], the dot as [the other input dimensions in order ..., out].
  Dims kernel_dims = {SizeAt(match[y]->shape(), dims.kernel_input),
                      SizeAt(match[y]->shape(), dims.kernel_output)};
  if (dims.kernel_input > dims.kernel_output) std::swap(kernel_dims[0], kernel_dims[1]);
  int64_t in = dims.kernel_input > dims.kernel_output ? 1 : 0;
  Instr* kernel = Reshaped(edit, match[y], kernel_dims);
  DotAttrs dot{{}, {}, {dims.input_feature}, {in}, attrs.precision, {}, {}, {}};
  std::vector<Instr*> operands = {match[x], kernel};
  if (kernel == nullptr) return nullptr;
  Dims sizes, broadcast_dims(static_cast<size_t>(match.shape().rank()));
  int64_t index = 0;
  for (int64_t d = 0; d < match[x]->shape().rank(); ++d) {
    if (d == dims.input_feature) continue;
    sizes.push_back(SizeAt(match[x]->shape(), d));
    auto spatial = std::ranges::find(dims.input_spatial, d);
    int64_t to =
        d == dims.input_batch
            ? dims.output_batch
            : dims.output_spatial[static_cast<size_t>(spatial - dims.input_spatial.begin())];
    broadcast_dims[static_cast<size_t>(to)] = index++;
  }
  broadcast_dims[static_cast<size_t>(dims.output_feature)] = index;
  sizes.push_back(SizeAt(match[y]->shape(), dims.kernel_output));
  Instr* product = edit.MakeShaped(Op::kDot, Shape::Array(match.type(), std::move(sizes)),
                                   std::move(operands), std::move(dot));
  if (IsIncreasing(broadcast_dims)) return product;
  return edit.Make(Op::kTranspose, {product}, DimensionsAttrs{std::move(broadcast_dims)});
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
      {"convolution.pointwise", "a convolution with a 1x1 window is a dot", m::Convolution(x, y),
       DotInsteadOfConvolution,
       [](const m::Match& match) {
         return IsPointwise(match) && !IsComplex(match.type()) && match.shape().ElementCount() > 0;
       },
       R"(x = f32[2,4,5,3] parameter(0)
          k = f32[1,1,3,6] parameter(1)
          ROOT c = f32[2,4,5,6] convolution(x, k), window={size=1x1}, dim_labels=b01f_01io->b01f)"},
  };
  return kRules;
}

}  // namespace tokamak
