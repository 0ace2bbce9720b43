#include <fmt/format.h>

#include "analysis/effects.h"
#include "passes/passes.h"
#include "rewrite/replace.h"
#include "rewrite/unroll.h"

namespace tokamak {
namespace {

// Rounds to write out; nothing when the loop stays.
std::optional<uint64_t> RoundsOf(const WhileLoop& loop, const Effects& effects,
                                 PassContext& context) {
  std::optional<uint64_t> rounds = TripCount(loop);
  const Instr& instr = *loop.instr;
  if (!rounds || effects.Of(*loop.condition) || IsPinned(instr)) return std::nullopt;
  if (IsPinned(*loop.body, instr.operands()) || !(loop.body->root()->shape() == instr.shape()))
    return std::nullopt;
  for (size_t i = 0; i < loop.size(); ++i)
    if (!(loop.next(i)->shape() == loop.init(i)->shape())) return std::nullopt;
  auto limit = static_cast<uint64_t>(context.limits.unrolled_instrs);
  if (*rounds <= limit && *rounds * loop.body->size() <= limit) return rounds;
  context.Rejected(
      "unroll.too-large", instr, nullptr,
      fmt::format("{} rounds of {} instructions, {} at most", *rounds, loop.body->size(), limit));
  return std::nullopt;
}

Changed UnrollAll(Computation& computation, const Effects& effects, PassContext& context) {
  std::vector<Instr*> loops;
  for (Instr* instr : computation.PostOrder())
    if (instr->op() == Op::kWhile) loops.push_back(instr);
  if (loops.empty()) return Changed::kNo;
  Places places(computation);
  Changed changed = Changed::kNo;
  for (Instr* instr : loops) {
    std::optional<WhileLoop> loop = LoopOf(instr);
    std::optional<uint64_t> rounds = loop ? RoundsOf(*loop, effects, context) : std::nullopt;
    if (!rounds) continue;
    std::vector<Instr*> made;
    Instr* value = WriteOutRounds(*loop, *rounds, made);
    context.Taken("unroll.few-rounds", *instr, value, fmt::format("{} rounds", *rounds));
    KeepOrigins(*instr, value);
    computation.ReplaceUses(instr, value);
    computation.Remove(instr);
    places.Put(instr, std::move(made));
    changed = Changed::kYes;
  }
  places.Finish();
  return changed;
}

}  // namespace

// Writes out loops whose number of rounds is known, inner ones first, up to
// PassLimits::unrolled_instrs instructions each. For those who want straight-line code: the default
// pipeline keeps loops.
Result<Changed> UnrollLoops(Module& module, PassContext& context) {
  if (!HasOp(module, Op::kWhile)) return Changed::kNo;
  Effects effects(module);
  Changed changed = Changed::kNo;
  for (Computation* computation : module.CalleesFirst())
    changed |= UnrollAll(*computation, effects, context);
  return changed;
}

}  // namespace tokamak
