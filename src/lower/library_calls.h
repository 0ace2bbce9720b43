#pragma once

#include <memory>

#include "gen/library/convolution.h"
#include "ir/ir.h"
#include "runtime/convolution.h"
#include "runtime/library_call.h"

namespace tokamak {

// The runtime function that implements an instruction. Requires UsesRuntimeFunction(instr).
std::shared_ptr<const LibraryCall> LibraryCallOf(const Instr& instr);

// A convolution for the GPU library (cuDNN).
Convolution ConvolutionFrom(const LibraryConvolution& from);

}  // namespace tokamak
