// Bitwise and logical ops.

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::c;
using m::d;
using m::x;
using m::y;

}  // namespace

// long: a table
std::span<const Rule> LogicRules() {
  static constexpr Rule kRules[] = {
      {"and.self", "x & x is x", m::And(x, x), x},
      {"or.self", "x | x is x", m::Or(x, x), x},
      {"xor.self", "x ^ x is 0", m::Xor(x, x), m::Zero()},
      {"and.all-ones", "x & ~0 is x", m::And(x, m::AllOnes()), x},
      {"and.zero", "x & 0 is 0", m::And(x, m::Zero()), m::Zero()},
      {"and.false", "x & false is false", m::And(x, m::False()), m::False()},
      {"or.zero", "x | 0 is x", m::Or(x, m::Zero()), x},
      {"or.false", "x | false is x", m::Or(x, m::False()), x},
      {"or.all-ones", "x | ~0 is ~0", m::Or(x, m::AllOnes()), m::AllOnes()},
      {"xor.zero", "x ^ 0 is x", m::Xor(x, m::Zero()), x},
      {"xor.false", "x ^ false is x", m::Xor(x, m::False()), x},
      {"xor.all-ones", "x ^ ~0 is ~x", m::Xor(x, m::AllOnes()), m::Not(x)},
      {"not.not", "~~x is x", m::Not(m::Not(x)), x},
      {"and.repeats", "(x & y) & y is x & y", m::And(m::Bind(a, m::And(x, y)), y), a},
      {"and.constants", "(x & c) & d is x & (c & d)", m::And(m::And(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kAnd, match[x],
                        match.number(c).IntAt(0) & match.number(d).IntAt(0));
       },
       IsIntegral},
  };
  return kRules;
}

}  // namespace tokamak
