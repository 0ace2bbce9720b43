#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "ir/literal.h"
#include "ir/shape.h"
#include "support/check.h"
#include "support/result.h"

namespace tokamak {

// The storage of an element: wide, one C++ type per TypeKind. In reference mode every stored number
// is representable in the element type.
using Complex = std::complex<double>;
template <typename T>
using Elements = std::shared_ptr<const std::vector<T>>;

// Bytes of all arrays of all live values in the process.
int64_t LiveBytes();
void CountLiveBytes(int64_t change);

// A value of the interpreter: an array, a tuple, or a token. An immutable handle that is cheap to
// copy. Array shapes are static: every dimension of a value is known, even if the shape of the
// instruction is dynamic.
class Value {
 public:
  // Copying and destruction are compiled once, in value.cc, because every op uses them.
  Value();  // the empty tuple
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  template <typename T>
  static Value Array(Shape shape, std::vector<T> elements);
  static Value Tuple(std::vector<Value> elements);
  static Value Token();
  // A scalar of the given type, which must be able to represent the number.
  template <typename T>
  static Value Scalar(ElementType type, T element) {
    return Array(Shape::Scalar(type), std::vector<T>{element});
  }

  const Shape& shape() const { return shape_; }
  ElementType type() const { return shape_.type(); }
  const Dims& dims() const { return shape_.dims(); }
  int64_t ElementCount() const { return shape_.ElementCount(); }
  const std::vector<Value>& elements() const { return tuple_; }

  // The elements in row-major order. T must be StorageOf the type's kind:
  // uint8_t pred, int64_t signed, uint64_t unsigned, double real, Complex.
  template <typename T>
  std::span<const T> Data() const {
    const Elements<T>* data = std::get_if<Elements<T>>(&data_);
    TOK_CHECK(data != nullptr, "a value was read as another kind of element");
    return **data;
  }
  // Moves the elements out if this is the only reference; otherwise copies them.
  template <typename T>
  std::vector<T> TakeData() && {
    Elements<T>* data = std::get_if<Elements<T>>(&data_);
    TOK_CHECK(data != nullptr, "a value was read as another kind of element");
    if (data->use_count() == 1) return std::move(const_cast<std::vector<T>&>(**data));
    return **data;
  }
  // Moves element i of a tuple out and leaves an empty tuple in its position.
  Value TakeElement(size_t i) { return std::exchange(tuple_[i], Value()); }
  // The same elements with other dimensions (of the same count) or another type of the same kind.
  Value WithShape(Shape shape) const;
  // Element i of an integer or pred array.
  int64_t IntAt(int64_t i) const;
  double DoubleAt(int64_t i) const;  // any real, integer or pred array

 private:
  template <typename T>
  struct Held;

  Shape shape_;
  std::variant<std::monostate, Elements<uint8_t>, Elements<int64_t>, Elements<uint64_t>,
               Elements<double>, Elements<Complex>>
      data_;
  std::vector<Value> tuple_;
};

// Calls fn.template operator()<T>() with the storage type of `type`.
extern template Value Value::Array(Shape, std::vector<uint8_t>);
extern template Value Value::Array(Shape, std::vector<int64_t>);
extern template Value Value::Array(Shape, std::vector<uint64_t>);
extern template Value Value::Array(Shape, std::vector<double>);
extern template Value Value::Array(Shape, std::vector<Complex>);

template <typename Fn>
decltype(auto) DispatchStorage(ElementType type, Fn&& fn) {
  switch (KindOf(type)) {
    case TypeKind::kBool:
      return fn.template operator()<uint8_t>();
    case TypeKind::kSigned:
      return fn.template operator()<int64_t>();
    case TypeKind::kUnsigned:
      return fn.template operator()<uint64_t>();
    case TypeKind::kReal:
      return fn.template operator()<double>();
    case TypeKind::kComplex:
      return fn.template operator()<Complex>();
  }
  __builtin_unreachable();
}

// Rejects (TK5002) literals over kMaxTensorBytes. Supports tuples.
Result<Value> ValueFromLiteral(const Literal& literal);
// Rounds numbers to the element type (in reference mode they already are).
Literal LiteralFromValue(const Value& value);

// Flushes subnormal numbers to 0 of their sign, in tuples too. f16 and narrower types, which are
// computed as f32, keep theirs.
Value WithoutSubnormals(Value value);

// Wraps an integer to the width of its type.
int64_t WrapSigned(ElementType type, int64_t value);
uint64_t WrapUnsigned(ElementType type, uint64_t value);

}  // namespace tokamak
