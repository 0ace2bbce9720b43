#include <fmt/format.h>

#include "analysis/effects.h"
#include "passes/passes.h"
#include "rewrite/replace.h"
#include "rewrite/unroll.h"

namespace tokamak {
namespace {

// The trip count to unroll; null if the loop stays.
std::optional<uint64_t> UnrolledTripCount(const WhileLoop& loop, const Effects& effects,
                                          PassContext& context) {
  std::optional<uint64_t> trip_count = TripCount(loop);
  const Instr& instr = *loop.instr;
  if (!trip_count || effects.Of(*loop.condition) || IsPinned(instr)) return std::nullopt;
  if (IsPinned(*loop.body, instr.operands()) || !(loop.body->root()->shape() == instr.shape()))
    return std::nullopt;
  for (size_t i = 0; i < loop.size(); ++i)
    if (!(loop.next(i)->shape() == loop.init(i)->shape())) return std::nullopt;
  auto limit = static_cast<uint64_t>(context.limits.unrolled_instrs);
  if (*trip_count <= limit && *trip_count * loop.body->size() <= limit) return trip_count;
  context.Rejected("unroll.too-large", instr, nullptr,
                   fmt::format("{} iterations of {} instructions, limit {}", *trip_count,
                               loop.body->size(), limit));
  return std::nullopt;
}

Changed UnrollAll(Computation& computation, const Effects& effects, PassContext& context) {
  std::vector<Instr*> loops;
  for (Instr* instr : computation.PostOrder())
    if (instr->op() == Op::kWhile) loops.push_back(instr);
  if (loops.empty()) return Changed::kNo;
  ProgramOrder program_order(computation);
  Changed changed = Changed::kNo;
  for (Instr* instr : loops) {
    std::optional<WhileLoop> loop = LoopOf(instr);
    std::optional<uint64_t> trip_count =
        loop ? UnrolledTripCount(*loop, effects, context) : std::nullopt;
    if (!trip_count) continue;
    std::vector<Instr*> made;
    Instr* value = UnrollIterations(*loop, *trip_count, made);
    context.Accepted("unroll.few-iterations", *instr, value,
                     fmt::format("{} iterations", *trip_count));
    KeepOrigins(*instr, value);
    computation.ReplaceUses(instr, value);
    computation.Remove(instr);
    program_order.Put(instr, std::move(made));
    changed = Changed::kYes;
  }
  program_order.Finish();
  return changed;
}

}  // namespace

// Fully unrolls loops with a known trip count, inner ones first, up to PassLimits::unrolled_instrs
// instructions each. For users who want straight-line code: the default pipeline keeps loops.
Result<Changed> UnrollLoops(Module& module, PassContext& context) {
  if (!HasOp(module, Op::kWhile)) return Changed::kNo;
  Effects effects(module);
  Changed changed = Changed::kNo;
  for (Computation* computation : module.CalleesFirst())
    changed |= UnrollAll(*computation, effects, context);
  return changed;
}

}  // namespace tokamak
