#pragma once

#include "pjrt/abi.h"
#include "pjrt/error.h"

// One function per slot of PJRT_Api, under the name of the slot: a slot that nobody defines does
// not link. They get a struct that is not null and long enough (api.cc); the error they give is the
// caller's.

namespace tokamak {

#define TOK_PJRT_FUNCTION(name, offset, returned, optional) returned name(name##_Args& args);
#include "pjrt/abi.def"

}  // namespace tokamak
