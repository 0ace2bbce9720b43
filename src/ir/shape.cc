// Shapes: immutable, shared values. A Shape is a pointer to constant data, so copies are cheap and
// each With method makes new data. Layouts, bounds and quantization are optional parts that most
// shapes lack:
//
//   f32[2,<=8]{0,1}      type, dimensions with bounds, layout (minor to major)
//
// The default layout (row-major, without tiles) is stored as null: shapes that mean the same
// compare equal. Depth and number of parts of a tuple are maintained as they are built and
// saturate, so that text of nested shapes stays bounded. Compatible ignores layouts;
// CompatibleWithDynamic also lets a dynamic size match any size.

#include "ir/shape.h"

#include <algorithm>

#include "support/check.h"
#include "support/limits.h"

namespace tokamak {
namespace {

bool AgreeWithDynamic(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && a[i] != kDynamic && b[i] != kDynamic) return false;
  return true;
}

bool Agree(const Shape& a, const Shape& b, bool dynamic) {
  if (a.kind() != b.kind() || a.type() != b.type()) return false;
  if (dynamic ? !AgreeWithDynamic(a.dims(), b.dims()) : a.dims() != b.dims()) return false;
  if (!dynamic && a.bounds() != b.bounds()) return false;
  if ((a.quant() == nullptr) != (b.quant() == nullptr)) return false;
  if (a.quant() != nullptr && !(*a.quant() == *b.quant())) return false;
  if (a.elements().size() != b.elements().size()) return false;
  for (size_t i = 0; i < a.elements().size(); ++i)
    if (!Agree(a.elements()[i], b.elements()[i], dynamic)) return false;
  return true;
}

std::string DimsText(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.dims().size(); ++i) {
    if (i > 0) text += ',';
    if (shape.dim(i) != kDynamic) {
      text += std::to_string(shape.dim(i));
    } else if (i < shape.bounds().size() && shape.bounds()[i] != kDynamic) {
      text += "<=" + std::to_string(shape.bounds()[i]);
    } else {
      text += '?';
    }
  }
  return text + "]";
}

void HashInto(const Shape& shape, Hasher& hasher) {
  hasher.Add(shape.kind());
  hasher.Add(shape.type());
  hasher.Add(shape.dims().size());
  for (int64_t d : shape.dims()) hasher.Add(d);
  for (int64_t b : shape.bounds()) hasher.Add(b);
  if (const QuantType* q = shape.quant()) {
    hasher.Add(q->axis);
    for (double s : q->scales) hasher.Add(s);
    for (int64_t z : q->zero_points) hasher.Add(z);
  }
  hasher.Add(shape.elements().size());
  for (const Shape& e : shape.elements()) HashInto(e, hasher);
}

}  // namespace

Shape::Shape() {
  static const auto& empty = *new std::shared_ptr<const Data>(std::make_shared<const Data>());
  data_ = empty;
}

Shape Shape::Array(ElementType type, Dims dims) {
  auto data = std::make_shared<Data>();
  data->kind = ShapeKind::kArray;
  data->type = type;
  data->dims = std::move(dims);
  return Shape(std::move(data));
}

Shape Shape::Of(ShapeKind kind, std::vector<Shape> elements) {
  auto data = std::make_shared<Data>();
  data->kind = kind;
  for (const Shape& element : elements) {
    data->depth = std::max(data->depth, std::min(element.depth(), 2 * kMaxNesting) + 1);
    data->parts = std::min(data->parts + element.parts(), 2 * kMaxShapeParts);
  }
  data->elements = std::move(elements);
  return Shape(std::move(data));
}

Shape Shape::Tuple(std::vector<Shape> elements) {
  return Of(ShapeKind::kTuple, std::move(elements));
}

Shape Shape::Token() {
  static const Shape token = [] {
    auto data = std::make_shared<Data>();
    data->kind = ShapeKind::kToken;
    return Shape(std::move(data));
  }();
  return token;
}

Shape Shape::Opaque() {
  auto data = std::make_shared<Data>();
  data->kind = ShapeKind::kOpaque;
  return Shape(std::move(data));
}

Shape Shape::Buffer(Shape array) {
  return Of(ShapeKind::kBuffer, {std::move(array)});
}

Shape Shape::Future(std::vector<Shape> results) {
  return Of(ShapeKind::kFuture, std::move(results));
}

Shape Shape::Unranked(ElementType type) {
  auto data = std::make_shared<Data>();
  data->kind = ShapeKind::kUnranked;
  data->type = type;
  return Shape(std::move(data));
}

bool IsRowMajor(const Dims& minor_to_major) {
  for (size_t i = 0; i < minor_to_major.size(); ++i)
    if (minor_to_major[i] != static_cast<int64_t>(minor_to_major.size() - 1 - i)) return false;
  return true;
}

bool AreAdjacent(const Dims& dims) {
  for (size_t i = 1; i < dims.size(); ++i)
    if (dims[i] != dims[i - 1] + 1) return false;
  return true;
}

Shape Shape::WithLayout(Layout layout) const {
  Layout plain;
  plain.minor_to_major = layout.minor_to_major;
  auto data = std::make_shared<Data>(*data_);
  bool is_plain = IsRowMajor(layout.minor_to_major) && layout == plain;
  data->layout = is_plain ? nullptr : std::make_shared<const Layout>(std::move(layout));
  return Shape(std::move(data));
}

Shape Shape::WithoutLayout() const {
  auto data = std::make_shared<Data>(*data_);
  data->layout = nullptr;
  for (Shape& e : data->elements) e = e.WithoutLayout();
  return Shape(std::move(data));
}

Shape Shape::WithBounds(Dims bounds) const {
  auto data = std::make_shared<Data>(*data_);
  bool any = false;
  for (int64_t b : bounds) any = any || b != kDynamic;
  data->bounds = any ? std::move(bounds) : Dims{};
  return Shape(std::move(data));
}

Shape Shape::WithQuant(QuantType quant) const {
  auto data = std::make_shared<Data>(*data_);
  data->quant = std::make_shared<const QuantType>(std::move(quant));
  return Shape(std::move(data));
}

Shape Shape::WithoutQuant() const {
  auto data = std::make_shared<Data>(*data_);
  data->quant = nullptr;
  return Shape(std::move(data));
}

Shape Shape::WithType(ElementType type) const {
  auto data = std::make_shared<Data>(*data_);
  data->type = type;
  data->quant = nullptr;
  return Shape(std::move(data));
}

Shape Shape::WithDims(Dims dims) const {
  auto data = std::make_shared<Data>(*data_);
  data->dims = std::move(dims);
  data->bounds.clear();
  data->layout = nullptr;
  return Shape(std::move(data));
}

bool Shape::HasDynamicDims() const {
  if (kind() == ShapeKind::kUnranked) return true;
  for (int64_t d : data_->dims)
    if (d == kDynamic) return true;
  for (const Shape& e : data_->elements)
    if (e.HasDynamicDims()) return true;
  return false;
}

int64_t Shape::ElementCount() const {
  int64_t count = 1;
  for (int64_t d : data_->dims) {
    TOK_CHECK(d >= 0, "the element count of a dynamic shape was asked for");
    count *= d;
  }
  return count;
}

bool Shape::operator==(const Shape& other) const {
  if (data_ == other.data_) return true;
  if (kind() != other.kind() || type() != other.type() || dims() != other.dims() ||
      bounds() != other.bounds() || elements() != other.elements()) {
    return false;
  }
  auto same = [](const auto* a, const auto* b) {
    return a == b || (a != nullptr && b != nullptr && *a == *b);
  };
  return same(layout(), other.layout()) && same(quant(), other.quant());
}

uint64_t Shape::Hash() const {
  Hasher hasher;
  HashInto(*this, hasher);
  return hasher.digest();
}

namespace {

void AddLeaves(const Shape& shape, std::vector<Shape>& leaves) {
  if (!shape.IsTuple()) return leaves.push_back(shape);
  for (const Shape& element : shape.elements()) AddLeaves(element, leaves);
}

}  // namespace

std::vector<Shape> LeavesOf(const Shape& shape) {
  std::vector<Shape> leaves;
  AddLeaves(shape, leaves);
  return leaves;
}

int64_t BytesOfLeaves(const Shape& shape) {
  int64_t bytes = 0;
  for (const Shape& leaf : LeavesOf(shape)) bytes += leaf.IsArray() ? leaf.ByteSize() : 0;
  return bytes;
}

bool Compatible(const Shape& a, const Shape& b) {
  return Agree(a, b, /*dynamic=*/false);
}
bool CompatibleWithDynamic(const Shape& a, const Shape& b) {
  return Agree(a, b, /*dynamic=*/true);
}
bool SameDims(const Shape& a, const Shape& b) {
  return a.dims() == b.dims();
}

// Nullopt if a dimension is negative or the product exceeds kMaxElements; dynamic dimensions count
// as 1.
std::optional<int64_t> CheckedElementCount(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool has_zero = false;
  for (int64_t d : dims) {
    if (d == kDynamic) continue;
    if (d < 0) return std::nullopt;
    if (d == 0) {
      has_zero = true;
      continue;  // the other dimensions must still be valid
    }
    if (d > kMaxElements / count) return std::nullopt;
    count *= d;
  }
  return has_zero ? 0 : count;
}

std::string ToString(const Shape& shape) {
  if (shape.parts() > kMaxShapeParts || shape.depth() > kMaxNesting) return "(...)";
  switch (shape.kind()) {
    case ShapeKind::kToken:
      return "token[]";
    case ShapeKind::kOpaque:
      return "opaque[]";
    case ShapeKind::kUnranked:
      return std::string(HloName(shape.type())) + "[*]";
    case ShapeKind::kTuple:
    case ShapeKind::kBuffer:
    case ShapeKind::kFuture: {
      std::string text = shape.kind() == ShapeKind::kBuffer   ? "b("
                         : shape.kind() == ShapeKind::kFuture ? "future("
                                                              : "(";
      for (size_t i = 0; i < shape.elements().size(); ++i)
        text += (i > 0 ? ", " : "") + ToString(shape.elements()[i]);
      return text + ")";
    }
    case ShapeKind::kArray:
      break;
  }
  std::string text = std::string(HloName(shape.type())) + DimsText(shape);
  if (const Layout* layout = shape.layout()) {
    text += '{';
    for (size_t i = 0; i < layout->minor_to_major.size(); ++i)
      text += (i > 0 ? "," : "") + std::to_string(layout->minor_to_major[i]);
    text += '}';
  }
  return text;
}

}  // namespace tokamak
