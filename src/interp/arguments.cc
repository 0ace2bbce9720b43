#include "interp/arguments.h"

#include "support/splitmix.h"

namespace tokamak {
namespace {

Result<Value> MakeValue(const Shape& shape, int64_t& number, ArraySource& source) {
  if (shape.IsToken()) return Value::Token();
  if (!shape.IsTuple()) return source.Array(number++, shape);
  std::vector<Value> elements;
  for (const Shape& element : shape.elements()) {
    TOK_TRY(Value value, MakeValue(element, number, source));
    elements.push_back(std::move(value));
  }
  return Value::Tuple(std::move(elements));
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
  constexpr int64_t kFreeDim = 3;  // size of an unbounded dynamic dimension (chosen: small)
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

class DrawnArrays final : public ArraySource {
 public:
  explicit DrawnArrays(uint64_t seed) : seed_(seed) {}
  Result<Value> Array(int64_t number, const Shape& shape) override {
    Random random(seed_ * 0x100000001b3u + static_cast<uint64_t>(number));
    return DrawArray(random, shape, number);
  }

 private:
  uint64_t seed_;
};

}  // namespace

Result<std::vector<Value>> MakeArguments(const Computation& entry, ArraySource& source) {
  std::vector<Value> arguments;
  int64_t number = 0;
  for (const Instr* parameter : entry.parameters()) {
    TOK_TRY(Value value, MakeValue(parameter->shape(), number, source));
    arguments.push_back(std::move(value));
  }
  return arguments;
}

Result<std::vector<Value>> DrawArguments(uint64_t seed, const Computation& entry) {
  DrawnArrays drawn(seed);
  return MakeArguments(entry, drawn);
}

}  // namespace tokamak
