// dot, convolution and their kind.
#include <algorithm>

#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

std::vector<Precision> AnyPrecision(Draft& draft) {
  if (draft.random().Percent(75)) return {};  // that is: default, both
  return {draft.random().Pick({Precision::kDefault, Precision::kHigh, Precision::kHighest}),
          Precision::kHighest};
}

// Which dimensions of x are batch, which contracted, and a y that fits.
struct Product {
  Instr *x = nullptr, *y = nullptr;
  DotAttrs attrs;
};

Product DrawProduct(Draft& draft) {
  Product product;
  product.x = draft.AnyOfRank(1);
  const Shape shape = product.x->shape();
  DotAttrs& attrs = product.attrs;
  std::vector<std::pair<int64_t, int64_t>> shared;  // size, dimension of x
  Dims y_dims;
  std::vector<int> roles;  // of y's dimensions: -1 free, else an index into `shared`
  for (int64_t d = 0; d < shape.rank(); ++d) {
    int64_t dice = draft.random().Below(100);
    if (dice >= 65) continue;
    (dice < 20 ? attrs.lhs_batch : attrs.lhs_contracting).push_back(d);
  }
  for (const Dims& dims : {attrs.lhs_batch, attrs.lhs_contracting})
    for (int64_t d : dims) shared.emplace_back(shape.dim(At(d)), d);
  for (size_t i = 0; i < shared.size(); ++i) roles.push_back(static_cast<int>(i));
  for (int64_t i = draft.random().Between(0, 2); i > 0; --i) roles.push_back(-1);
  if (draft.random().Percent(50)) draft.random().Shuffle(roles);
  attrs.rhs_batch.resize(attrs.lhs_batch.size());
  attrs.rhs_contracting.resize(attrs.lhs_contracting.size());
  for (size_t d = 0; d < roles.size(); ++d) {
    if (roles[d] < 0) {
      y_dims.push_back(draft.random().Between(1, 4));
      continue;
    }
    size_t i = static_cast<size_t>(roles[d]);
    y_dims.push_back(shared[i].first);
    bool batch = i < attrs.lhs_batch.size();
    (batch ? attrs.rhs_batch[i] : attrs.rhs_contracting[i - attrs.lhs_batch.size()]) =
        static_cast<int64_t>(d);
  }
  Shape y = Shape::Array(shape.type(), y_dims);
  if (y.ElementCount() <= draft.plot().size.max_elements) product.y = draft.Like(y);
  attrs.precision = AnyPrecision(draft);
  return product;
}

bool DrawDot(Draft& draft) {
  Product product = DrawProduct(draft);
  if (product.y == nullptr) return false;
  bool widened = draft.random().Percent(15) && IsReal(product.x->shape().type());
  if (!widened) return draft.Put(Op::kDot, {product.x, product.y}, product.attrs) != nullptr;
  // The sums in another type: the dimensions are those that inference gives.
  std::vector<Shape> shapes{product.x->shape(), product.y->shape()};
  Attrs attrs(product.attrs);
  auto shape = InferShape({Op::kDot, shapes, attrs, {}, 0, nullptr});
  if (!shape.ok()) return false;
  return draft.Put(Op::kDot, {product.x, product.y}, product.attrs,
                   {.shape = shape.value().WithType(ElementType::kF32)}) != nullptr;
}

Instr* Matrix(Draft& draft, ElementType type, int64_t rows, int64_t columns) {
  Instr* plain = nullptr;
  switch (draft.random().Below(6)) {
    case 0:  // by a transpose
      plain = draft.Like(Shape::Array(type, {columns, rows}));
      return draft.Put(Op::kTranspose, {plain}, DimensionsAttrs{{1, 0}});
    case 1:  // of rows that are alike
      plain = draft.Like(Shape::Array(type, {columns}));
      return draft.Broadcast(plain, {rows, columns}, {1});
    case 2: {  // of two halves
      Instr* left = draft.Like(Shape::Array(type, {rows, 1}));
      Instr* right = draft.Like(Shape::Array(type, {rows, columns - 1}));
      return draft.Put(Op::kConcatenate, {left, right}, DimensionAttrs{1});
    }
    default:
      return draft.Like(Shape::Array(type, {rows, columns}));
  }
}

// Matrices that were moved, joined or are constant; two products of one matrix.
bool DrawMatrixProducts(Draft& draft) {
  ElementType type = draft.AnyType(kNumber);
  const ProgramSize& size = draft.plot().size;
  int64_t m = draft.random().Between(1, size.Of(4, 60)),
          k = draft.random().Between(1, size.Of(5, 60)),
          n = draft.random().Between(1, size.Of(4, 60));
  Instr* x = Matrix(draft, type, m, k);
  Instr* y = Matrix(draft, type, k, n);
  DotAttrs attrs{{}, {}, {1}, {0}, {}, {}, {}, {}};
  Instr* first = draft.Put(Op::kDot, {x, y}, attrs);
  if (first == nullptr) return false;
  switch (draft.random().Below(4)) {
    case 0: {  // shares an operand
      Instr* z = Matrix(draft, type, k, draft.random().Between(1, 4));
      return draft.Put(Op::kDot, {x, z}, attrs) != nullptr;
    }
    case 1: {  // one after the other
      Instr* z = Matrix(draft, type, n, draft.random().Between(1, 3));
      return draft.Put(Op::kDot, {first, z}, attrs) != nullptr;
    }
    case 2:
      return draft.Put(Op::kTranspose, {first}, DimensionsAttrs{{1, 0}}) != nullptr;
    default:
      return true;
  }
}

Dims Labels(Draft& draft, size_t rank) {
  Dims labels = draft.Permutation(static_cast<int64_t>(rank));
  if (draft.random().Percent(60)) std::sort(labels.begin(), labels.end());
  return labels;
}

bool DrawConvolution(Draft& draft) {
  const ProgramSize& size = draft.plot().size;
  ElementType type = draft.AnyType(kNumber);
  size_t spatial = static_cast<size_t>(draft.random().Pick({0, 1, 1, 2}));
  Dims in = Labels(draft, spatial + 2), kernel = Labels(draft, spatial + 2),
       out = Labels(draft, spatial + 2);
  int64_t groups = draft.random().Percent(80) ? 1 : 2;
  bool batch_groups = groups > 1 && draft.random().Percent(40);
  int64_t batch = draft.random().Between(1, 2) * (batch_groups ? groups : 1);
  int64_t features = draft.random().Between(1, size.Of(2, 9));
  int64_t outputs = draft.random().Between(1, size.Of(2, 20)) * groups;
  if (size.wide && draft.random().Percent(20)) {  // depthwise
    groups = draft.random().Between(2, 12);
    batch_groups = false;
    features = 1;
    outputs = groups * draft.random().Between(1, 2);
  }
  ConvolutionAttrs attrs;
  attrs.dims.input_batch = in[0], attrs.dims.input_feature = in[1];
  attrs.dims.kernel_input = kernel[0], attrs.dims.kernel_output = kernel[1];
  attrs.dims.output_batch = out[0], attrs.dims.output_feature = out[1];
  (batch_groups ? attrs.batch_group_count : attrs.feature_group_count) = groups;
  Dims x_dims(spatial + 2), kernel_dims(spatial + 2);
  x_dims[At(in[0])] = batch;
  x_dims[At(in[1])] = batch_groups ? features : features * groups;
  kernel_dims[At(kernel[0])] = features;
  kernel_dims[At(kernel[1])] = outputs;
  for (size_t i = 0; i < spatial; ++i) {
    attrs.dims.input_spatial.push_back(in[i + 2]);
    attrs.dims.kernel_spatial.push_back(kernel[i + 2]);
    attrs.dims.output_spatial.push_back(out[i + 2]);
    WindowDim w;
    w.size = draft.random().Between(1, 3);
    if (draft.random().Percent(25)) w.stride = 2;
    if (draft.random().Percent(40)) w.pad_low = draft.random().Between(-1, 2);
    if (draft.random().Percent(40)) w.pad_high = draft.random().Between(-1, 2);
    if (draft.random().Percent(15)) w.base_dilation = 2;
    if (draft.random().Percent(15)) w.window_dilation = 2;
    w.reversed = draft.random().Percent(15);
    attrs.window.push_back(w);
    x_dims[At(in[i + 2])] = draft.random().Between(1, size.Of(5, 14));
    kernel_dims[At(kernel[i + 2])] = w.size;
  }
  attrs.precision = AnyPrecision(draft);
  Instr* x = draft.Like(Shape::Array(type, x_dims));
  Instr* y = draft.Like(Shape::Array(type, kernel_dims));
  return draft.Put(Op::kConvolution, {x, y}, attrs) != nullptr;
}

bool DrawEinsum(Draft& draft) {
  ElementType type = draft.AnyType(kNumber);
  Instr* x = draft.Like(Shape::Array(type, {2, 3}));
  if (draft.random().Percent(40)) {
    bool transposed = draft.random().Percent(50);
    return draft.Put(Op::kUnaryEinsum, {x}, EinsumAttrs{transposed ? "ab->ba" : "ab->a"},
                     {.shape = Shape::Array(type, transposed ? Dims{3, 2} : Dims{2})}) != nullptr;
  }
  Instr* y = draft.Like(Shape::Array(type, {3, 2}));
  bool outer = draft.random().Percent(40);
  return draft.Put(Op::kEinsum, {x, y}, EinsumAttrs{outer ? "ab,bc->cab" : "ab,bc->ac"},
                   {.shape = Shape::Array(type, outer ? Dims{2, 2, 3} : Dims{2, 2})}) != nullptr;
}

bool DrawRaggedDot(Draft& draft) {
  ElementType type = draft.AnyType(kReal);
  Instr* x = draft.Like(Shape::Array(type, {4, 3}));
  Instr* y = draft.Like(Shape::Array(type, {2, 3, 2}));
  Instr* sizes = draft.Constant(Shape::Array(ElementType::kS32, {2}), Mood::kSmall);
  DotAttrs attrs{{}, {}, {1}, {1}, {}, {}, {0}, {0}};
  return draft.Put(Op::kRaggedDot, {x, y, sizes}, attrs) != nullptr;
}

constexpr Drawer kContractionDrawers[] = {
    {"dot", 35, 3, DrawDot},
    {"matrix-products", 30, 8, DrawMatrixProducts},
    {"convolution", 20, 3, DrawConvolution},
    {"einsum", 3, 3, DrawEinsum},
    {"ragged-dot", 2, 4, DrawRaggedDot},
};

}  // namespace

std::span<const Drawer> ContractionDrawers() {
  return kContractionDrawers;
}

}  // namespace tokamak::fuzz
