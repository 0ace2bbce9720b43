// Uniform random numbers from random bits, as JAX generates them: the upper bits become the
// mantissa of a number in [1, 2), and 1 is subtracted.

#include <cmath>

#include "ir/compare_direction.h"
#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::c;
using m::x;
using enum CompareDirection;

struct Draw {
  Instr* bits = nullptr;  // unsigned; null if the pattern does not match
  int mantissa = 0;       // the upper `mantissa` bits are the number times 2^mantissa
};

// JAX generates other types with a different sequence of ops.
int MantissaOf(ElementType type) {
  return type == ElementType::kF32 ? 23 : type == ElementType::kF64 ? 52 : 0;
}

Draw DrawOf(const Instr* number) {
  int mantissa = MantissaOf(number->shape().type());
  if (mantissa == 0 || number->op() != Op::kAdd || RealOf(number->operand(1)) != -1.0) return {};
  const Instr* above = number->operand(0);
  if (above->op() != Op::kBitcastConvert) return {};
  const Instr* joined = above->operand(0);
  int width = InfoOf(number->shape().type()).bits;
  int64_t one = ((int64_t{1} << (width - mantissa - 2)) - 1) << mantissa;  // the bits of 1.0
  if (joined->op() != Op::kOr || InfoOf(joined->shape().type()).bits != width) return {};
  if (joined->shape().type() != ElementType::kU32 && joined->shape().type() != ElementType::kU64)
    return {};
  for (size_t i : {0, 1}) {
    const Instr* shifted = joined->operand(i);
    if (shifted->op() == Op::kShiftRightLogical && IntOf(joined->operand(1 - i)) == one &&
        IntOf(shifted->operand(1)) == width - mantissa)
      return {shifted->operand(0), mantissa};
  }
  return {};
}

bool IsDraw(const m::Match& match) {
  return DrawOf(match[x]).bits != nullptr;
}

// The number is n 2^-mantissa, where n is the upper bits: it is below c if n is below c 2^mantissa.
Instr* CompareBits(Editor& edit, const m::Match& match) {
  Draw draw = DrawOf(match[x]);
  CompareDirection direction = match.root()->attrs<CompareAttrs>().direction;
  double bound = std::ldexp(match.number(c).DoubleAt(0), draw.mantissa);
  if (std::isnan(bound) || direction == kEq || direction == kNe) return nullptr;
  bool is_strict = direction == kLt || direction == kGe;
  bool is_below = direction == kLt || direction == kLe;
  // n < least: below; n >= least: not below.
  double least = is_strict ? std::ceil(bound) : std::floor(bound) + 1;
  if (!(least > 0)) return edit.Filled(match.shape(), is_below ? 0 : 1);
  if (!(least < std::ldexp(1.0, draw.mantissa)))
    return edit.Filled(match.shape(), is_below ? 1 : 0);
  const Shape& shape = draw.bits->shape();
  int shift = InfoOf(shape.type()).bits - draw.mantissa;
  auto number = static_cast<int64_t>(static_cast<uint64_t>(least) << shift);
  return edit.Make(Op::kCompare,
                   {draw.bits, edit.Filled(shape, Literal::ScalarInt(shape.type(), number))},
                   CompareAttrs{.direction = is_below ? kLt : kGe});
}

}  // namespace

// u, a uniform random number: the prefix of the examples.
#define TOK_DRAW_OF_F32                        \
  "b = u32[61] parameter(0)\n"                 \
  "n = u32[] constant(9)\n"                    \
  "ns = u32[61] broadcast(n), dimensions={}\n" \
  "s = u32[61] shift-right-logical(b, ns)\n"   \
  "e = u32[] constant(1065353216)\n"           \
  "es = u32[61] broadcast(e), dimensions={}\n" \
  "o = u32[61] or(s, es)\n"                    \
  "f = f32[61] bitcast-convert(o)\n"           \
  "m = f32[] constant(-1)\n"                   \
  "ms = f32[61] broadcast(m), dimensions={}\n" \
  "u = f32[61] add(f, ms)\n"

std::span<const Rule> DrawRules() {
  static constexpr Rule kRules[] = {
      {"draw.plus-zero", "a uniform draw is never -0: adding 0 leaves it",
       m::Add(x, m::PositiveZero()), x, IsDraw,
       TOK_DRAW_OF_F32
       R"(
          z = f32[] constant(0)
          zs = f32[61] broadcast(z), dimensions={}
          ROOT r = f32[61] add(zs, u))"},
      {"draw.not-negative", "a uniform draw is its maximum with 0", m::Maximum(x, m::Zero()), x,
       IsDraw,
       R"(b = u64[61] parameter(0)
          n = u64[] constant(12)
          ns = u64[61] broadcast(n), dimensions={}
          s = u64[61] shift-right-logical(b, ns)
          e = u64[] constant(4607182418800017408)
          es = u64[61] broadcast(e), dimensions={}
          o = u64[61] or(es, s)
          f = f64[61] bitcast-convert(o)
          m = f64[] constant(-1)
          ms = f64[61] broadcast(m), dimensions={}
          u = f64[61] add(f, ms)
          z = f64[] constant(0)
          zs = f64[61] broadcast(z), dimensions={}
          ROOT r = f64[61] maximum(u, zs))"},
      {"draw.compare", "a uniform draw is compared by its bits", m::Compare(x, m::Splat(c)),
       CompareBits, IsDraw,
       TOK_DRAW_OF_F32
       R"(
          p = f32[] constant(0.9)
          ps = f32[61] broadcast(p), dimensions={}
          ROOT r = pred[61] compare(u, ps), direction=LT)"},
  };
  return kRules;
}

}  // namespace tokamak
