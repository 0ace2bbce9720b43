// rng-bit-generator, bit-compatible with XLA; rng and the hidden state, for which any generator is
// correct (docs/choices/2026-11-15-interpreter-numerics.md).

#include <algorithm>
#include <cmath>
#include <numbers>

#include "interp/counter_random.h"
#include "interp/evaluators.h"
#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

std::array<uint32_t, 2> Halves(uint64_t x) {
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
}
uint64_t Whole(uint32_t low, uint32_t high) {
  return low | static_cast<uint64_t>(high) << 32;
}

// The bits of each element, and the state after them.
struct RandomBits {
  std::vector<uint64_t> state, bits;
};

// Each counter gives two words: the halves of a 64-bit element. For narrower elements, the first
// words fill the even and the second words the odd coordinates of one dimension: the first one of
// even size, or else the largest one, whose last odd coordinate is dropped.
RandomBits ThreeFryBits(std::vector<uint64_t> state, const Dims& dims, int width) {
  const uint64_t first = state[1];
  const std::array<uint32_t, 2> key = Halves(state[0]);
  const size_t count = static_cast<size_t>(ProductOf(dims));
  RandomBits result{std::move(state), std::vector<uint64_t>(count)};
  if (width == 64) {
    for (size_t i = 0; i < count; ++i) {
      auto [low, high] = ThreeFry2x32(Halves(first + i), key);
      result.bits[i] = Whole(low, high);
    }
    result.state[1] = first + count;
    return result;
  }
  if (dims.empty()) {
    result.bits[0] = ThreeFry2x32(Halves(first), key)[0];
    result.state[1] = first + 1;
    return result;
  }
  size_t split = dims.size();
  for (size_t d = 0; d < dims.size() && split == dims.size(); ++d)
    if (dims[d] % 2 == 0) split = d;
  if (split == dims.size())
    split = static_cast<size_t>(std::max_element(dims.begin(), dims.end()) - dims.begin());
  Dims half = dims;
  half[split] = (dims[split] + 1) / 2;
  Dims strides = StridesOf(dims), index(dims.size(), 0);
  const uint64_t half_count = static_cast<uint64_t>(ProductOf(half));
  for (uint64_t i = 0; i < half_count; ++i, NextIndex(index, half)) {
    std::array<uint32_t, 2> words = ThreeFry2x32(Halves(first + i), key);
    for (int64_t side = 0; side < 2; ++side) {
      int64_t coordinate = 2 * index[split] + side, offset = 0;
      if (coordinate >= dims[split]) continue;
      for (size_t d = 0; d < dims.size(); ++d)
        offset += (d == split ? coordinate : index[d]) * strides[d];
      result.bits[static_cast<size_t>(offset)] = words[static_cast<size_t>(side)];
    }
  }
  result.state[1] = first + half_count;
  return result;
}

// The state is a key and a 128-bit counter (low word first); in a state of two words the key is
// also the upper half of the counter. Each counter gives four words.
RandomBits PhiloxBits(std::vector<uint64_t> state, const Dims& dims, int width) {
  const bool is_short = state.size() < 3;
  const uint64_t low = state[1], high = is_short ? state[0] : state[2];
  const std::array<uint32_t, 2> key = Halves(state[0]);
  const size_t count = static_cast<size_t>(ProductOf(dims));
  const size_t words = width == 64 ? 2 * count : count;
  RandomBits result{std::move(state), std::vector<uint64_t>(count)};
  const uint64_t blocks = (words + 3) / 4;
  for (uint64_t block = 0; block < blocks; ++block) {
    uint64_t counter = low + block;
    std::array<uint32_t, 2> lower = Halves(counter), upper = Halves(high + (counter < low ? 1 : 0));
    std::array<uint32_t, 4> random = Philox4x32({lower[0], lower[1], upper[0], upper[1]}, key);
    for (size_t w = 0; w < 4 && block * 4 + w < words; ++w) {
      size_t at = block * 4 + w;
      if (width == 64) {
        result.bits[at / 2] |= static_cast<uint64_t>(random[w]) << (at % 2 * 32);
      } else {
        result.bits[at] = random[w];
      }
    }
  }
  result.state[1] = low + blocks;
  if (!is_short) result.state[2] = high + (result.state[1] < low ? 1 : 0);
  return result;
}

// An array of elements with the given bits, lowest bits first.
Value FromBits(const Shape& shape, const std::vector<uint64_t>& bits) {
  ElementType type = shape.type();
  int width = InfoOf(type).bits;
  uint64_t mask = width < 64 ? (uint64_t{1} << width) - 1 : ~uint64_t{0};
  return DispatchStorage(type, [&]<typename T>() {
    std::vector<T> elements(bits.size());
    for (size_t i = 0; i < bits.size(); ++i) {
      uint64_t own = bits[i] & mask;
      if constexpr (std::is_same_v<T, double>) {
        elements[i] = DecodeFloat(type, own);
      } else if constexpr (std::is_same_v<T, Complex>) {
        elements[i] = Complex();
      } else if constexpr (std::is_same_v<T, int64_t>) {
        elements[i] = WrapSigned(type, static_cast<int64_t>(own));
      } else {
        elements[i] = static_cast<T>(own);
      }
    }
    return Value::Array(shape, std::move(elements));
  });
}

// Philox with a fixed key: a process gives the same numbers every time. The counter advances from
// op to op, so two rng ops differ.
class OwnRandom {
 public:
  double Uniform() { return std::ldexp(static_cast<double>(Next() >> 11), -53); }
  double Normal() {
    double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }
  uint64_t Next() {
    static thread_local uint64_t counter = 0;
    std::array<uint32_t, 2> at = Halves(counter++);
    std::array<uint32_t, 4> words = Philox4x32({at[0], at[1], 0, 0}, {0x746F6B61, 0x6D616B});
    return Whole(words[0], words[1]);
  }
};

template <typename T>
T DrawUniform(OwnRandom& random, ElementType type, T from, T to) {
  if constexpr (std::is_same_v<T, double>) {
    double value = RoundToType(type, from + (to - from) * random.Uniform());
    return value < to ? value : from;  // rounding must not reach the open end
  } else if constexpr (std::is_same_v<T, Complex>) {
    return from + (to - from) * random.Uniform();
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(random.Next() & 1);
  } else {
    uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    return from + static_cast<T>(range > 0 ? random.Next() % range : 0);
  }
}

}  // namespace

Result<Value> EvalRngBitGenerator(const Instr& instr, std::span<const Value> operands, Context&) {
  const Value& state = operands[0];
  // An array result is the bits alone, as generated kernels use it.
  const bool has_state = instr.shape().IsTuple();
  if ((has_state && instr.shape().elements().size() != 2) || state.type() != ElementType::kU64 ||
      state.ElementCount() < 2) {
    return Unsupported(instr, "takes a state of u64[2] or u64[3], not " + ToString(state.shape()));
  }
  const Shape& shape = has_state ? instr.shape().elements()[1] : instr.shape();
  int width = InfoOf(shape.type()).bits;
  if (IsComplex(shape.type())) return Unsupported(instr, "complex results are not supported");
  TOK_RETURN_IF_ERROR(CheckFits(instr, shape.type(), shape.dims()));
  std::span<const uint64_t> words = state.Data<uint64_t>();
  std::vector<uint64_t> before(words.begin(), words.end());
  bool three_fry = instr.attrs<RngBitGeneratorAttrs>().algorithm == RngAlgorithm::kThreeFry;
  RandomBits random = three_fry ? ThreeFryBits(std::move(before), shape.dims(), width)
                                : PhiloxBits(std::move(before), shape.dims(), width);
  Value bits = FromBits(ResultShape(shape, shape.dims()), random.bits);
  if (!has_state) return bits;
  std::vector<Value> results;
  results.push_back(Value::Array(state.shape(), std::move(random.state)));
  results.push_back(std::move(bits));
  return Value::Tuple(std::move(results));
}

Result<Value> EvalThreefry2x32(const Instr& instr, std::span<const Value> operands, Context&) {
  TOK_RETURN_IF_ERROR(CheckSameDims(instr, operands));
  TOK_RETURN_IF_ERROR(CheckFits(instr, ElementType::kU64, operands[0].dims()));
  auto word = [&](size_t operand, size_t i) {
    return static_cast<uint32_t>(operands[operand].Data<uint64_t>()[i]);
  };
  std::vector<uint64_t> pairs(static_cast<size_t>(operands[0].ElementCount()));
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto [first, second] = ThreeFry2x32({word(2, i), word(3, i)}, {word(0, i), word(1, i)});
    pairs[i] = Whole(second, first);
  }
  return Value::Array(ResultShape(instr, operands[0].dims()), std::move(pairs));
}

// JAX's GPU kernels: key and counter of one shape; returns both words.
Result<Value> EvalThreefryCall(const Instr& instr, std::span<const Value> operands, Context&) {
  const Shape& shape = instr.shape();
  bool fits = operands.size() == 4 && shape.IsTuple() && shape.elements().size() == 2;
  for (const Value& operand : operands) fits = fits && operand.shape().IsArray();
  for (const Value& operand : operands)
    fits = fits && operand.type() == ElementType::kU32 && operand.dims() == operands[0].dims();
  for (const Shape& word : shape.IsTuple() ? shape.elements() : std::vector<Shape>())
    fits = fits && word.IsArray() && word.type() == ElementType::kU32 &&
           word.dims() == operands[0].dims();
  if (!fits) return Unsupported(instr, "threefry expects four u32 arrays and returns two");
  std::vector<uint64_t> words[2];
  for (size_t i = 0; i < static_cast<size_t>(operands[0].ElementCount()); ++i) {
    std::array<uint32_t, 4> in{};
    for (size_t k = 0; k < 4; ++k) in[k] = static_cast<uint32_t>(operands[k].Data<uint64_t>()[i]);
    std::array<uint32_t, 2> out = ThreeFry2x32({in[2], in[3]}, {in[0], in[1]});
    for (size_t k = 0; k < 2; ++k) words[k].push_back(out[k]);
  }
  std::vector<Value> results;
  for (std::vector<uint64_t>& word : words)
    results.push_back(
        Value::Array(Shape::Array(ElementType::kU32, operands[0].dims()), std::move(word)));
  return Value::Tuple(std::move(results));
}

Result<Value> EvalRng(const Instr& instr, std::span<const Value> operands, Context& context) {
  // StableHLO gives the shape as a third operand.
  Dims dims = operands.size() > 2 ? IntsOf(operands[2]) : instr.shape().dims();
  ElementType type = instr.shape().type();
  TOK_RETURN_IF_ERROR(CheckFits(instr, type, dims));
  bool normal = instr.attrs<RngAttrs>().distribution == RngDistribution::kNormal;
  OwnRandom random;
  return DispatchStorage(type, [&]<typename T>() -> Result<Value> {
    T a = operands[0].Data<T>()[0], b = operands[1].Data<T>()[0];
    std::vector<T> elements(static_cast<size_t>(ProductOf(dims)));
    for (T& e : elements) {
      if constexpr (std::is_same_v<T, double>) {
        e = normal ? context.Round(type, a + b * random.Normal()) : DrawUniform(random, type, a, b);
      } else {
        e = DrawUniform(random, type, a, b);
      }
    }
    return Value::Array(ResultShape(instr, dims), std::move(elements));
  });
}

// The state before the step, as a 128-bit number (low word first).
Result<Value> EvalRngGetAndUpdateState(const Instr& instr, std::span<const Value>, Context&) {
  static thread_local std::array<uint64_t, 2> state = {0x7012395, 0};
  const Shape& shape = instr.shape();
  if (shape.type() != ElementType::kU64) return Unsupported(instr, "the result must be u64");
  std::vector<uint64_t> words(static_cast<size_t>(shape.ElementCount()), 0);
  for (size_t i = 0; i < std::min<size_t>(words.size(), 2); ++i) words[i] = state[i];
  uint64_t before = state[0];
  state[0] += static_cast<uint64_t>(instr.attrs<RngStateAttrs>().delta);
  state[1] += state[0] < before ? 1 : 0;
  return Value::Array(ResultShape(instr, shape.dims()), std::move(words));
}

}  // namespace tokamak
