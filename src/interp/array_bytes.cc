#include "interp/array_bytes.h"

#include <cstring>

namespace tokamak {
namespace {

// Calls fn.template operator()<T, Native>(): T is how a value stores elements of `type`, Native the
// C++ type of the elements of a buffer; void for narrow floats and similar types.
template <typename Fn>
decltype(auto) DispatchPair(ElementType type, Fn&& fn) {
  switch (type) {
    case ElementType::kPred:
      return fn.template operator()<uint8_t, uint8_t>();
    case ElementType::kS2:
    case ElementType::kS4:
    case ElementType::kS8:
      return fn.template operator()<int64_t, int8_t>();
    case ElementType::kS16:
      return fn.template operator()<int64_t, int16_t>();
    case ElementType::kS32:
      return fn.template operator()<int64_t, int32_t>();
    case ElementType::kS64:
      return fn.template operator()<int64_t, int64_t>();
    case ElementType::kU2:
    case ElementType::kU4:
    case ElementType::kU8:
      return fn.template operator()<uint64_t, uint8_t>();
    case ElementType::kU16:
      return fn.template operator()<uint64_t, uint16_t>();
    case ElementType::kU32:
      return fn.template operator()<uint64_t, uint32_t>();
    case ElementType::kU64:
      return fn.template operator()<uint64_t, uint64_t>();
    case ElementType::kF32:
      return fn.template operator()<double, float>();
    case ElementType::kF64:
      return fn.template operator()<double, double>();
    case ElementType::kC64:
      return fn.template operator()<Complex, std::complex<float>>();
    case ElementType::kC128:
      return fn.template operator()<Complex, Complex>();
    default:
      return fn.template operator()<double, void>();
  }
}

std::vector<double> DecodeAll(ElementType type, const std::byte* from, size_t count) {
  std::vector<double> elements(count);
  auto width = static_cast<size_t>(BytesOf(type));
  uint64_t mask = (uint64_t{1} << InfoOf(type).bits) - 1;
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, from + i * width, width);
    elements[i] = DecodeFloat(type, bits & mask);
  }
  return elements;
}

// Clears the unused upper bits of sub-byte elements.
template <typename T>
void DropUnusedBits(ElementType type, std::vector<T>& elements) {
  if constexpr (std::is_same_v<T, int64_t>) {
    for (T& element : elements) element = WrapSigned(type, element);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    for (T& element : elements) element = WrapUnsigned(type, element);
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    for (T& element : elements) element = element != 0 ? 1 : 0;
  }
}

template <typename T, typename Native>
std::vector<T> Widen(ElementType type, const std::byte* from, size_t count) {
  std::vector<T> elements(count);
  for (size_t i = 0; i < count; ++i) {
    Native native;
    std::memcpy(&native, from + i * sizeof native, sizeof native);
    elements[i] = static_cast<T>(native);
  }
  if (InfoOf(type).bits < 8) DropUnusedBits(type, elements);
  return elements;
}

}  // namespace

Result<Value> ValueFromBytes(const Shape& shape, const void* data) {
  auto count = static_cast<size_t>(shape.ElementCount());
  auto* from = static_cast<const std::byte*>(data);
  return DispatchPair(shape.type(), [&]<typename T, typename Native>() -> Result<Value> {
    if (count > static_cast<size_t>(kMaxTensorBytes) / sizeof(T))
      return MakeError(ErrorCode::kOutOfMemory, "run: " + ToString(shape) + " does not fit");
    if constexpr (std::is_void_v<Native>) {
      return Value::Array(shape, DecodeAll(shape.type(), from, count));
    } else {
      return Value::Array(shape, Widen<T, Native>(shape.type(), from, count));
    }
  });
}

void StoreBytes(const Value& value, void* data) {
  auto* to = static_cast<std::byte*>(data);
  DispatchPair(value.type(), [&]<typename T, typename Native>() {
    std::span<const T> elements = value.Data<T>();
    if constexpr (std::is_void_v<Native>) {
      auto width = static_cast<size_t>(BytesOf(value.type()));
      for (size_t i = 0; i < elements.size(); ++i) {
        uint64_t bits = EncodeFloat(value.type(), elements[i]);
        std::memcpy(to + i * width, &bits, width);
      }
    } else {
      for (size_t i = 0; i < elements.size(); ++i) {
        auto native = static_cast<Native>(elements[i]);
        std::memcpy(to + i * sizeof native, &native, sizeof native);
      }
    }
  });
}

Result<std::vector<std::byte>> BytesOfConstant(const Instr& constant) {
  TOK_TRY(Value value, ValueFromLiteral(constant.attrs<ConstantAttrs>().literal));
  std::vector<std::byte> bytes(static_cast<size_t>(constant.shape().ByteSize()));
  StoreBytes(value.WithShape(constant.shape().WithoutLayout()), bytes.data());
  return bytes;
}

}  // namespace tokamak
