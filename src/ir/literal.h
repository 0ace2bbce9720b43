#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "ir/shape.h"
#include "support/bytes.h"

namespace tokamak {

// A constant value: an array with its elements, or a tuple of literals. Elements are little-endian
// and row-major, BytesOf(type) each (pred and sub-byte types: one byte, value in the low bits,
// upper bits zero). An array whose elements are all equal is always stored as one element
// ("splat"), so equal literals have equal bytes and a splat of 2^50 elements needs no memory.
class Literal {
 public:
  Literal() = default;
  // `data` holds every element, or exactly one (a splat). Static arrays only.
  static Literal Array(Shape shape, Bytes data);
  static Literal Splat(Shape shape, Bytes element);
  static Literal Tuple(std::vector<Literal> elements);
  // A scalar of any type. `value` is converted by EncodeFloat or by truncation.
  static Literal Scalar(ElementType type, double value);
  static Literal ScalarInt(ElementType type, int64_t value);

  const Shape& shape() const { return shape_; }
  ElementType type() const { return shape_.type(); }
  bool is_splat() const { return splat_; }
  // All elements, or one if is_splat().
  const Bytes& data() const { return data_; }
  const std::vector<Literal>& elements() const { return elements_; }

  // The bits of element i in row-major order, zero-extended (types of up to 64 bits; c64 has the
  // real part in the low half).
  uint64_t BitsAt(int64_t i) const;
  // Element i as a double; the real part of a complex element.
  double DoubleAt(int64_t i) const;
  int64_t IntAt(int64_t i) const;  // pred and integers: sign- or zero-extended
  std::complex<double> ComplexAt(int64_t i) const;

  // The same elements with another shape that has the same element count and element width.
  Literal WithShape(Shape shape) const;

  bool operator==(const Literal& other) const;
  uint64_t Hash() const;

 private:
  const std::byte* ElementAt(int64_t i) const {
    return data_.data() +
           (splat_ ? 0 : static_cast<size_t>(i) * static_cast<size_t>(BytesOf(type())));
  }
  Shape shape_;
  Bytes data_;
  bool splat_ = false;
  std::vector<Literal> elements_;
};

}  // namespace tokamak
