// dot, convolution and similar ops.
#include <algorithm>

#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

std::vector<Precision> AnyPrecision(ProgramBuilder& builder) {
  if (builder.random().Percent(75)) return {};  // default for both
  return {builder.random().Pick({Precision::kDefault, Precision::kHigh, Precision::kHighest}),
          Precision::kHighest};
}

// The batch and contracted dimensions of x, and a matching y.
struct Product {
  Instr *x = nullptr, *y = nullptr;
  DotAttrs attrs;
};

Product DrawProduct(ProgramBuilder& builder) {
  Product product;
  product.x = builder.AnyOfRank(1);
  const Shape shape = product.x->shape();
  DotAttrs& attrs = product.attrs;
  std::vector<std::pair<int64_t, int64_t>> shared;  // size, dimension of x
  Dims y_dims;
  std::vector<int> roles;  // of y's dimensions: -1 free, else an index into `shared`
  for (int64_t d = 0; d < shape.rank(); ++d) {
    int64_t dice = builder.random().Below(100);
    if (dice >= 65) continue;
    (dice < 20 ? attrs.lhs_batch : attrs.lhs_contracting).push_back(d);
  }
  for (const Dims& dims : {attrs.lhs_batch, attrs.lhs_contracting})
    for (int64_t d : dims) shared.emplace_back(shape.dim(At(d)), d);
  for (size_t i = 0; i < shared.size(); ++i) roles.push_back(static_cast<int>(i));
  for (int64_t i = builder.random().Between(0, 2); i > 0; --i) roles.push_back(-1);
  if (builder.random().Percent(50)) builder.random().Shuffle(roles);
  attrs.rhs_batch.resize(attrs.lhs_batch.size());
  attrs.rhs_contracting.resize(attrs.lhs_contracting.size());
  for (size_t d = 0; d < roles.size(); ++d) {
    if (roles[d] < 0) {
      y_dims.push_back(builder.random().Between(1, 4));
      continue;
    }
    size_t i = static_cast<size_t>(roles[d]);
    y_dims.push_back(shared[i].first);
    bool batch = i < attrs.lhs_batch.size();
    (batch ? attrs.rhs_batch[i] : attrs.rhs_contracting[i - attrs.lhs_batch.size()]) =
        static_cast<int64_t>(d);
  }
  Shape y = Shape::Array(shape.type(), y_dims);
  if (y.ElementCount() <= builder.program_state().size.max_elements) product.y = builder.Like(y);
  attrs.precision = AnyPrecision(builder);
  return product;
}

bool DrawDot(ProgramBuilder& builder) {
  Product product = DrawProduct(builder);
  if (product.y == nullptr) return false;
  bool widened = builder.random().Percent(15) && IsReal(product.x->shape().type());
  if (!widened) return builder.Put(Op::kDot, {product.x, product.y}, product.attrs) != nullptr;
  // Accumulates in another type: the dimensions come from inference.
  std::vector<Shape> shapes{product.x->shape(), product.y->shape()};
  Attrs attrs(product.attrs);
  auto shape = InferShape({Op::kDot, shapes, attrs, {}, 0, nullptr});
  if (!shape.ok()) return false;
  return builder.Put(Op::kDot, {product.x, product.y}, product.attrs,
                     {.shape = shape.value().WithType(ElementType::kF32)}) != nullptr;
}

Instr* Matrix(ProgramBuilder& builder, ElementType type, int64_t rows, int64_t columns) {
  Instr* plain = nullptr;
  switch (builder.random().Below(6)) {
    case 0:  // by a transpose
      plain = builder.Like(Shape::Array(type, {columns, rows}));
      return builder.Put(Op::kTranspose, {plain}, DimensionsAttrs{{1, 0}});
    case 1:  // of equal rows
      plain = builder.Like(Shape::Array(type, {columns}));
      return builder.Broadcast(plain, {rows, columns}, {1});
    case 2: {  // of two halves
      Instr* left = builder.Like(Shape::Array(type, {rows, 1}));
      Instr* right = builder.Like(Shape::Array(type, {rows, columns - 1}));
      return builder.Put(Op::kConcatenate, {left, right}, DimensionAttrs{1});
    }
    default:
      return builder.Like(Shape::Array(type, {rows, columns}));
  }
}

// Matrices that are moved, concatenated or constant; two products of one matrix.
bool DrawMatrixProducts(ProgramBuilder& builder) {
  ElementType type = builder.AnyType(kNumber);
  const ProgramSize& size = builder.program_state().size;
  int64_t m = builder.random().Between(1, size.Of(4, 60)),
          k = builder.random().Between(1, size.Of(5, 60)),
          n = builder.random().Between(1, size.Of(4, 60));
  Instr* x = Matrix(builder, type, m, k);
  Instr* y = Matrix(builder, type, k, n);
  DotAttrs attrs{{}, {}, {1}, {0}, {}, {}, {}, {}};
  Instr* first = builder.Put(Op::kDot, {x, y}, attrs);
  if (first == nullptr) return false;
  switch (builder.random().Below(4)) {
    case 0: {  // shares an operand
      Instr* z = Matrix(builder, type, k, builder.random().Between(1, 4));
      return builder.Put(Op::kDot, {x, z}, attrs) != nullptr;
    }
    case 1: {  // chained
      Instr* z = Matrix(builder, type, n, builder.random().Between(1, 3));
      return builder.Put(Op::kDot, {first, z}, attrs) != nullptr;
    }
    case 2:
      return builder.Put(Op::kTranspose, {first}, DimensionsAttrs{{1, 0}}) != nullptr;
    default:
      return true;
  }
}

Dims Labels(ProgramBuilder& builder, size_t rank) {
  Dims labels = builder.Permutation(static_cast<int64_t>(rank));
  if (builder.random().Percent(60)) std::sort(labels.begin(), labels.end());
  return labels;
}

bool DrawConvolution(ProgramBuilder& builder) {
  const ProgramSize& size = builder.program_state().size;
  ElementType type = builder.AnyType(kNumber);
  size_t spatial = static_cast<size_t>(builder.random().Pick({0, 1, 1, 2}));
  Dims in = Labels(builder, spatial + 2), kernel = Labels(builder, spatial + 2),
       out = Labels(builder, spatial + 2);
  int64_t groups = builder.random().Percent(80) ? 1 : 2;
  bool batch_groups = groups > 1 && builder.random().Percent(40);
  int64_t batch = builder.random().Between(1, 2) * (batch_groups ? groups : 1);
  int64_t features = builder.random().Between(1, size.Of(2, 9));
  int64_t outputs = builder.random().Between(1, size.Of(2, 20)) * groups;
  if (size.wide && builder.random().Percent(20)) {  // depthwise
    groups = builder.random().Between(2, 12);
    batch_groups = false;
    features = 1;
    outputs = groups * builder.random().Between(1, 2);
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
    w.size = builder.random().Between(1, 3);
    if (builder.random().Percent(25)) w.stride = 2;
    if (builder.random().Percent(40)) w.pad_low = builder.random().Between(-1, 2);
    if (builder.random().Percent(40)) w.pad_high = builder.random().Between(-1, 2);
    if (builder.random().Percent(15)) w.base_dilation = 2;
    if (builder.random().Percent(15)) w.window_dilation = 2;
    w.reversed = builder.random().Percent(15);
    attrs.window.push_back(w);
    x_dims[At(in[i + 2])] = builder.random().Between(1, size.Of(5, 14));
    kernel_dims[At(kernel[i + 2])] = w.size;
  }
  attrs.precision = AnyPrecision(builder);
  Instr* x = builder.Like(Shape::Array(type, x_dims));
  Instr* y = builder.Like(Shape::Array(type, kernel_dims));
  return builder.Put(Op::kConvolution, {x, y}, attrs) != nullptr;
}

bool DrawEinsum(ProgramBuilder& builder) {
  ElementType type = builder.AnyType(kNumber);
  Instr* x = builder.Like(Shape::Array(type, {2, 3}));
  if (builder.random().Percent(40)) {
    bool transposed = builder.random().Percent(50);
    return builder.Put(Op::kUnaryEinsum, {x}, EinsumAttrs{transposed ? "ab->ba" : "ab->a"},
                       {.shape = Shape::Array(type, transposed ? Dims{3, 2} : Dims{2})}) != nullptr;
  }
  Instr* y = builder.Like(Shape::Array(type, {3, 2}));
  bool outer = builder.random().Percent(40);
  return builder.Put(Op::kEinsum, {x, y}, EinsumAttrs{outer ? "ab,bc->cab" : "ab,bc->ac"},
                     {.shape = Shape::Array(type, outer ? Dims{2, 2, 3} : Dims{2, 2})}) != nullptr;
}

bool DrawRaggedDot(ProgramBuilder& builder) {
  ElementType type = builder.AnyType(kReal);
  Instr* x = builder.Like(Shape::Array(type, {4, 3}));
  Instr* y = builder.Like(Shape::Array(type, {2, 3, 2}));
  Instr* sizes = builder.Constant(Shape::Array(ElementType::kS32, {2}), Mood::kSmall);
  DotAttrs attrs{{}, {}, {1}, {1}, {}, {}, {0}, {0}};
  return builder.Put(Op::kRaggedDot, {x, y, sizes}, attrs) != nullptr;
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
