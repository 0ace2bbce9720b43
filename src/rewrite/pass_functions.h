#pragma once

#include "rewrite/pass.h"

namespace tokamak {

// Declares every pass of passes.def; each is one .cc file. A pass needs no header: its contract is
// the comment above its definition, its one-line meaning is in the row.
#define TOK_PASS(id, ...) Result<Changed> id(Module& module, PassContext& context);
#include "rewrite/passes.def"

}  // namespace tokamak
