#include "passes/passes.h"
#include "rewrite/rules.h"

namespace tokamak {
namespace {

using m::a;
using m::x;

// Conversion to f8 and narrower types is intended quantization; f64 to f32 and back is rare and
// also intended. XLA removes pairs through 16-bit types.
bool IsPair(const m::Match& match) {
  ElementType middle = match[a]->shape().type();
  return match.type() == ElementType::kF32 && match[x]->shape().type() == ElementType::kF32 &&
         (middle == ElementType::kBF16 || middle == ElementType::kF16);
}

const RuleSet& NarrowingRules() {
  static constexpr Rule kRules[] = {
      {"narrowing.pair", "a conversion from f32 to 16 bits and back is removed",
       m::Convert(m::Bind(a, m::Convert(x))), x, IsPair,
       R"(x = f32[4] parameter(0)
          n = bf16[4] convert(x)
          ROOT w = f32[4] convert(n))"},
  };
  static const RuleSet* rules = new RuleSet(kRules);
  return *rules;
}

}  // namespace

// Removes conversions from f32 to bf16 or f16 and directly back, as XLA does: the value keeps bits
// that the program would have rounded away (docs/numerics.md). Strict mode keeps the pairs.
Result<Changed> RemoveNarrowingPairs(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  for (const auto& computation : module.computations()) {
    TOK_TRY(Changed own, ApplyRules(*computation, NarrowingRules(), context));
    changed |= own;
  }
  return changed;
}

}  // namespace tokamak
