#include "rewrite/unroll.h"

#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// Pastes `trip_count` copies of `body` into `to`. The tuples between them are eliminated.
Instr* Paste(const Computation& body, std::vector<Instr*> state, uint64_t trip_count,
             Computation& to, std::vector<Instr*>& made) {
  Instr* value = nullptr;
  size_t size = state.size();
  for (uint64_t iteration = 0; iteration < trip_count; ++iteration) {
    Instr* last = value;
    value = PasteBody(body, state, to, made);
    if (size == 1)
      state = {value};
    else
      for (size_t i = 0; i < size; ++i) state[i] = ElementOf(value, i);
    if (last != nullptr && size > 1) RemoveUnused(last);
  }
  return value;
}

}  // namespace

Instr* UnrollIterations(const WhileLoop& loop, uint64_t trip_count, std::vector<Instr*>& made) {
  std::vector<Instr*> state(loop.instr->operands().begin(), loop.instr->operands().end());
  if (trip_count > 0)
    return Paste(*loop.body, std::move(state), trip_count, *loop.instr->parent(), made);
  if (loop.size() == 1) return state[0];
  return Editor::Beside(*loop.instr).Make(Op::kTuple, loop.instr->shape(), std::move(state));
}

void UnrollBody(const WhileLoop& loop, uint64_t factor, CallCounts& counts) {
  Computation* once = loop.body;
  Computation* body = once->module()->AddComputation(once->name());
  body->is_public = false;
  body->origins = once->origins;
  std::vector<Instr*> state;
  for (const Instr* parameter : once->parameters()) {
    state.push_back(body->AppendParameter(static_cast<int64_t>(state.size()), parameter->shape(),
                                          parameter->name()));
    state.back()->set_origins(parameter->origins());
    state.back()->set_pos(parameter->pos());
    if (parameter->has_extras()) state.back()->mutable_extras() = parameter->extras();
  }
  std::vector<Instr*> made;
  body->set_root(Paste(*once, state, factor, *body, made));
  for (const Instr* instr : made)
    if (!instr->is_removed()) counts.Add(*instr);
  counts.Remove(*loop.instr);
  loop.instr->set_called({loop.condition, body});
  counts.Add(*loop.instr);
}

}  // namespace tokamak
