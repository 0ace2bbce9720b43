#include "gen/random_bits.h"

#include <algorithm>

namespace tokamak {
namespace {

// Bits of a word, by definition of Philox4x32 and ThreeFry2x32.
constexpr int kWordBits = 32;

Scalar Low(Scalar x) {
  return x.As(ScalarType::kU32);
}
Scalar High(Scalar x) {
  return (x >> x.Like(kWordBits)).As(ScalarType::kU32);
}
Scalar Whole(Scalar low, Scalar high) {
  Scalar wide = high.As(ScalarType::kU64);
  return low.As(ScalarType::kU64) | wide << wide.Like(kWordBits);
}

bool IsWide(const Instr& random) {
  return InfoOf(random.shape().type()).bits == 64;
}

// The element with these bits, from the lowest.
Element FromBits(KernelBuilder& b, ElementType type, Scalar bits) {
  if (type == ElementType::kPred) return {(bits & bits.Like(1)) != bits.Like(0), {}};
  ScalarType stored = StorageType(type);
  return FromStorage(b, type, {bits.As(BitsTypeOf(stored)).BitsAs(stored), {}});
}

std::array<Scalar, kPhiloxWords> PhiloxOf(const RandomStateWords& state, Scalar block) {
  Scalar low = state[1], counter = low + block.As(ScalarType::kU64);
  Scalar upper = state[2] + (counter < low).As(ScalarType::kU64);
  return PhiloxWords({Low(counter), High(counter), Low(upper), High(upper)},
                     {Low(state[0]), High(state[0])});
}

Element PhiloxAt(KernelBuilder& b, const Instr& random, const RandomStateWords& state,
                 const Coordinates& at) {
  Scalar linear = Linearized(b, at, random.shape().dims());
  Scalar per = b.Index(ElementsPerPhiloxBlock(random));
  Scalar which = linear % per;
  auto [word0, word1, word2, word3] = PhiloxOf(state, linear / per);
  auto odd = (which & b.Index(1)) != b.Index(0);
  if (IsWide(random)) {
    Scalar low = Choose(odd, word2, word0), high = Choose(odd, word3, word1);
    return FromBits(b, random.shape().type(), Whole(low, high));
  }
  Scalar first = Choose(odd, word1, word0), second = Choose(odd, word3, word2);
  return FromBits(b, random.shape().type(), Choose(which < b.Index(2), first, second));
}

Element ThreefryAt(KernelBuilder& b, const Instr& random, const RandomStateWords& state,
                   const Coordinates& at) {
  const Dims& dims = random.shape().dims();
  auto words_of = [&](Scalar index) {
    Scalar counter = state[1] + index.As(ScalarType::kU64);
    return ThreefryWords({Low(counter), High(counter)}, {Low(state[0]), High(state[0])});
  };
  ElementType type = random.shape().type();
  if (IsWide(random)) {
    auto [low, high] = words_of(Linearized(b, at, dims));
    return FromBits(b, type, Whole(low, high));
  }
  if (dims.empty()) return FromBits(b, type, words_of(b.Index(0))[0]);
  // The two words of a counter are halves along the first dimension of even size, otherwise along
  // the longest.
  auto even = std::find_if(dims.begin(), dims.end(), [](int64_t d) { return d % 2 == 0; });
  if (even == dims.end()) even = std::max_element(dims.begin(), dims.end());
  auto split = static_cast<size_t>(even - dims.begin());
  Dims half = dims;
  half[split] = (dims[split] + 1) / 2;
  Coordinates position = at;
  position[split] = at[split] / b.Index(2);
  auto [first, second] = words_of(Linearized(b, position, half));
  Scalar odd = at[split] % b.Index(2) != b.Index(0);
  return FromBits(b, type, Choose(odd, second, first));
}

}  // namespace

std::optional<std::string> WhyNoRandomBitsCode(const Instr& random) {
  if (!IsPlainArray(random.shape()) || random.shape().ElementCount() == 0)
    return "rng-bit-generator: its result is not an array of static shape";
  ElementType type = random.shape().type();
  if (IsComplex(type) || (InfoOf(type).bits < 8 && type != ElementType::kPred))
    return "rng-bit-generator: its elements are not whole bytes";
  const Shape& state = random.operand(0)->shape();
  if (!IsPlainArray(state) || state.type() != ElementType::kU64 || state.rank() != 1 ||
      state.dim(0) < 2)
    return "rng-bit-generator: its state does not have two or three words";
  return std::nullopt;
}

bool IsPhilox(const Instr& random) {
  return random.attrs<RngBitGeneratorAttrs>().algorithm != RngAlgorithm::kThreeFry;
}

int64_t ElementsPerPhiloxBlock(const Instr& random) {
  return IsWide(random) ? 2 : static_cast<int64_t>(kPhiloxWords);
}

std::array<Element, kPhiloxWords> PhiloxBlock(KernelBuilder& b, const Instr& random,
                                              const RandomStateWords& state, Scalar block) {
  std::array<Scalar, kPhiloxWords> words = PhiloxOf(state, block);
  ElementType type = random.shape().type();
  std::array<Element, kPhiloxWords> elements;
  if (IsWide(random)) {
    for (size_t i = 0; i < 2; ++i)
      elements[i] = FromBits(b, type, Whole(words[2 * i], words[2 * i + 1]));
  } else {
    for (size_t i = 0; i < kPhiloxWords; ++i) elements[i] = FromBits(b, type, words[i]);
  }
  return elements;
}

Element RandomBitsAt(KernelBuilder& b, const Instr& random, const RandomStateWords& state,
                     const Coordinates& at) {
  return IsPhilox(random) ? PhiloxAt(b, random, state, at) : ThreefryAt(b, random, state, at);
}

}  // namespace tokamak
