#include <unordered_set>

#include "passes/passes.h"
#include "rewrite/rules.h"

namespace tokamak {
namespace {

using m::a;
using m::x;
using m::y;
using m::z;

// The product has no other user and its type has a hardware FMA. Otherwise the product would be
// computed twice, or the FMA would be slower than the two ops.
bool IsOnlyAdded(const m::Match& match) {
  const Instr* product = match[a];
  return (match.type() == ElementType::kF32 || match.type() == ElementType::kF64) &&
         product->users().size() == 1 && product->parent()->root() != product;
}

const RuleSet& FmaRules() {
  static constexpr Rule kRules[] = {
      {"fma.add", "x * y + z with one rounding", m::Add(m::Bind(a, m::Multiply(x, y)), z),
       m::Fma(x, y, z), IsOnlyAdded,
       R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          z = f32[4] parameter(2)
          t = f32[4] multiply(x, y)
          ROOT r = f32[4] add(t, z))"},
      {"fma.subtract", "x * y - z with one rounding", m::Subtract(m::Bind(a, m::Multiply(x, y)), z),
       m::Fma(x, y, m::Negate(z)), IsOnlyAdded,
       R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          z = f32[4] parameter(2)
          t = f32[4] multiply(x, y)
          ROOT r = f32[4] subtract(t, z))"},
      {"fma.subtract-from", "z - x * y with one rounding",
       m::Subtract(z, m::Bind(a, m::Multiply(x, y))), m::Fma(m::Negate(x), y, z), IsOnlyAdded,
       R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          z = f32[4] parameter(2)
          t = f32[4] multiply(x, y)
          ROOT r = f32[4] subtract(z, t))"},
  };
  static const RuleSet* rules = new RuleSet(kRules);
  return *rules;
}

// Bodies of reductions, sorts ... are left unchanged, because other code recognizes them by their
// structure.
std::unordered_set<const Computation*> Bodies(const Module& module) {
  std::unordered_set<const Computation*> bodies;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Callers())
      if ((instr->info().traits & kControlFlow) == 0)
        bodies.insert(instr->called().begin(), instr->called().end());
  return bodies;
}

}  // namespace

// Contracts products that are only added or subtracted into fma. This makes contraction independent
// of the fusion plan, because backends contract nothing themselves (docs/numerics.md). Strict mode
// keeps both roundings.
Result<Changed> FormFma(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  std::unordered_set<const Computation*> bodies = Bodies(module);
  for (const auto& computation : module.computations()) {
    if (bodies.contains(computation.get())) continue;
    TOK_TRY(Changed own, ApplyRules(*computation, FmaRules(), context));
    changed |= own;
  }
  return changed;
}

}  // namespace tokamak
