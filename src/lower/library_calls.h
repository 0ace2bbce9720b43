#pragma once

#include <memory>

#include "gen/library/convolution.h"
#include "ir/ir.h"
#include "runtime/convolution.h"
#include "runtime/library_call.h"

namespace tokamak {

// What does an instruction for which the runtime has a function (IsForRuntime).
std::shared_ptr<const LibraryCall> LibraryCallOf(const Instr& instr);

// For the GPU's library.
Convolution ConvolutionFrom(const LibraryConvolution& from);

}  // namespace tokamak
