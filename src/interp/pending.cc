// Ops whose evaluators are not written yet: TK5001. A line goes when the real one lands.

#include "interp/evaluators.h"

namespace tokamak {

#define TOK_PENDING(id)                                                          \
  Result<Value> Eval##id(const Instr& instr, std::span<const Value>, Context&) { \
    return Unsupported(instr, "the interpreter has no evaluator for it yet");    \
  }


#undef TOK_PENDING

}  // namespace tokamak
