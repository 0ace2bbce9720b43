#pragma once

#include "pjrt/abi.h"

namespace tokamak {

// The list of extensions that the plugin serves; may be null.
PJRT_Extension_Base* Extensions();

// The layout of all arrays of a rank.
PJRT_Layouts_MemoryLayout* RowMajorLayout(size_t rank);

}  // namespace tokamak
