#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/element_type.h"
#include "support/hash.h"
#include "support/limits.h"

namespace tokamak {

// Shapes: element type, dimensions, layout and quantization of arrays; tuples, tokens and others.
using Dims = std::vector<int64_t>;

// A dimension whose size is known only at run time.
inline constexpr int64_t kDynamic = INT64_MIN;

// The physical layout of an array, as XLA prints it: {1,0:T(8,128)S(1)}. The plain row-major layout
// is represented by the absence of a Layout.
struct Layout {
  Dims minor_to_major;
  std::vector<Dims> tiles;  // T(..)(..): kCombined stands for '*'
  std::vector<char>
      dim_level_types;  // D(D,C..): 'D' dense, 'C' compressed, 'S' singleton, 'H' loose compressed
  int64_t tail_padding_alignment = 1;                   // L(n)
  std::optional<ElementType> index_type;                // #(u32)
  std::optional<ElementType> pointer_type;              // *(u32)
  int64_t element_size_in_bits = 0;                     // E(n)
  int64_t memory_space = 0;                             // S(n)
  std::vector<std::pair<int64_t, Dims>> split_configs;  // SC(dim:indices)
  int64_t dynamic_prefix_bytes = 0;                     // M(n)
  static constexpr int64_t kCombined = INT64_MIN;
  bool operator==(const Layout&) const = default;
};

// Quantization: an integer array that represents scaled numbers, value = scale * (stored -
// zero_point), per `axis` if there are several scales.
struct QuantType {
  ElementType expressed = ElementType::kF32;
  int64_t storage_min = 0, storage_max = 0;
  int64_t axis = -1;  // -1: one scale for the whole array
  std::vector<double> scales;
  std::vector<int64_t> zero_points;
  bool operator==(const QuantType&) const = default;
};

enum class ShapeKind : uint8_t {
  kArray,
  kTuple,
  kToken,
  kOpaque,
  kBuffer,    // memory that an op may write in place; holds one array
  kFuture,    // the result of an asynchronous start; holds its results
  kUnranked,  // an array of unknown rank
};

// The type of a value: an array of elements, a tuple of shapes, or a token. An immutable handle,
// cheap to copy; equal shapes from one parser share their storage. A default Shape is the empty
// tuple.
class Shape {
 public:
  Shape();
  static Shape Array(ElementType type, Dims dims);
  static Shape Scalar(ElementType type) { return Array(type, {}); }
  static Shape Tuple(std::vector<Shape> elements);
  static Shape Token();
  static Shape Opaque();
  static Shape Buffer(Shape array);
  static Shape Future(std::vector<Shape> results);
  static Shape Unranked(ElementType type);

  Shape WithLayout(Layout layout) const;  // stores nothing if the layout is plain row-major
  Shape WithoutLayout() const;            // also removes layouts of tuple elements
  Shape WithBounds(Dims bounds) const;    // one per dimension; kDynamic: no bound
  Shape WithQuant(QuantType quant) const;
  Shape WithoutQuant() const;
  Shape WithType(ElementType type) const;  // keeps dims, layout and bounds; drops quant
  Shape WithDims(Dims dims) const;         // keeps type and quant; drops layout and bounds

  ShapeKind kind() const { return data_->kind; }
  bool IsArray() const { return data_->kind == ShapeKind::kArray; }
  bool IsTuple() const { return data_->kind == ShapeKind::kTuple; }
  bool IsToken() const { return data_->kind == ShapeKind::kToken; }
  bool IsScalar() const { return IsArray() && data_->dims.empty(); }
  ElementType type() const { return data_->type; }
  const Dims& dims() const { return data_->dims; }
  int64_t dim(size_t i) const { return data_->dims[i]; }
  int64_t rank() const { return static_cast<int64_t>(data_->dims.size()); }
  // Elements of a tuple, of a buffer (one) or of a future.
  const std::vector<Shape>& elements() const { return data_->elements; }
  // Nesting depth of tuples (0: no elements), and the number of shapes in the fully expanded tuple.
  // Both saturate well above kMaxNesting and kMaxShapeParts. The parsers, inference and the
  // verifier enforce those limits, so code that traverses the elements may rely on them.
  int depth() const { return data_->depth; }
  int64_t parts() const { return data_->parts; }
  const Layout* layout() const { return data_->layout.get(); }
  const QuantType* quant() const { return data_->quant.get(); }
  // Upper bounds of dynamic dimensions; empty if none is known.
  const Dims& bounds() const { return data_->bounds; }
  bool HasDynamicDims() const;  // also inside tuples
  bool IsStaticArray() const { return IsArray() && !HasDynamicDims(); }
  // Product of the dimensions. Static arrays only; never overflows (kMaxElements).
  int64_t ElementCount() const;
  // Bytes of a static array; sub-byte elements occupy one byte each.
  int64_t ByteSize() const { return ElementCount() * BytesOf(type()); }

  // Compares everything, including layouts.
  bool operator==(const Shape& other) const;
  uint64_t Hash() const;

 private:
  struct Data {
    ShapeKind kind = ShapeKind::kTuple;
    ElementType type = ElementType::kPred;
    Dims dims;
    Dims bounds;
    std::vector<Shape> elements;
    int depth = 0;
    int64_t parts = 1;
    std::shared_ptr<const Layout> layout;
    std::shared_ptr<const QuantType> quant;
  };
  explicit Shape(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  static Shape Of(ShapeKind kind, std::vector<Shape> elements);
  std::shared_ptr<const Data> data_;
};

// Equal except for layouts.
bool Compatible(const Shape& a, const Shape& b);
// Equal except for layouts; a dynamic dimension agrees with any size.
bool CompatibleWithDynamic(const Shape& a, const Shape& b);
bool SameDims(const Shape& a, const Shape& b);
bool IsRowMajor(const Dims& minor_to_major);
// Whether these numbers of dimensions are consecutive and ascending: together they are one
// dimension in memory.
bool AreAdjacent(const Dims& dims);

// The shapes of a value with its tuples flattened depth first: arrays, but also tokens.
std::vector<Shape> LeavesOf(const Shape& shape);
// The total size of the arrays among the leaves.
int64_t BytesOfLeaves(const Shape& shape);

// nullopt if a dimension is negative (and not kDynamic) or if the product exceeds kMaxElements.
// Dynamic dimensions do not contribute.
std::optional<int64_t> CheckedElementCount(std::span<const int64_t> dims);

// "f32[2,3]{0,1}", "(f32[2], s32[])", "bf16[<=4,?]".
std::string ToString(const Shape& shape);

}  // namespace tokamak
