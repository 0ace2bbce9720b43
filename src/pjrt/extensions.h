#pragma once

#include "pjrt/abi.h"

namespace tokamak {

// The linked list of extensions that the plugin implements; may be null.
PJRT_Extension_Base* Extensions();

// The layout of all arrays of this rank.
PJRT_Layouts_MemoryLayout* RowMajorLayout(size_t rank);

}  // namespace tokamak
