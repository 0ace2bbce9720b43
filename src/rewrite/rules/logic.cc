// Bitwise and logical ops.

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

int64_t LogicInt(const m::Match& match, m::Var var) {
  return match.number(var).IntAt(0);
}
bool UsedOnceEach(const m::Match& match) {
  return HasOneUser(match[a]) && HasOneUser(match[b]);
}

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
      {"and.own-not", "x & ~x is 0", m::And(x, m::Not(x)), m::Zero()},
      {"or.own-not", "x | ~x is ~0", m::Or(x, m::Not(x)), m::AllOnes()},
      {"xor.own-not", "x ^ ~x is ~0", m::Xor(x, m::Not(x)), m::AllOnes()},
      {"xor.nots", "~x ^ ~y is x ^ y", m::Xor(m::Not(x), m::Not(y)), m::Xor(x, y)},
      {"xor.twice", "(x ^ y) ^ y is x", m::Xor(m::Xor(x, y), y), x},
      {"and.repeats", "(x & y) & y is x & y", m::And(m::Bind(a, m::And(x, y)), y), a},
      {"or.repeats", "(x | y) | y is x | y", m::Or(m::Bind(a, m::Or(x, y)), y), a},
      {"and.absorbs", "x & (x | y) is x", m::And(x, m::Or(x, y)), x},
      {"or.absorbs", "x | (x & y) is x", m::Or(x, m::And(x, y)), x},
      {"and.or-not", "x & (~x | y) is x & y", m::And(x, m::Or(m::Not(x), y)), m::And(x, y)},
      {"or.and-not", "x | (~x & y) is x | y", m::Or(x, m::And(m::Not(x), y)), m::Or(x, y)},
      {"and.nots", "~x & ~y is ~(x | y)", m::And(m::Bind(a, m::Not(x)), m::Bind(b, m::Not(y))),
       m::Not(m::Or(x, y)), UsedOnceEach},
      {"or.nots", "~x | ~y is ~(x & y)", m::Or(m::Bind(a, m::Not(x)), m::Bind(b, m::Not(y))),
       m::Not(m::And(x, y)), UsedOnceEach},
      {"or.halves", "(x & y) | (x & ~y) is x", m::Or(m::And(x, y), m::And(x, m::Not(y))), x},
      {"and.constants", "(x & c) & d is x & (c & d)", m::And(m::And(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kAnd, match[x], LogicInt(match, c) & LogicInt(match, d));
       },
       IsIntegral},
      {"or.constants", "(x | c) | d is x | (c | d)", m::Or(m::Or(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kOr, match[x], LogicInt(match, c) | LogicInt(match, d));
       },
       IsIntegral},
      {"xor.constants", "(x ^ c) ^ d is x ^ (c ^ d)", m::Xor(m::Xor(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kXor, match[x], LogicInt(match, c) ^ LogicInt(match, d));
       },
       IsIntegral},
      {"or.masks", "(x & c) | (x & d) is x & (c | d)",
       m::Or(m::And(x, m::Splat(c)), m::And(x, m::Splat(d))),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, Op::kAnd, match[x], LogicInt(match, c) | LogicInt(match, d));
       },
       IsIntegral},
      {"and.mask-of-or", "(x | c) & d is d if c contains all bits of d",
       m::And(m::Or(x, m::Splat(c)), m::Splat(d)), d,
       [](const m::Match& match) {
         return IsIntegral(match) && (LogicInt(match, c) & LogicInt(match, d)) == LogicInt(match, d);
       }},
      {"or.mask-of-and", "(x & c) | d is d if d contains all bits of c",
       m::Or(m::And(x, m::Splat(c)), m::Splat(d)), d,
       [](const m::Match& match) {
         return IsIntegral(match) && (LogicInt(match, c) | LogicInt(match, d)) == LogicInt(match, d);
       }},
      {"popcnt.not", "popcnt(~x) is the width less popcnt(x)", m::PopulationCount(m::Not(x)),
       [](Editor& edit, const m::Match& match) -> Instr* {
         return IntWith(edit, match, Op::kSubtract, InfoOf(match.type()).bits,
                        edit.Make(Op::kPopulationCount, {match[x]}));
       }},
  };
  return kRules;
}

}  // namespace tokamak
