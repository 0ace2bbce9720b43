// Tuples: get-tuple-element of a tuple op.

#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;

}  // namespace

std::span<const Rule> TupleRules() {
  static constexpr Rule kRules[] = {
      {"tuple.element", "an element of a tuple is the operand of the tuple",
       m::GetTupleElement(m::Bind(a, m::Tuple())),
       [](Editor&, const m::Match& match) -> Instr* {
         auto index = static_cast<size_t>(match.root()->attrs<TupleIndexAttrs>().index);
         return index < match[a]->operand_count() ? match[a]->operand(index) : nullptr;
       },
       nullptr,
       R"(x = f32[4] parameter(0)
          y = s32[4] parameter(1)
          t = (f32[4], s32[4]) tuple(x, y)
          ROOT g = s32[4] get-tuple-element(t), index=1)"},
  };
  return kRules;
}

}  // namespace tokamak
