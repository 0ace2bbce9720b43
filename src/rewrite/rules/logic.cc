// Bits and truth.

#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::x;

}  // namespace

std::vector<Rule> LogicRules() {
  return {
      {"and.self", "x & x is x", m::And(x, x), x},
      {"or.self", "x | x is x", m::Or(x, x), x},
      {"and.all-ones", "x & ~0 is x", m::And(x, m::AllOnes()), x},
      {"and.false", "x & false is false", m::And(x, m::False()), m::False()},
      {"not.not", "~~x is x", m::Not(m::Not(x)), x},
  };
}

}  // namespace tokamak
