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

// How the interpreter stores an element: wide, one C++ type per TypeKind. In
// law mode every stored number is one that the element type can hold.
using Complex = std::complex<double>;
template <typename T>
using Elements = std::shared_ptr<const std::vector<T>>;

// Bytes of all arrays of all values alive in the process.
int64_t LiveBytes();
void CountLiveBytes(int64_t change);

// A value of the interpreter: an array, a tuple, or a token. An immutable
// handle; copying is cheap. Array shapes are static: every dimension is known
// once the value is there, also where the instruction's own shape is dynamic.
class Value {
 public:
  // How it is copied and destroyed is compiled once, in value.cc: every op here does it.
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
  // A scalar of a given type; the number must be one the type holds.
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
  // The elements of a value nobody else holds are moved out; else copied.
  template <typename T>
  std::vector<T> TakeData() && {
    Elements<T>* data = std::get_if<Elements<T>>(&data_);
    TOK_CHECK(data != nullptr, "a value was read as another kind of element");
    if (data->use_count() == 1) return std::move(const_cast<std::vector<T>&>(**data));
    return **data;
  }
  // Element i of a tuple, moved out: an empty tuple stays in its place.
  Value TakeElement(size_t i) { return std::exchange(tuple_[i], Value()); }
  // The same elements under other dimensions (of the same count) or another
  // type of the same kind.
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

// Refuses (TK5002) what passes kMaxTensorBytes. Tuples too.
Result<Value> ValueFromLiteral(const Literal& literal);
// Numbers are rounded to the element type (in law mode they are there already).
Literal LiteralFromValue(const Value& value);

// Subnormal numbers become 0 of their sign, in tuples too. f16 and narrower types, which are
// computed with as f32, keep theirs.
Value WithoutSubnormals(Value value);

// Wraps an integer to the width of its type.
int64_t WrapSigned(ElementType type, int64_t value);
uint64_t WrapUnsigned(ElementType type, uint64_t value);

}  // namespace tokamak
