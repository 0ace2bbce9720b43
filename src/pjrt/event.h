#pragma once

#include "pjrt/abi.h"
#include "runtime/event.h"

namespace tokamak {

// Passes one reference to the event to the caller.
PJRT_Event* ReturnEvent(Ref<Event> event);
Event& EventOf(PJRT_Event* event);

}  // namespace tokamak
