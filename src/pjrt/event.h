#pragma once

#include "pjrt/abi.h"
#include "runtime/event.h"

namespace tokamak {

// A hold on the event goes to the caller.
PJRT_Event* GiveEvent(Ref<Event> event);
Event& EventOf(PJRT_Event* event);

}  // namespace tokamak
