#include "interp/value.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

namespace tokamak {
namespace {

std::atomic<int64_t> live_bytes{0};

template <typename T>
T ElementOf(const Literal& literal, int64_t i) {
  if constexpr (std::is_same_v<T, double>) {
    return literal.DoubleAt(i);
  } else if constexpr (std::is_same_v<T, Complex>) {
    return literal.ComplexAt(i);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return literal.BitsAt(i);
  } else {
    return static_cast<T>(literal.IntAt(i));
  }
}

template <typename T>
void StoreElement(ElementType type, T element, std::byte* at) {
  uint64_t bits = 0;
  if constexpr (std::is_same_v<T, Complex>) {
    ElementType part = RealPartOf(type);
    size_t width = static_cast<size_t>(BytesOf(part));
    uint64_t re = EncodeFloat(part, element.real()), im = EncodeFloat(part, element.imag());
    std::memcpy(at, &re, width);
    std::memcpy(at + width, &im, width);
    return;
  } else if constexpr (std::is_same_v<T, double>) {
    bits = EncodeFloat(type, element);
  } else {
    bits = static_cast<uint64_t>(element);
    int width = InfoOf(type).bits;
    if (width < 64) bits &= (uint64_t{1} << width) - 1;
  }
  std::memcpy(at, &bits, static_cast<size_t>(BytesOf(type)));
}

}  // namespace

int64_t LiveBytes() {
  return live_bytes.load(std::memory_order_relaxed);
}

void CountLiveBytes(int64_t change) {
  live_bytes.fetch_add(change, std::memory_order_relaxed);
}

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

template <typename T>
struct Value::Held {
  explicit Held(std::vector<T> from)
      : elements(std::move(from)), bytes(static_cast<int64_t>(elements.size() * sizeof(T))) {
    CountLiveBytes(bytes);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { CountLiveBytes(-bytes); }
  std::vector<T> elements;
  int64_t bytes;
};

template <typename T>
Value Value::Array(Shape shape, std::vector<T> elements) {
  TOK_CHECK(static_cast<int64_t>(elements.size()) == shape.ElementCount(),
            "a value's elements do not match its shape");
  Value value;
  value.shape_ = std::move(shape);
  auto held = std::make_shared<Held<T>>(std::move(elements));
  value.data_ = Elements<T>(held, &held->elements);
  return value;
}
template Value Value::Array(Shape, std::vector<uint8_t>);
template Value Value::Array(Shape, std::vector<int64_t>);
template Value Value::Array(Shape, std::vector<uint64_t>);
template Value Value::Array(Shape, std::vector<double>);
template Value Value::Array(Shape, std::vector<Complex>);

Value Value::Tuple(std::vector<Value> elements) {
  std::vector<Shape> shapes;
  shapes.reserve(elements.size());
  for (const Value& e : elements) shapes.push_back(e.shape());
  Value value;
  value.shape_ = Shape::Tuple(std::move(shapes));
  value.tuple_ = std::move(elements);
  return value;
}

Value Value::Token() {
  Value value;
  value.shape_ = Shape::Token();
  return value;
}

namespace {

double Flushed(double x, double least) {
  return std::abs(x) < least ? std::copysign(0.0, x) : x;
}
Complex Flushed(Complex x, double least) {
  return {Flushed(x.real(), least), Flushed(x.imag(), least)};
}

template <typename T>
Value FlushArray(Value value, double least) {
  std::span<const T> elements = value.Data<T>();
  auto subnormal = [&](T x) { return Flushed(x, least) != x; };
  if (std::none_of(elements.begin(), elements.end(), subnormal)) return value;
  Shape shape = value.shape();
  std::vector<T> flushed = std::move(value).TakeData<T>();
  for (T& x : flushed) x = Flushed(x, least);
  return Value::Array(std::move(shape), std::move(flushed));
}

}  // namespace

Value WithoutSubnormals(Value value) {
  if (value.shape().IsTuple()) {
    std::vector<Value> elements = value.elements();
    value = Value();  // data that only this tuple references is changed in place
    for (Value& element : elements) element = WithoutSubnormals(std::move(element));
    return Value::Tuple(std::move(elements));
  }
  if (!value.shape().IsArray()) return value;
  ElementType part = RealPartOf(value.type());
  bool flushed = part == ElementType::kF32 || part == ElementType::kF64;
  if (!flushed && part != ElementType::kBF16) return value;
  double least = part == ElementType::kF64 ? std::numeric_limits<double>::min()
                                           : std::numeric_limits<float>::min();
  if (IsComplex(value.type())) return FlushArray<Complex>(std::move(value), least);
  return FlushArray<double>(std::move(value), least);
}

Value Value::WithShape(Shape shape) const {
  TOK_CHECK(KindOf(shape.type()) == KindOf(type()) && shape.ElementCount() == ElementCount(),
            "a value was given a shape of another size or kind");
  Value value = *this;
  value.shape_ = std::move(shape);
  return value;
}

int64_t Value::IntAt(int64_t i) const {
  size_t at = static_cast<size_t>(i);
  switch (KindOf(type())) {
    case TypeKind::kBool:
      return Data<uint8_t>()[at];
    case TypeKind::kSigned:
      return Data<int64_t>()[at];
    case TypeKind::kUnsigned:
      return static_cast<int64_t>(Data<uint64_t>()[at]);
    case TypeKind::kReal:
    case TypeKind::kComplex:
      break;
  }
  TOK_UNREACHABLE("an integer was asked of a floating value");
}

double Value::DoubleAt(int64_t i) const {
  size_t at = static_cast<size_t>(i);
  switch (KindOf(type())) {
    case TypeKind::kReal:
      return Data<double>()[at];
    case TypeKind::kUnsigned:
      return static_cast<double>(Data<uint64_t>()[at]);
    case TypeKind::kComplex:
      return Data<Complex>()[at].real();
    case TypeKind::kBool:
    case TypeKind::kSigned:
      return static_cast<double>(IntAt(i));
  }
  TOK_UNREACHABLE("type kind");
}

Result<Value> ValueFromLiteral(const Literal& literal) {
  if (literal.shape().IsTuple()) {
    std::vector<Value> elements;
    for (const Literal& e : literal.elements()) {
      TOK_TRY(Value value, ValueFromLiteral(e));
      elements.push_back(std::move(value));
    }
    return Value::Tuple(std::move(elements));
  }
  if (literal.shape().IsToken()) return Value::Token();
  int64_t count = literal.shape().ElementCount();
  return DispatchStorage(literal.type(), [&]<typename T>() -> Result<Value> {
    if (count > kMaxTensorBytes / static_cast<int64_t>(sizeof(T))) {
      return MakeError(ErrorCode::kOutOfMemory,
                       "constant: " + ToString(literal.shape()) + " does not fit");
    }
    std::vector<T> elements(static_cast<size_t>(count));
    if (literal.is_splat()) {
      std::fill(elements.begin(), elements.end(), ElementOf<T>(literal, 0));
    } else {
      for (int64_t i = 0; i < count; ++i)
        elements[static_cast<size_t>(i)] = ElementOf<T>(literal, i);
    }
    return Value::Array(literal.shape(), std::move(elements));
  });
}

Literal LiteralFromValue(const Value& value) {
  if (value.shape().IsTuple()) {
    std::vector<Literal> elements;
    for (const Value& e : value.elements()) elements.push_back(LiteralFromValue(e));
    return Literal::Tuple(std::move(elements));
  }
  TOK_CHECK(value.shape().IsArray(), "only arrays and tuples are literals");
  size_t width = static_cast<size_t>(BytesOf(value.type()));
  std::vector<std::byte> data(static_cast<size_t>(value.ElementCount()) * width);
  DispatchStorage(value.type(), [&]<typename T>() {
    std::span<const T> elements = value.Data<T>();
    for (size_t i = 0; i < elements.size(); ++i)
      StoreElement(value.type(), elements[i], data.data() + i * width);
  });
  return Literal::Array(value.shape(), Bytes::FromVector(std::move(data)));
}

int64_t WrapSigned(ElementType type, int64_t value) {
  int unused = 64 - InfoOf(type).bits;
  return static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused;
}

uint64_t WrapUnsigned(ElementType type, uint64_t value) {
  int width = InfoOf(type).bits;
  return width < 64 ? value & ((uint64_t{1} << width) - 1) : value;
}

}  // namespace tokamak
