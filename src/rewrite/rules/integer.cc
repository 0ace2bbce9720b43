// Integers: arithmetic wraps, so sums and products are associative. x / 0 is -1 (all ones), x % 0
// is x.

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
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

// The product of two unsigned constants; null if it overflows their type.
std::optional<uint64_t> UnsignedProduct(const m::Match& match) {
  auto p = static_cast<uint64_t>(Int(match, c)), q = static_cast<uint64_t>(Int(match, d));
  if (p == 0 || q == 0 || q > UINT64_MAX / p) return std::nullopt;
  int bits = InfoOf(match.type()).bits;
  if (bits < 64 && (p * q) >> bits != 0) return std::nullopt;
  return p * q;
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
      {"add.multiples", "x * c + x * d is x * (c + d)",
       m::Add(m::Multiply(x, m::Splat(c)), m::Multiply(x, m::Splat(d))),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kMultiply, match[x],
                        WrapAdd(Int(match, c), Int(match, d)));
       },
       IsIntegral},
      {"add.multiple-and-self", "x * c + x is x * (c + 1)", m::Add(m::Multiply(x, m::Splat(c)), x),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kMultiply, match[x], WrapAdd(Int(match, c), 1));
       },
       IsIntegral},
      {"negate.add-constant", "-(x + c) is -c - x", m::Negate(m::Add(x, m::Splat(c))),
       [](Editor& edit, const m::Match& match) {
         return IntWith(edit, match, Op::kSubtract, WrapSubtract(0, Int(match, c)), match[x]);
       },
       IsIntegral},
      {"negate.subtract", "-(x - y) is y - x", m::Negate(m::Subtract(x, y)), m::Subtract(y, x),
       IsIntegral},
      {"negate.not", "-~x is x + 1", m::Negate(m::Not(x)), m::Add(x, m::One()), IsIntegral},
      {"not.negate", "~-x is x + -1", m::Not(m::Negate(x)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kAdd, match[x], -1);
       },
       IsIntegral},
      {"not.add-constant", "~(x + c) is ~c - x", m::Not(m::Add(x, m::Splat(c))),
       [](Editor& edit, const m::Match& match) {
         return IntWith(edit, match, Op::kSubtract, ~Int(match, c), match[x]);
       },
       IsIntegral},

      {"add.difference", "(x - y) + y is x", m::Add(m::Subtract(x, y), y), x, IsIntegral},
      {"subtract.sum", "(x + y) - y is x", m::Subtract(m::Add(x, y), y), x, IsIntegral},
      {"subtract.from-sum", "x - (x + y) is -y", m::Subtract(x, m::Add(x, y)), m::Negate(y),
       IsIntegral},
      {"subtract.difference", "(x - y) - x is -y", m::Subtract(m::Subtract(x, y), x), m::Negate(y),
       IsIntegral},
      {"subtract.from-difference", "x - (x - y) is y", m::Subtract(x, m::Subtract(x, y)), y,
       IsIntegral},
      {"add.differences", "(x - y) + (y - a) is x - a",
       m::Add(m::Subtract(x, y), m::Subtract(y, a)), m::Subtract(x, a), IsIntegral},

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
      {"divide.unsigned-constants", "(x / c) / d is x / (c * d)",
       m::Divide(m::Divide(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kDivide, match[x],
                        static_cast<int64_t>(*UnsignedProduct(match)));
       },
       [](const m::Match& match) {
         return IsUnsigned(match.type()) && UnsignedProduct(match).has_value();
       }},
      {"remainder.zero", "x % 0 is x", m::Remainder(x, m::Zero()), x, IsIntegral},
      {"remainder.one", "x % 1 is 0", m::Remainder(x, m::One()), m::Zero(), IsIntegral},
      {"remainder.minus-one", "x % -1 is 0", m::Remainder(x, m::MinusOne()), m::Zero(), IsIntegral},
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
      {"subtract.multiple", "x - (x / y) * y is x % y for integers",
       m::Subtract(x, m::Multiply(m::Divide(x, y), y)), m::Remainder(x, y), IsIntegral},
  };
  return kRules;
}

}  // namespace tokamak
