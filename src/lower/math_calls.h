#pragma once

#include <memory>

#include "ir/ir.h"
#include "runtime/fft.h"
#include "runtime/library_call.h"
#include "runtime/triangular.h"

namespace tokamak {

// The runtime function that implements an fft, a cholesky or a triangular-solve.
std::shared_ptr<const LibraryCall> MathCallOf(const Instr& instr);

// Descriptors of these instructions for the runtime and device libraries.
FourierShape FourierShapeOf(const Instr& fft);
CholeskyCall CholeskyCallOf(const Instr& cholesky);
TriangularCall TriangularCallOf(const Instr& solve);
// Requires f32, f64, c64 or c128.
MatrixElement MatrixElementOf(ElementType type);

}  // namespace tokamak
