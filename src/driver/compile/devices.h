#pragma once

#include <string_view>

#include "runtime/device.h"
#include "support/result.h"

namespace tokamak {

// The device that a backend runs programs on; null for backends that run on the host. An empty name
// means the default backend. Returns TK6002, TK6003, TK4201 or TK4202.
Result<Device*> DeviceOf(std::string_view backend);

}  // namespace tokamak
