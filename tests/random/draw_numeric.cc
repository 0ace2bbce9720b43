// Transforms, factorizations and normalisation; random bits and integer chains.
#include <algorithm>

#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

bool DrawFft(ProgramBuilder& builder) {
  FftType type =
      builder.random().Pick({FftType::kFft, FftType::kIfft, FftType::kRfft, FftType::kIrfft});
  int64_t length = builder.random().Between(1, builder.program_state().size.Of(6, 70)),
          rows = builder.random().Between(1, 3);
  bool half = type == FftType::kIrfft;
  Shape shape = Shape::Array(type == FftType::kRfft ? ElementType::kF32 : ElementType::kC64,
                             {rows, half ? length / 2 + 1 : length});
  Instr* x = builder.Like(shape);
  return builder.Put(Op::kFft, {x}, FftAttrs{type, {length}}) != nullptr;
}

Instr* SquareMatrix(ProgramBuilder& builder, ElementType type, int64_t n) {
  // x times its transpose, so that some inputs have a factorization.
  Instr* x = builder.Like(Shape::Array(type, {n, n}));
  if (builder.random().Percent(40)) return x;
  DotAttrs attrs{{}, {}, {1}, {1}, {}, {}, {}, {}};
  return builder.Put(Op::kDot, {x, x}, attrs);
}

ElementType WideReal(ProgramBuilder& builder) {
  return builder.random().Percent(60) ? ElementType::kF32 : ElementType::kF64;
}

bool DrawCholesky(ProgramBuilder& builder) {
  ElementType type = WideReal(builder);
  Instr* a = SquareMatrix(builder, type,
                          builder.random().Between(1, builder.program_state().size.Of(3, 20)));
  return builder.Put(Op::kCholesky, {a}, CholeskyAttrs{builder.random().Percent(50)}) != nullptr;
}

bool DrawTriangularSolve(ProgramBuilder& builder) {
  ElementType type = WideReal(builder);
  int64_t n = builder.random().Between(1, 3), m = builder.random().Between(1, 3);
  Instr* a = builder.Like(Shape::Array(type, {n, n}));
  bool left = builder.random().Percent(50);
  Instr* b = builder.Like(Shape::Array(type, left ? Dims{n, m} : Dims{m, n}));
  TriangularSolveAttrs attrs{left, builder.random().Percent(50), builder.random().Percent(25),
                             builder.random().Pick({Transpose::kNone, Transpose::kTranspose})};
  return builder.Put(Op::kTriangularSolve, {a, b}, attrs) != nullptr;
}

bool DrawBatchNorm(ProgramBuilder& builder) {
  ElementType type = builder.AnyType(kReal);
  Instr* x = builder.AnyThat([&](const Shape& s) { return s.rank() > 0 && s.type() == type; });
  if (x == nullptr) return false;
  BatchNormAttrs attrs{builder.random().Pick({0.001, 0.5, 0.0}),
                       builder.random().Below(x->shape().rank())};
  attrs.epsilon = static_cast<float>(attrs.epsilon);
  const Shape shape = x->shape();
  Shape vector = Shape::Array(type, {shape.dim(static_cast<size_t>(attrs.feature_index))});
  Instr* scale = builder.Like(vector);
  Instr* offset = builder.Like(vector);
  Instr* several = nullptr;
  switch (builder.random().Below(3)) {
    case 0:
      several = builder.Put(Op::kBatchNormTraining, {x, scale, offset}, attrs);
      break;
    case 1: {
      Instr* mean = builder.Like(vector);
      Instr* variance = builder.Like(vector);
      return builder.Put(Op::kBatchNormInference, {x, scale, offset, mean, variance}, attrs) !=
             nullptr;
    }
    default: {
      Instr* variance = builder.Like(vector);
      several =
          builder.Put(Op::kBatchNormGrad, {x, scale, offset, variance, builder.Like(shape)}, attrs);
    }
  }
  if (several == nullptr) return false;
  builder.Element(several, 0);
  builder.Element(several, builder.random().Between(1, 2));
  return true;
}

constexpr Drawer kNumericDrawers[] = {
    {"fft", 4, 2, DrawFft},
    {"cholesky", 3, 3, DrawCholesky},
    {"triangular-solve", 3, 3, DrawTriangularSolve},
    {"batch-norm", 6, 8, DrawBatchNorm},
};

// ---- random bits

bool DrawRngBits(ProgramBuilder& builder) {
  bool philox = builder.random().Percent(40);
  Shape state = Shape::Array(ElementType::kU64, {philox ? builder.random().Between(2, 3) : 2});
  Instr* seed = builder.Like(state);
  ElementType type = builder.random().Pick({ElementType::kU32, ElementType::kU32, ElementType::kU64,
                                            ElementType::kU8, ElementType::kU16});
  Shape bits = Shape::Array(type, builder.AnyDims());
  if (bits.ElementCount() > builder.program_state().size.max_elements) return false;
  RngBitGeneratorAttrs attrs{philox ? RngAlgorithm::kPhilox : RngAlgorithm::kThreeFry};
  Instr* both =
      builder.Put(Op::kRngBitGenerator, {seed}, attrs, {.shape = Shape::Tuple({state, bits})});
  if (both == nullptr) return false;
  builder.Element(both, 1);
  if (builder.random().Percent(50)) builder.Element(both, 0);
  return true;
}

bool DrawThreefry(ProgramBuilder& builder) {
  Shape shape = Shape::Array(ElementType::kU32, builder.AnyDims());
  if (shape.ElementCount() > builder.program_state().size.max_elements) return false;
  std::vector<Instr*> words;
  for (int i = 0; i < 4; ++i) words.push_back(builder.Like(shape));
  return builder.Put(Op::kThreefry2x32, words) != nullptr;
}

// Adds, rotations and exclusive ors on words, as threefry mixes its counter.
bool DrawRotations(ProgramBuilder& builder) {
  Shape shape = Shape::Array(ElementType::kU32, builder.AnyDims());
  if (shape.ElementCount() > builder.program_state().size.max_elements) return false;
  Instr* x = builder.Like(shape);
  Instr* y = builder.Like(shape);
  for (int64_t iteration = builder.random().Between(1, 2); iteration > 0; --iteration) {
    int64_t left = builder.random().Pick({13, 15, 26, 6, 17, 29, 16, 24});
    int64_t right = builder.random().Percent(90) ? 32 - left : left;
    x = builder.Put(Op::kAdd, {x, y});
    Instr* by_left = builder.BroadcastTo(builder.Integer(ElementType::kU32, left), shape.dims());
    Instr* by_right = builder.BroadcastTo(builder.Integer(ElementType::kU32, right), shape.dims());
    Instr* high = builder.Put(Op::kShiftLeft, {y, by_left});
    Instr* low = builder.Put(Op::kShiftRightLogical, {y, by_right});
    Instr* rotated = builder.Put(Op::kOr, {high, low});
    y = builder.Put(Op::kXor, {x, rotated});
  }
  return y != nullptr;
}

// Uniform numbers from bits: the mantissa with the exponent of 1, minus 1.
bool DrawUniform(ProgramBuilder& builder) {
  Instr* bits = builder.AnyThat([](const Shape& s) { return s.type() == ElementType::kU32; });
  if (bits == nullptr) return false;
  const Shape shape = bits->shape();
  Instr* shift = builder.BroadcastTo(builder.Integer(ElementType::kU32, 9), shape.dims());
  Instr* one = builder.BroadcastTo(builder.Integer(ElementType::kU32, 0x3f800000), shape.dims());
  Instr* mantissa = builder.Put(Op::kShiftRightLogical, {bits, shift});
  Instr* word = builder.Put(Op::kOr, {mantissa, one});
  Shape real = shape.WithType(ElementType::kF32);
  Instr* above = builder.Put(Op::kBitcastConvert, {word}, {}, {.shape = real});
  return builder.Put(Op::kSubtract, {above, builder.Number(real, 1)}) != nullptr;
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
