#pragma once

#include <memory>

#include "ir/ir.h"
#include "runtime/fft.h"
#include "runtime/library_call.h"
#include "runtime/triangular.h"

namespace tokamak {

// What does an fft, a cholesky or a triangular-solve for which the runtime has a function.
std::shared_ptr<const LibraryCall> MathCallOf(const Instr& instr);

// What such an instruction asks for.
FourierShape FourierShapeOf(const Instr& fft);
CholeskyCall CholeskyCallOf(const Instr& cholesky);
TriangularCall TriangularCallOf(const Instr& solve);
// Of f32, f64, c64, c128.
MatrixElement MatrixElementOf(ElementType type);

}  // namespace tokamak
