#pragma once

#include <string_view>

// What precedes the text of every custom kernel: types, conversions of 16-bit floats, the range of
// a block, and the functions that the bodies of hooks call (backend/cuda/cuda_prims.h).

namespace tokamak {

std::string_view CKernelPrelude();
std::string_view CudaKernelPrelude();

}  // namespace tokamak
