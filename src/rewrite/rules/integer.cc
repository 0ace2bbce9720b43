// Integers: arithmetic wraps, so sums and products are associative. x / 0 is -1 (all ones), x % 0
// is x.

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::c;
using m::d;
using m::x;

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
      {"multiply.constants", "(x * c) * d is x * (c * d)",
       m::Multiply(m::Multiply(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kMultiply, match[x],
                        WrapMultiply(Int(match, c), Int(match, d)));
       },
       IsIntegral},
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
      {"remainder.unsigned-power-of-two", "x % 2^k is x & (2^k - 1)", m::Remainder(x, m::Splat(c)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kAnd, match[x], WrapSubtract(Int(match, c), 1));
       },
       IsUnsignedPower,
       R"(x = u8[61] parameter(0)
          c = u8[] constant(64)
          b = u8[61] broadcast(c), dimensions={}
          ROOT d = u8[61] remainder(x, b))"},
  };
  return kRules;
}

}  // namespace tokamak
