// Integers: arithmetic wraps, so sums and products are associative. x / 0 is -1 (all ones), x % 0
// is x.

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::b;
using m::c;
using m::d;
using m::x;
using m::y;

int64_t Int(const m::Match& match, m::Var var) {
  return match.number(var).IntAt(0);
}

bool IsUnsignedPower(const m::Match& match) {
  return IsUnsigned(match.type()) && PowerOfTwo(match[c]).has_value();
}

}  // namespace

// long: a table
std::span<const Rule> IntegerRules() {
  static constexpr Rule kRules[] = {
      {"add.constants", "(x + c) + d is x + (c + d)", m::Add(m::Add(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kAdd, match[x], WrapAdd(Int(match, c), Int(match, d)));
       },
       IsIntegral},
      {"add.constant-minus", "(c - x) + d is (c + d) - x",
       m::Add(m::Subtract(m::Splat(c), x), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         return IntWith(edit, match, Op::kSubtract, WrapAdd(Int(match, c), Int(match, d)),
                        match[x]);
       },
       IsIntegral},
      {"subtract.constant-sum", "c - (x + d) is (c - d) - x",
       m::Subtract(m::Splat(c), m::Add(x, m::Splat(d))),
       [](Editor& edit, const m::Match& match) {
         return IntWith(edit, match, Op::kSubtract, WrapSubtract(Int(match, c), Int(match, d)),
                        match[x]);
       },
       IsIntegral},
      {"subtract.constant-minus", "c - (d - x) is x + (c - d)",
       m::Subtract(m::Splat(c), m::Subtract(m::Splat(d), x)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kAdd, match[x],
                        WrapSubtract(Int(match, c), Int(match, d)));
       },
       IsIntegral},
      {"multiply.constants", "(x * c) * d is x * (c * d)",
       m::Multiply(m::Multiply(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kMultiply, match[x],
                        WrapMultiply(Int(match, c), Int(match, d)));
       },
       IsIntegral},
      {"negate.add-constant", "-(x + c) is -c - x", m::Negate(m::Add(x, m::Splat(c))),
       [](Editor& edit, const m::Match& match) {
         return IntWith(edit, match, Op::kSubtract, WrapSubtract(0, Int(match, c)), match[x]);
       },
       IsIntegral},
      {"negate.subtract", "-(x - y) is y - x", m::Negate(m::Subtract(x, y)), m::Subtract(y, x),
       IsIntegral},

      {"add.difference", "(x - y) + y is x", m::Add(m::Subtract(x, y), y), x, IsIntegral},
      {"subtract.sum", "(x + y) - y is x", m::Subtract(m::Add(x, y), y), x, IsIntegral},

      {"divide.zero", "x / 0 is all ones", m::Divide(x, m::Zero()), m::AllOnes(), IsIntegral},
      {"divide.unsigned-power-of-two", "x / 2^k is x >> k", m::Divide(x, m::Splat(c)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kShiftRightLogical, match[x], *PowerOfTwo(match[c]));
       },
       IsUnsignedPower,
       R"(x = u32[61] parameter(0)
          c = u32[] constant(16)
          b = u32[61] broadcast(c), dimensions={}
          ROOT d = u32[61] divide(x, b))"},
      {"remainder.one", "x % 1 is 0", m::Remainder(x, m::One()), m::Zero(), IsIntegral},
      {"remainder.self", "x % x is 0", m::Remainder(x, x), m::Zero(), IsIntegral},
      {"remainder.unsigned-power-of-two", "x % 2^k is x & (2^k - 1)", m::Remainder(x, m::Splat(c)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kAnd, match[x], WrapSubtract(Int(match, c), 1));
       },
       IsUnsignedPower,
       R"(x = u8[61] parameter(0)
          c = u8[] constant(64)
          b = u8[61] broadcast(c), dimensions={}
          ROOT d = u8[61] remainder(x, b))"},
      {"remainder.remainder", "(x % y) % y is x % y",
       m::Remainder(m::Bind(b, m::Remainder(x, y)), y), b},
  };
  return kRules;
}

}  // namespace tokamak
