// Comparisons, selects and clamps.

#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::p;
using m::x;
using m::y;

}  // namespace

std::vector<Rule> CompareRules() {
  return {
      {"select.same", "p ? x : x is x", m::Select(p, x, x), x},
      {"select.true", "true ? x : y is x", m::Select(m::True(), x, y), x},
      {"select.false", "false ? x : y is y", m::Select(m::False(), x, y), y},
      {"compare.self", "x == x is true, x < x is false, for what has no NaN", m::Compare(x, x),
       [](Rewriter& rewriter, const m::Match& match) -> Instr* {
         CompareDirection direction = match.root()->attrs<CompareAttrs>().direction;
         bool holds = direction == CompareDirection::kEq || direction == CompareDirection::kLe ||
                      direction == CompareDirection::kGe;
         return rewriter.Filled(match.shape(), holds ? 1 : 0);
       },
       [](const m::Match& match) {
         ElementType type = match[x]->shape().type();
         return IsInteger(type) || type == ElementType::kPred;
       },
       R"(x = s32[6] parameter(0)
          ROOT c = pred[6] compare(x, x), direction=LE)"},
  };
}

}  // namespace tokamak
