#pragma once

#include <string_view>

#include "runtime/device.h"
#include "support/result.h"

namespace tokamak {

// The device that a backend runs programs on: null of those that run them on the host. "": of the
// standard backend. TK6002, TK6003, TK4201, TK4202.
Result<Device*> DeviceOf(std::string_view backend);

}  // namespace tokamak
