// Selects, and simplifications from integer ranges.

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/ranges.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::b;
using m::c;
using m::p;
using m::q;
using m::x;
using m::y;
using m::z;
using enum CompareDirection;

// `a` compares integers in their native order.
bool ComparesIntegers(const m::Match& match) {
  return IsInteger(match[a]->operand(0)->shape().type()) &&
         match[a]->attrs<CompareAttrs>().type == CompareType::kNone &&
         SameDims(match[a]->shape(), match.shape());
}
CompareDirection SelectDirectionOf(const m::Match& match) {
  return match[a]->attrs<CompareAttrs>().direction;
}
bool ComparesBelow(const m::Match& match) {
  return ComparesIntegers(match) &&
         (SelectDirectionOf(match) == kLt || SelectDirectionOf(match) == kLe);
}
bool ComparesAbove(const m::Match& match) {
  return ComparesIntegers(match) &&
         (SelectDirectionOf(match) == kGt || SelectDirectionOf(match) == kGe);
}

// The range of x is within [low, high], so the clamp does nothing.
bool IsWithin(const Instr* instr, const Instr* low, const Instr* high) {
  std::optional<IntRange> range = RangeOf(instr), from = RangeOf(low), to = RangeOf(high);
  return range && from && to && IsInteger(instr->shape().type()) && from->high <= range->low &&
         range->high <= to->low;
}
bool IsNoLess(const Instr* left, const Instr* right) {
  std::optional<IntRange> a_range = RangeOf(left), b_range = RangeOf(right);
  return a_range && b_range && a_range->low >= b_range->high;
}
// 0 <= x < y.
bool IsBelow(const m::Match& match) {
  std::optional<IntRange> left = RangeOf(match[x]), right = RangeOf(match[y]);
  return IsIntegral(match) && left && right && left->low >= 0 && left->high < right->low;
}

}  // namespace

// long: a table
std::span<const Rule> SelectRules() {
  static constexpr Rule kRules[] = {
      {"select.same", "p ? x : x is x", m::Select(p, x, x), x},
      {"select.true", "true ? x : y is x", m::Select(m::True(), x, y), x},
      {"select.false", "false ? x : y is y", m::Select(m::False(), x, y), y},
      {"select.not", "!p ? x : y is p ? y : x", m::Select(m::Not(p), x, y), m::Select(p, y, x)},
      {"select.truth", "p ? true : false is p", m::Select(p, m::True(), m::False()), p},
      {"select.negated-predicate", "p ? false : true is !p", m::Select(p, m::False(), m::True()),
       m::Not(p), [](const m::Match& match) { return SameDims(match[p]->shape(), match.shape()); }},
      {"select.and", "p ? x : false is p & x", m::Select(p, x, m::False()), m::And(p, x)},
      {"select.or", "p ? true : x is p | x", m::Select(p, m::True(), x), m::Or(p, x)},
      {"select.one-zero", "p ? 1 : 0 is p as a number", m::Select(p, m::One(), m::PositiveZero()),
       [](Editor& edit, const m::Match& match) {
         return edit.MakeShaped(Op::kConvert, match.shape().WithoutLayout(), {match[p]});
       },
       [](const m::Match& match) {
         return IsIntegralOrReal(match) && SameDims(match[p]->shape(), match.shape());
       }},
      {"select.same-predicate-true", "p ? (p ? x : y) : z is p ? x : z",
       m::Select(p, m::Select(p, x, y), z), m::Select(p, x, z)},
      {"select.same-predicate-false", "p ? x : (p ? y : z) is p ? x : z",
       m::Select(p, x, m::Select(p, y, z)), m::Select(p, x, z)},
      {"select.both", "p ? (q ? x : y) : y is p & q ? x : y",
       m::Select(p, m::Bind(a, m::Select(q, x, y)), y),
       [](Editor& edit, const m::Match& match) {
         return edit.Make(Op::kSelect,
                          {edit.Make(Op::kAnd, {match[p], match[q]}), match[x], match[y]});
       },
       [](const m::Match& match) {
         return HasOneUser(match[a]) && match[p]->shape() == match[q]->shape();
       },
       R"(p = pred[61] parameter(0)
          q = pred[61] parameter(1)
          x = f32[61] parameter(2)
          y = f32[61] parameter(3)
          a = f32[61] select(q, x, y)
          ROOT s = f32[61] select(p, a, y))"},
      {"select.either", "p ? x : (q ? x : y) is p | q ? x : y",
       m::Select(p, x, m::Bind(a, m::Select(q, x, y))),
       [](Editor& edit, const m::Match& match) {
         return edit.Make(Op::kSelect,
                          {edit.Make(Op::kOr, {match[p], match[q]}), match[x], match[y]});
       },
       [](const m::Match& match) {
         return HasOneUser(match[a]) && match[p]->shape() == match[q]->shape();
       },
       R"(p = pred[61] parameter(0)
          q = pred[61] parameter(1)
          x = f32[61] parameter(2)
          y = f32[61] parameter(3)
          a = f32[61] select(q, x, y)
          ROOT s = f32[61] select(p, x, a))"},
  };
  return kRules;
}

// Integers only: a NaN makes every comparison false, and 0 equals -0.
std::span<const Rule> ComparisonSelectRules() {
  static constexpr Rule kRules[] = {
      {"select.minimum", "x < y ? x : y is min(x, y)",
       m::Select(m::Bind(a, m::Compare(x, y)), x, y), m::Minimum(x, y), ComparesBelow,
       R"(x = s32[61] parameter(0)
          y = s32[61] parameter(1)
          c = pred[61] compare(x, y), direction=LT
          ROOT s = s32[61] select(c, x, y))"},
      {"select.maximum", "x > y ? x : y is max(x, y)",
       m::Select(m::Bind(a, m::Compare(x, y)), x, y), m::Maximum(x, y), ComparesAbove,
       R"(x = u8[61] parameter(0)
          y = u8[61] parameter(1)
          c = pred[61] compare(x, y), direction=GE
          ROOT s = u8[61] select(c, x, y))"},
      {"select.maximum-swapped", "x < y ? y : x is max(x, y)",
       m::Select(m::Bind(a, m::Compare(x, y)), y, x), m::Maximum(x, y), ComparesBelow,
       R"(x = s32[61] parameter(0)
          y = s32[61] parameter(1)
          c = pred[61] compare(x, y), direction=LE
          ROOT s = s32[61] select(c, y, x))"},
      {"select.minimum-swapped", "x > y ? y : x is min(x, y)",
       m::Select(m::Bind(a, m::Compare(x, y)), y, x), m::Minimum(x, y), ComparesAbove,
       R"(x = s8[61] parameter(0)
          y = s8[61] parameter(1)
          c = pred[61] compare(x, y), direction=GT
          ROOT s = s8[61] select(c, y, x))"},
  };
  return kRules;
}

namespace {

constexpr std::string_view kIota = R"(i = s32[61] iota(), iota_dimension=0
          l = s32[] constant(0)
          h = s32[] constant(60)
          n = s32[] constant(61)
          lo = s32[61] broadcast(l), dimensions={}
          hi = s32[61] broadcast(h), dimensions={}
          c = s32[61] broadcast(n), dimensions={}
          )";

std::string OfIota(std::string_view root) {
  return std::string(kIota) + std::string(root);
}

}  // namespace

std::span<const Rule> RangeRules() {
  static const std::string clamp = OfIota("ROOT r = s32[61] clamp(l, i, h)"),
                           maximum = OfIota("ROOT r = s32[61] maximum(i, lo)"),
                           minimum = OfIota("ROOT r = s32[61] minimum(hi, i)"),
                           remainder = OfIota("ROOT r = s32[61] remainder(i, c)"),
                           divide = OfIota("ROOT r = s32[61] divide(i, c)");
  static const Rule kRules[] = {
      {"clamp.range", "a clamp of a value within its bounds is the value", m::Clamp(y, x, z), x,
       [](const m::Match& match) { return IsWithin(match[x], match[y], match[z]); }, clamp},
      {"maximum.range", "max(x, y) is x if x >= y", m::Maximum(x, y),
       [](Editor&, const m::Match& match) -> Instr* {
         if (IsNoLess(match[x], match[y])) return match[x];
         return IsNoLess(match[y], match[x]) ? match[y] : nullptr;
       },
       IsIntegral, maximum},
      {"minimum.range", "min(x, y) is x if x <= y", m::Minimum(x, y),
       [](Editor&, const m::Match& match) -> Instr* {
         if (IsNoLess(match[x], match[y])) return match[y];
         return IsNoLess(match[y], match[x]) ? match[x] : nullptr;
       },
       IsIntegral, minimum},
      {"remainder.range", "x % y is x when 0 <= x < y", m::Remainder(x, y), x, IsBelow, remainder},
      {"divide.range", "x / y is 0 when 0 <= x < y", m::Divide(x, y), m::Zero(), IsBelow, divide},
      {"and.range", "x & c is x if x has no other bits than c", m::And(x, m::Splat(c)), x,
       [](const m::Match& match) {
         std::optional<IntRange> range = RangeOf(match[x]);
         std::optional<int64_t> mask = IntOf(match[c]);
         if (!IsIntegral(match) || !range || !mask || range->low < 0) return false;
         int64_t ones = 0;  // the low bits of the mask, up to its first zero
         while (ones < INT64_MAX && (*mask & (ones + 1)) != 0) ones = ones * 2 + 1;
         return range->high <= ones;
       },
       R"(x = u8[61] parameter(0)
          w = u32[61] convert(x)
          c = u32[] constant(255)
          b = u32[61] broadcast(c), dimensions={}
          ROOT r = u32[61] and(w, b))"},
  };
  return kRules;
}

}  // namespace tokamak
