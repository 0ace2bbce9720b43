#include "ir/literal.h"

#include <cstring>

#include "support/check.h"

namespace tokamak {
namespace {

bool AllEqual(const std::byte* data, size_t width, size_t bytes) {
  // Comparing the array with itself shifted by one element tests that every element equals the
  // next.
  return bytes >= width && std::memcmp(data, data + width, bytes - width) == 0;
}

std::vector<std::byte> BytesOfBits(uint64_t bits, int width) {
  std::vector<std::byte> data(static_cast<size_t>(width));
  std::memcpy(data.data(), &bits, data.size());
  return data;
}

}  // namespace

Literal Literal::Array(Shape shape, Bytes data) {
  const size_t width = static_cast<size_t>(BytesOf(shape.type()));
  const int64_t count = shape.ElementCount();
  Literal literal;
  literal.shape_ = std::move(shape);
  if (count > 1 && data.size() == width) {
    literal.splat_ = true;
    literal.data_ = std::move(data);
    return literal;
  }
  TOK_CHECK(static_cast<int64_t>(data.size()) == count * static_cast<int64_t>(width),
            "a literal's bytes do not match its shape");
  literal.splat_ = count > 1 && AllEqual(data.data(), width, data.size());
  literal.data_ = literal.splat_ ? Bytes::Copy(data.data(), width) : std::move(data);
  return literal;
}

Literal Literal::Splat(Shape shape, Bytes element) {
  if (shape.ElementCount() == 0) return Array(std::move(shape), {});
  return Array(std::move(shape), std::move(element));
}

Literal Literal::Tuple(std::vector<Literal> elements) {
  std::vector<Shape> shapes;
  shapes.reserve(elements.size());
  for (const Literal& e : elements) shapes.push_back(e.shape());
  Literal literal;
  literal.shape_ = Shape::Tuple(std::move(shapes));
  literal.elements_ = std::move(elements);
  return literal;
}

Literal Literal::Scalar(ElementType type, double value) {
  if (!IsReal(type) && !IsComplex(type)) return ScalarInt(type, static_cast<int64_t>(value));
  ElementType part = RealPartOf(type);
  std::vector<std::byte> data = BytesOfBits(EncodeFloat(part, value), BytesOf(part));
  data.resize(static_cast<size_t>(BytesOf(type)));
  return Array(Shape::Scalar(type), Bytes::FromVector(std::move(data)));
}

Literal Literal::ScalarInt(ElementType type, int64_t value) {
  if (IsReal(type) || IsComplex(type)) return Scalar(type, static_cast<double>(value));
  uint64_t bits = static_cast<uint64_t>(value);
  if (type == ElementType::kPred) bits = value != 0 ? 1 : 0;
  int width = InfoOf(type).bits;
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  return Array(Shape::Scalar(type), Bytes::FromVector(BytesOfBits(bits, BytesOf(type))));
}

uint64_t Literal::BitsAt(int64_t i) const {
  uint64_t bits = 0;
  std::memcpy(&bits, ElementAt(i), static_cast<size_t>(std::min(8, BytesOf(type()))));
  return bits;
}

double Literal::DoubleAt(int64_t i) const {
  if (IsReal(type())) return DecodeFloat(type(), BitsAt(i));
  if (IsComplex(type())) return ComplexAt(i).real();
  if (IsUnsigned(type())) return static_cast<double>(BitsAt(i));
  return static_cast<double>(IntAt(i));
}

int64_t Literal::IntAt(int64_t i) const {
  uint64_t bits = BitsAt(i);
  if (IsReal(type()) || IsComplex(type())) return static_cast<int64_t>(DoubleAt(i));
  if (!IsSigned(type())) return static_cast<int64_t>(bits);
  int unused = 64 - InfoOf(type()).bits;
  return static_cast<int64_t>(bits << unused) >> unused;
}

std::complex<double> Literal::ComplexAt(int64_t i) const {
  if (type() == ElementType::kC64) {
    float parts[2];
    std::memcpy(parts, ElementAt(i), sizeof parts);
    return {static_cast<double>(parts[0]), static_cast<double>(parts[1])};
  }
  if (type() == ElementType::kC128) {
    double parts[2];
    std::memcpy(parts, ElementAt(i), sizeof parts);
    return {parts[0], parts[1]};
  }
  return {DoubleAt(i), 0.0};
}

Literal Literal::WithShape(Shape shape) const {
  TOK_CHECK(
      BytesOf(shape.type()) == BytesOf(type()) && shape.ElementCount() == shape_.ElementCount(),
      "a literal was given a shape of another size");
  Literal literal = *this;
  literal.shape_ = std::move(shape);
  return literal;
}

bool Literal::operator==(const Literal& other) const {
  return shape_ == other.shape_ && splat_ == other.splat_ && data_.text() == other.data_.text() &&
         elements_ == other.elements_;
}

uint64_t Literal::Hash() const {
  Hasher hasher;
  hasher.Add(shape_.Hash());
  hasher.AddBytes(data_.data(), data_.size());
  for (const Literal& e : elements_) hasher.Add(e.Hash());
  return hasher.digest();
}

}  // namespace tokamak
