// Minimum, maximum and clamp. For floats they follow IEEE 754-2019: NaN propagates, and -0 is below
// 0. They are therefore associative and commutative, but min(max(x, y), y) is not y, because x may
// be NaN.

#include <cmath>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::c;
using m::d;
using m::x;
using m::y;

bool IsLowest(const Instr* instr) {
  return IsIdentityOf(Op::kMaximum, instr);
}
bool IsHighest(const Instr* instr) {
  return IsIdentityOf(Op::kMinimum, instr);
}

// op(x, op(c, d)) for two constants c and d.
Instr* WithWinner(Editor& edit, const m::Match& match, Op op) {
  const Literal &left = match.number(c), &right = match.number(d);
  bool take_left = false;
  if (IsReal(match.type())) {
    double p = left.DoubleAt(0), q = right.DoubleAt(0);
    if (std::isnan(p) || std::isnan(q)) {
      take_left = std::isnan(p);
    } else {
      bool below = p < q || (p == q && std::signbit(p));
      take_left = below == (op == Op::kMinimum);
    }
  } else {
    int64_t p = left.IntAt(0), q = right.IntAt(0);
    bool below =
        IsUnsigned(match.type()) ? static_cast<uint64_t>(p) < static_cast<uint64_t>(q) : p < q;
    take_left = below == (op == Op::kMinimum);
  }
  return edit.Make(op, {match[x], edit.Filled(match.shape(), take_left ? left : right)});
}

// The bound of a clamp, broadcast to the shape of the result.
Instr* Widened(Editor& edit, const m::Match& match, Instr* bound) {
  return SameDims(bound->shape(), match.shape()) ? bound : edit.Broadcast(bound, match.shape());
}

}  // namespace

// long: a table
std::span<const Rule> ExtremesRules() {
  static constexpr Rule kRules[] = {
      {"maximum.self", "max(x, x) is x", m::Maximum(x, x), x},
      {"minimum.self", "min(x, x) is x", m::Minimum(x, x), x},
      {"maximum.pred", "of preds, max is or", m::Maximum(x, y), m::Or(x, y), IsPred},
      {"minimum.pred", "of preds, min is and", m::Minimum(x, y), m::And(x, y), IsPred},
      {"maximum.lowest", "max(x, least) is x", m::Maximum(x, m::Splat(c)), x,
       [](const m::Match& match) { return IsLowest(match[c]); },
       R"(x = f32[61] parameter(0)
          c = f32[] constant(-inf)
          b = f32[61] broadcast(c), dimensions={}
          ROOT d = f32[61] maximum(b, x))"},
      {"minimum.highest", "min(x, greatest) is x", m::Minimum(x, m::Splat(c)), x,
       [](const m::Match& match) { return IsHighest(match[c]); },
       R"(x = u16[61] parameter(0)
          c = u16[] constant(65535)
          b = u16[61] broadcast(c), dimensions={}
          ROOT d = u16[61] minimum(x, b))"},
      {"maximum.highest", "max(x, greatest) is the greatest integer", m::Maximum(x, m::Splat(c)), c,
       [](const m::Match& match) { return IsIntegral(match) && IsHighest(match[c]); },
       R"(x = s16[61] parameter(0)
          c = s16[] constant(32767)
          b = s16[61] broadcast(c), dimensions={}
          ROOT d = s16[61] maximum(x, b))"},
      {"maximum.constants", "max(max(x, c), d) is max(x, the larger of c and d)",
       m::Maximum(m::Maximum(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) { return WithWinner(edit, match, Op::kMaximum); },
       IsIntegralOrReal},
      {"minimum.constants", "min(min(x, c), d) is min(x, the smaller of c and d)",
       m::Minimum(m::Minimum(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) { return WithWinner(edit, match, Op::kMinimum); },
       IsIntegralOrReal},
      {"clamp.no-low", "a clamp from the least number on is a minimum", m::Clamp(m::Splat(c), x, y),
       [](Editor& edit, const m::Match& match) {
         return edit.Make(Op::kMinimum, {match[x], Widened(edit, match, match[y])});
       },
       [](const m::Match& match) { return IsLowest(match[c]); },
       R"(x = f32[61] parameter(0)
          l = f32[] constant(-inf)
          h = f32[] parameter(1)
          ROOT b = f32[61] clamp(l, x, h))"},
      {"clamp.no-high", "a clamp up to the greatest number is a maximum",
       m::Clamp(y, x, m::Splat(c)),
       [](Editor& edit, const m::Match& match) {
         return edit.Make(Op::kMaximum, {Widened(edit, match, match[y]), match[x]});
       },
       [](const m::Match& match) { return IsHighest(match[c]); },
       R"(x = s32[61] parameter(0)
          l = s32[] parameter(1)
          h = s32[] constant(2147483647)
          ROOT b = s32[61] clamp(l, x, h))"},
      {"clamp.minimum-of-maximum", "min(max(x, c), d) with constants is a clamp",
       m::Minimum(m::Bind(a, m::Maximum(x, m::Splat(c))), m::Splat(d)),
       [](Editor& edit, const m::Match& match) -> Instr* {
         Shape scalar = Shape::Scalar(match.type());
         return edit.Make(Op::kClamp, {edit.Filled(scalar, match.number(c)), match[x],
                                       edit.Filled(scalar, match.number(d))});
       },
       [](const m::Match& match) { return IsIntegralOrReal(match) && HasOneUser(match[a]); }},
  };
  return kRules;
}

}  // namespace tokamak
