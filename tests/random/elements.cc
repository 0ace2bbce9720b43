#include "random/elements.h"

#include <cmath>
#include <limits>

namespace tokamak::fuzz {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The smallest positive, the smallest normal and the largest number are those of the type.
double SpecialReal(Random& random, ElementType type) {
  static constexpr double kSpecials[] = {
      0.0,    -0.0,    1.0,    -1.0,   kNaN,  kInfinity, -kInfinity,     0.5,  2.0,  -2.0,
      3.0,    0.1,     1e-30,  -1e10,  127.5, 255.0,     -129.0,         1.5,  2.5,  -0.5,
      0x1p31, -0x1p31, 0x1p32, 0x1p63, 1e300, 0x1p-126,  0x1.fffffep127, 0.75, kNaN, -0.0,
  };
  const FloatFormat& format = FormatOf(type);
  switch (random.Below(12)) {
    case 0:
      return DecodeFloat(type, 1);
    case 1:
      return std::nextafter(1.0, 2.0) + std::ldexp(1.0, -format.mantissa_bits);
    case 2:
      return std::ldexp(1.0, 1 - format.bias);
    case 3:
      return std::ldexp(2.0 - std::ldexp(1.0, -format.mantissa_bits),
                        (1 << format.exponent_bits) - 2 - format.bias);
    default:
      return kSpecials[random.Below(std::size(kSpecials))];
  }
}

double DrawReal(Random& random, ElementType type, Mood mood, int64_t at) {
  double value = 0;
  switch (mood) {
    case Mood::kZeros:
      break;
    case Mood::kOnes:
      value = 1;
      break;
    case Mood::kIota:
      value = static_cast<double>(at);
      break;
    case Mood::kSmall:
      value = static_cast<double>(random.Between(-3, 4));
      break;
    case Mood::kOrdinary:
      value = random.Real() * 4 - 2;
      break;
    case Mood::kSplat:
    case Mood::kSpecial:
      value = random.Percent(60) ? SpecialReal(random, type) : random.Real() * 8 - 4;
  }
  return RoundToType(type, value);
}

template <typename T>
T DrawInteger(Random& random, ElementType type, Mood mood, int64_t at) {
  auto wrap = [&](int64_t value) {
    if constexpr (std::is_same_v<T, int64_t>) {
      return WrapSigned(type, value);
    } else {
      return WrapUnsigned(type, static_cast<uint64_t>(value));
    }
  };
  const int bits = InfoOf(type).bits;
  const int64_t least = INT64_MIN >> (64 - bits);
  switch (mood) {
    case Mood::kZeros:
      return 0;
    case Mood::kOnes:
      return 1;
    case Mood::kIota:
      return wrap(at);
    case Mood::kSmall:
      return wrap(random.Between(0, 4));
    case Mood::kOrdinary:
      return wrap(random.Between(-20, 40));
    case Mood::kSplat:
    case Mood::kSpecial:
      break;
  }
  switch (random.Below(10)) {
    case 0:
      return wrap(least);
    case 1:
      return wrap(-(least + 1));
    case 2:
      return wrap(-1);
    case 3:
      return wrap(random.Between(bits - 1, bits + 1));  // shifts by the width
    case 4:
      return wrap(static_cast<int64_t>(random.Next()));
    case 5:
      return wrap(static_cast<int64_t>(uint64_t{1} << random.Below(64)));
    default:
      return wrap(random.Between(-2, 9));
  }
}

template <typename T>
T DrawElement(Random& random, ElementType type, Mood mood, int64_t at) {
  if constexpr (std::is_same_v<T, Complex>) {
    ElementType part = RealPartOf(type);
    double real = DrawReal(random, part, mood, at);
    double imaginary = mood == Mood::kZeros || mood == Mood::kOnes || mood == Mood::kIota
                           ? 0
                           : DrawReal(random, part, mood, at);
    return {real, imaginary};
  } else if constexpr (std::is_same_v<T, double>) {
    return DrawReal(random, type, mood, at);
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    if (mood == Mood::kZeros) return 0;
    if (mood == Mood::kOnes) return 1;
    return mood == Mood::kIota ? static_cast<uint8_t>(at & 1)
                               : static_cast<uint8_t>(random.Below(2));
  } else {
    return DrawInteger<T>(random, type, mood, at);
  }
}

Mood InputMood(Random& random, const Shape& shape, bool ordinary) {
  if (ordinary) return random.Percent(15) ? DrawMood(random) : Mood::kOrdinary;
  // Scalars are often indices and sizes: small ones are the interesting cases.
  if (shape.rank() == 0 && IsInteger(shape.type()) && random.Percent(60)) return Mood::kSmall;
  return random.Percent(70) ? Mood::kSpecial : DrawMood(random);
}

// `number`: the index of the next array, tuples flattened depth first. Each array has its own
// numbers, so that they do not change when a pass unpacks a tuple.
Value DrawInput(uint64_t seed, const Shape& shape, bool ordinary, uint64_t& number) {
  if (shape.IsToken()) return Value::Token();
  if (shape.IsArray()) {
    Random random(seed * 0x100000001b3u + number++ * 2 + (ordinary ? 1 : 0));
    Mood mood = InputMood(random, shape, ordinary);
    return DrawElements(random, shape, mood);
  }
  std::vector<Value> elements;
  for (const Shape& element : shape.elements())
    elements.push_back(DrawInput(seed, element, ordinary, number));
  return Value::Tuple(std::move(elements));
}

}  // namespace

Mood DrawMood(Random& random) {
  int64_t dice = random.Below(100);
  if (dice < 15) return Mood::kZeros;
  if (dice < 28) return Mood::kOnes;
  if (dice < 50) return Mood::kSplat;
  if (dice < 60) return Mood::kIota;
  if (dice < 74) return Mood::kSmall;
  if (dice < 88) return Mood::kOrdinary;
  return Mood::kSpecial;
}

Value DrawElements(Random& random, const Shape& shape, Mood mood) {
  Shape plain = shape.WithoutLayout();
  return DispatchStorage(plain.type(), [&]<typename T>() -> Value {
    std::vector<T> elements(static_cast<size_t>(plain.ElementCount()));
    int64_t from = mood == Mood::kIota && random.Percent(30) ? random.Between(-3, 3) : 0;
    int64_t step = mood == Mood::kIota && random.Percent(30) ? random.Between(-1, 2) : 1;
    for (size_t i = 0; i < elements.size(); ++i) {
      if (mood == Mood::kSplat && i > 0) {
        elements[i] = elements[0];
      } else {
        elements[i] =
            DrawElement<T>(random, plain.type(), mood, from + step * static_cast<int64_t>(i));
      }
    }
    return Value::Array(plain, std::move(elements));
  });
}

std::vector<Value> DrawInputs(uint64_t seed, const Computation& entry, bool ordinary) {
  std::vector<Value> inputs;
  uint64_t number = 0;
  for (const Instr* parameter : entry.parameters())
    inputs.push_back(DrawInput(seed, parameter->shape(), ordinary, number));
  return inputs;
}

}  // namespace tokamak::fuzz
