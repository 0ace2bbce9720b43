#pragma once

#include "pjrt/abi.h"
#include "pjrt/error.h"

// One function per slot of PJRT_Api, named like the slot: a slot without a definition does not
// link. Arguments are never null and at least as long as required (api.cc). The caller owns the
// returned error.

namespace tokamak {

#define TOK_PJRT_FUNCTION(name, offset, returned, optional) returned name(name##_Args& args);
#include "pjrt/abi.def"

}  // namespace tokamak
