#include "driver/arguments.h"

#include <algorithm>
#include <functional>

#include "support/splitmix.h"

namespace tokamak {
namespace {

void Flatten(const Shape& shape, std::vector<Shape>& out) {
  if (shape.IsToken()) return;
  if (!shape.IsTuple()) {
    out.push_back(shape);
    return;
  }
  for (const Shape& element : shape.elements()) Flatten(element, out);
}

// Gives the value of the n-th array.
using Source = std::function<Result<Value>(int64_t number, const Shape& shape)>;

Result<Value> MakeValue(const Shape& shape, int64_t& number, const Source& source) {
  if (shape.IsToken()) return Value::Token();
  if (!shape.IsTuple()) return source(number++, shape);
  std::vector<Value> elements;
  for (const Shape& element : shape.elements()) {
    TOK_TRY(Value value, MakeValue(element, number, source));
    elements.push_back(std::move(value));
  }
  return Value::Tuple(std::move(elements));
}

Result<std::vector<Value>> MakeArguments(const Computation& entry, const Source& source) {
  std::vector<Value> arguments;
  int64_t number = 0;
  for (const Instr* parameter : entry.parameters()) {
    TOK_TRY(Value value, MakeValue(parameter->shape(), number, source));
    arguments.push_back(std::move(value));
  }
  return arguments;
}

class Random : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;
  double Real() { return static_cast<double>(Next() >> 11) * 0x1p-52 - 1.0; }  // [-1, 1)
};

template <typename T>
T DrawElement(Random& random, ElementType type) {
  if constexpr (std::is_same_v<T, Complex>) {
    ElementType part = RealPartOf(type);
    double real = RoundToType(part, random.Real());
    return {real, RoundToType(part, random.Real())};
  } else if constexpr (std::is_same_v<T, double>) {
    return RoundToType(type, random.Real());
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return random.Next() >> 63 != 0 ? 1 : 0;
  } else {
    uint64_t range = InfoOf(type).bits <= 2 ? 2 : 4;
    return static_cast<T>(random.Next() % range);
  }
}

Result<Value> DrawArray(Random& random, const Shape& shape, int64_t number) {
  constexpr int64_t kFreeDim = 3;
  if (!shape.IsArray())
    return MakeError(ErrorCode::kUninventableInput, "run: in_" + std::to_string(number) + " is " +
                                                        ToString(shape) +
                                                        ", and --seed draws arrays only");
  Dims dims = shape.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != kDynamic) continue;
    bool bounded = i < shape.bounds().size() && shape.bounds()[i] != kDynamic;
    dims[i] = bounded ? shape.bounds()[i] : kFreeDim;
  }
  std::optional<int64_t> count = CheckedElementCount(dims);
  if (!count || *count > kMaxTensorBytes / 16)
    return MakeError(ErrorCode::kOutOfMemory, "run: in_" + std::to_string(number) + " is " +
                                                  ToString(shape) + ", over the limit of " +
                                                  std::to_string(kMaxTensorBytes) + " bytes");
  Shape full = Shape::Array(shape.type(), dims);
  if (shape.quant() != nullptr) full = full.WithQuant(*shape.quant());
  return DispatchStorage(shape.type(), [&]<typename T>() -> Result<Value> {
    std::vector<T> elements(static_cast<size_t>(*count));
    for (T& element : elements) element = DrawElement<T>(random, shape.type());
    return Value::Array(full, std::move(elements));
  });
}

// A result whose size was known only at run time, as XLA hands it out: an array of its bounds that
// begins with the elements there are, one after the other, and goes on with zeros.
Literal PaddedToBounds(const Literal& literal, const Shape& stated) {
  Dims dims;
  for (size_t i = 0; i < stated.dims().size(); ++i) {
    int64_t size = stated.dim(i) != kDynamic ? stated.dim(i) : stated.bounds()[i];
    if (size == kDynamic || size < literal.shape().dim(i)) return literal;
    dims.push_back(size);
  }
  Shape shape = literal.shape().WithDims(std::move(dims));
  size_t width = static_cast<size_t>(BytesOf(literal.type()));
  std::vector<std::byte> data(static_cast<size_t>(shape.ElementCount()) * width);
  for (int64_t i = 0; i < literal.shape().ElementCount(); ++i) {
    const std::byte* from =
        literal.data().data() + (literal.is_splat() ? 0 : static_cast<size_t>(i) * width);
    std::copy(from, from + width, data.data() + static_cast<size_t>(i) * width);
  }
  return Literal::Array(std::move(shape), Bytes::FromVector(std::move(data)));
}

void NameValue(const Value& value, const Shape& stated,
               std::vector<std::pair<std::string, Literal>>& named) {
  if (value.shape().IsToken()) return;
  if (!value.shape().IsTuple()) {
    Literal literal = LiteralFromValue(value);
    if (stated.IsArray() && !stated.bounds().empty()) literal = PaddedToBounds(literal, stated);
    named.emplace_back("out_" + std::to_string(named.size()), std::move(literal));
    return;
  }
  for (size_t i = 0; i < value.elements().size(); ++i)
    NameValue(value.elements()[i], i < stated.elements().size() ? stated.elements()[i] : Shape(),
              named);
}

}  // namespace

std::vector<Shape> FlattenParameters(const Computation& entry) {
  std::vector<Shape> shapes;
  for (const Instr* parameter : entry.parameters()) Flatten(parameter->shape(), shapes);
  return shapes;
}

Result<std::vector<Value>> ArgumentsFrom(const NpzFile& file, const Computation& entry) {
  return MakeArguments(entry, [&](int64_t number, const Shape& shape) -> Result<Value> {
    std::string name = "in_" + std::to_string(number);
    const Literal* stored = file.Find(name);
    if (stored == nullptr)
      return MakeError(ErrorCode::kMissingArray,
                       "npz: no array '" + name + "', which the program takes as " +
                           ToString(shape.WithoutLayout()),
                       {.file = file.path});
    TOK_TRY(Literal literal, FromCarrier(*stored, shape, name, file.path));
    return ValueFromLiteral(literal);
  });
}

Result<std::vector<Value>> DrawArguments(uint64_t seed, const Computation& entry) {
  return MakeArguments(entry, [&](int64_t number, const Shape& shape) {
    Random random(seed * 0x100000001b3u + static_cast<uint64_t>(number));
    return DrawArray(random, shape, number);
  });
}

std::vector<std::pair<std::string, Literal>> NameResults(const std::vector<Value>& results,
                                                         const Computation& entry) {
  std::vector<Shape> stated;
  Flatten(entry.root()->shape(), stated);
  std::vector<std::pair<std::string, Literal>> named;
  size_t next = 0;  // tokens are not among the stated
  for (const Value& result : results)
    NameValue(result, !result.shape().IsToken() && next < stated.size() ? stated[next++] : Shape(),
              named);
  return named;
}

}  // namespace tokamak
