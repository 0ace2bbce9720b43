#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"

// Which dots go to a BLAS library (cuBLAS, or the CPU's), and in which form.

namespace tokamak {

// A dot as a batch of matrix multiplications lhs (m x k) * rhs (k x n). Strides are in elements.
// Every matrix that is not a vector has one stride of 1.
struct Contraction {
  struct Matrix {
    int64_t row = 1, column = 1;
  };
  struct Batch {
    int64_t count = 1, lhs = 0, rhs = 0;
  };
  ElementType type{};  // element type of the sums
  int64_t m = 1, n = 1, k = 1;
  Matrix lhs, rhs;
  std::vector<Batch> batch;
};

// Returns the dot in this form; nullopt if the machine's library does not support its types, or an
// operand would first have to be converted or transposed. GPU libraries accept bf16 and f16.
std::optional<Contraction> ContractionOf(const Instr& dot, const Machine& machine);

// Whether the machine's library computes this dot or convolution, in its current layout, faster
// than a kernel.
bool IsForLibrary(const Instr& instr, const Machine& machine);

// Whether an instruction with this many multiplications is in a loop that may become one GPU launch
// (lower/persistent.h) if its body consists of kernels only: a library call per iteration would
// take longer than the computation.
bool IsSmallInLoop(const Instr& instr, double multiplications);

// Whether a dot is large enough to open a library for, and not computed by a generator.
bool HasContractions(const Module& module, const Machine& machine);

// ---- for legalize-dots, which lays out dots for the library

// The element type in which the library computes a dot; nullopt if it does not.
std::optional<ElementType> TypeForLibrary(const Instr& dot);
// Whether the library multiplies narrow floats directly and accumulates in f32.
bool TakesNarrow(const Instr& dot, const Machine& machine);
// Whether the dot is large enough to amortize a call.
bool IsLargeForLibrary(const Instr& dot, const Machine& machine);
// Whether a generator computes the dot although a library supports its type.
bool IsForGenerator(const Instr& dot, const Machine& machine);
// Contracting dimensions may be listed in any order that both operands share. Returns two
// candidates: ascending in lhs, and ascending in rhs.
std::vector<std::pair<Dims, Dims>> ContractingOrders(const DotAttrs& attrs);
// The strides of one operand with `free` rows and `contracting` columns; nullopt if it has to be
// transposed first.
std::optional<Contraction::Matrix> MatrixOf(const Dims& dims, const Dims& free,
                                            const Dims& contracting, bool is_vector);

}  // namespace tokamak
