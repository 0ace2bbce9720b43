#pragma once

#include "pjrt/abi.h"

namespace tokamak {

// The list of extensions that the plugin serves; may be null.
PJRT_Extension_Base* Extensions();

}  // namespace tokamak
