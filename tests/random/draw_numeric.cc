// Transforms, factorizations and normalisation; random bits and integer chains.
#include <algorithm>

#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

bool DrawFft(Draft& draft) {
  FftType type =
      draft.random().Pick({FftType::kFft, FftType::kIfft, FftType::kRfft, FftType::kIrfft});
  int64_t length = draft.random().Between(1, draft.plot().size.Of(6, 70)),
          rows = draft.random().Between(1, 3);
  bool half = type == FftType::kIrfft;
  Shape shape = Shape::Array(type == FftType::kRfft ? ElementType::kF32 : ElementType::kC64,
                             {rows, half ? length / 2 + 1 : length});
  Instr* x = draft.Like(shape);
  return draft.Put(Op::kFft, {x}, FftAttrs{type, {length}}) != nullptr;
}

Instr* SquareMatrix(Draft& draft, ElementType type, int64_t n) {
  // x times its transpose, so that there is a factor now and then.
  Instr* x = draft.Like(Shape::Array(type, {n, n}));
  if (draft.random().Percent(40)) return x;
  DotAttrs attrs{{}, {}, {1}, {1}, {}, {}, {}, {}};
  return draft.Put(Op::kDot, {x, x}, attrs);
}

ElementType WideReal(Draft& draft) {
  return draft.random().Percent(60) ? ElementType::kF32 : ElementType::kF64;
}

bool DrawCholesky(Draft& draft) {
  ElementType type = WideReal(draft);
  Instr* a = SquareMatrix(draft, type, draft.random().Between(1, draft.plot().size.Of(3, 20)));
  return draft.Put(Op::kCholesky, {a}, CholeskyAttrs{draft.random().Percent(50)}) != nullptr;
}

bool DrawTriangularSolve(Draft& draft) {
  ElementType type = WideReal(draft);
  int64_t n = draft.random().Between(1, 3), m = draft.random().Between(1, 3);
  Instr* a = draft.Like(Shape::Array(type, {n, n}));
  bool left = draft.random().Percent(50);
  Instr* b = draft.Like(Shape::Array(type, left ? Dims{n, m} : Dims{m, n}));
  TriangularSolveAttrs attrs{left, draft.random().Percent(50), draft.random().Percent(25),
                             draft.random().Pick({Transpose::kNone, Transpose::kTranspose})};
  return draft.Put(Op::kTriangularSolve, {a, b}, attrs) != nullptr;
}

bool DrawBatchNorm(Draft& draft) {
  ElementType type = draft.AnyType(kReal);
  Instr* x = draft.AnyThat([&](const Shape& s) { return s.rank() > 0 && s.type() == type; });
  if (x == nullptr) return false;
  BatchNormAttrs attrs{draft.random().Pick({0.001, 0.5, 0.0}),
                       draft.random().Below(x->shape().rank())};
  attrs.epsilon = static_cast<float>(attrs.epsilon);
  const Shape shape = x->shape();
  Shape vector = Shape::Array(type, {shape.dim(static_cast<size_t>(attrs.feature_index))});
  Instr* scale = draft.Like(vector);
  Instr* offset = draft.Like(vector);
  Instr* several = nullptr;
  switch (draft.random().Below(3)) {
    case 0:
      several = draft.Put(Op::kBatchNormTraining, {x, scale, offset}, attrs);
      break;
    case 1: {
      Instr* mean = draft.Like(vector);
      Instr* variance = draft.Like(vector);
      return draft.Put(Op::kBatchNormInference, {x, scale, offset, mean, variance}, attrs) !=
             nullptr;
    }
    default: {
      Instr* variance = draft.Like(vector);
      several =
          draft.Put(Op::kBatchNormGrad, {x, scale, offset, variance, draft.Like(shape)}, attrs);
    }
  }
  if (several == nullptr) return false;
  draft.Element(several, 0);
  draft.Element(several, draft.random().Between(1, 2));
  return true;
}

constexpr Drawer kNumericDrawers[] = {
    {"fft", 4, 2, DrawFft},
    {"cholesky", 3, 3, DrawCholesky},
    {"triangular-solve", 3, 3, DrawTriangularSolve},
    {"batch-norm", 6, 8, DrawBatchNorm},
};

// ---- random bits

bool DrawRngBits(Draft& draft) {
  bool philox = draft.random().Percent(40);
  Shape state = Shape::Array(ElementType::kU64, {philox ? draft.random().Between(2, 3) : 2});
  Instr* seed = draft.Like(state);
  ElementType type = draft.random().Pick({ElementType::kU32, ElementType::kU32, ElementType::kU64,
                                          ElementType::kU8, ElementType::kU16});
  Shape bits = Shape::Array(type, draft.AnyDims());
  if (bits.ElementCount() > draft.plot().size.max_elements) return false;
  RngBitGeneratorAttrs attrs{philox ? RngAlgorithm::kPhilox : RngAlgorithm::kThreeFry};
  Instr* both =
      draft.Put(Op::kRngBitGenerator, {seed}, attrs, {.shape = Shape::Tuple({state, bits})});
  if (both == nullptr) return false;
  draft.Element(both, 1);
  if (draft.random().Percent(50)) draft.Element(both, 0);
  return true;
}

bool DrawThreefry(Draft& draft) {
  Shape shape = Shape::Array(ElementType::kU32, draft.AnyDims());
  if (shape.ElementCount() > draft.plot().size.max_elements) return false;
  std::vector<Instr*> words;
  for (int i = 0; i < 4; ++i) words.push_back(draft.Like(shape));
  return draft.Put(Op::kThreefry2x32, words) != nullptr;
}

// Adds, rotations and exclusive ors on words, as threefry mixes its counter.
bool DrawRotations(Draft& draft) {
  Shape shape = Shape::Array(ElementType::kU32, draft.AnyDims());
  if (shape.ElementCount() > draft.plot().size.max_elements) return false;
  Instr* x = draft.Like(shape);
  Instr* y = draft.Like(shape);
  for (int64_t round = draft.random().Between(1, 2); round > 0; --round) {
    int64_t left = draft.random().Pick({13, 15, 26, 6, 17, 29, 16, 24});
    int64_t right = draft.random().Percent(90) ? 32 - left : left;
    x = draft.Put(Op::kAdd, {x, y});
    Instr* by_left = draft.Spread(draft.Integer(ElementType::kU32, left), shape.dims());
    Instr* by_right = draft.Spread(draft.Integer(ElementType::kU32, right), shape.dims());
    Instr* high = draft.Put(Op::kShiftLeft, {y, by_left});
    Instr* low = draft.Put(Op::kShiftRightLogical, {y, by_right});
    Instr* rotated = draft.Put(Op::kOr, {high, low});
    y = draft.Put(Op::kXor, {x, rotated});
  }
  return y != nullptr;
}

// Uniform numbers of bits: the mantissa under the exponent of 1, minus 1.
bool DrawUniform(Draft& draft) {
  Instr* bits = draft.AnyThat([](const Shape& s) { return s.type() == ElementType::kU32; });
  if (bits == nullptr) return false;
  const Shape shape = bits->shape();
  Instr* shift = draft.Spread(draft.Integer(ElementType::kU32, 9), shape.dims());
  Instr* one = draft.Spread(draft.Integer(ElementType::kU32, 0x3f800000), shape.dims());
  Instr* mantissa = draft.Put(Op::kShiftRightLogical, {bits, shift});
  Instr* word = draft.Put(Op::kOr, {mantissa, one});
  Shape real = shape.WithType(ElementType::kF32);
  Instr* above = draft.Put(Op::kBitcastConvert, {word}, {}, {.shape = real});
  return draft.Put(Op::kSubtract, {above, draft.Number(real, 1)}) != nullptr;
}

constexpr Drawer kRandomDrawers[] = {
    {"rng-bit-generator", 12, 4, DrawRngBits},
    {"rotations", 10, 16, DrawRotations},
    {"threefry2x32", 4, 5, DrawThreefry},
    {"uniform", 8, 9, DrawUniform},
};

}  // namespace

std::span<const Drawer> NumericDrawers() {
  return kNumericDrawers;
}

std::span<const Drawer> RandomDrawers() {
  return kRandomDrawers;
}

}  // namespace tokamak::fuzz
