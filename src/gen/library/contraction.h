#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"

// Dots that a library computes.

namespace tokamak {

// A dot as products of matrices: lhs (m x k) times rhs (k x n), for each of a batch. Distances
// between neighbours are in elements. A matrix, unless it is a vector, has one distance of 1.
struct Contraction {
  struct Matrix {
    int64_t row = 1, column = 1;
  };
  struct Batch {
    int64_t count = 1, lhs = 0, rhs = 0;
  };
  ElementType type{};  // of sums
  int64_t m = 1, n = 1, k = 1;
  Matrix lhs, rhs;
  std::vector<Batch> batch;
};

// The dot as it stands; nothing when the machine's library does not take its types, or an operand
// would have to be converted or moved first. A GPU's takes bf16 and f16 as they are.
std::optional<Contraction> ContractionOf(const Instr& dot, const Machine& machine);

// Whether the machine's library computes this dot or convolution, as it stands, sooner than a
// kernel.
bool IsForLibrary(const Instr& instr, const Machine& machine);

// Whether an instruction of so many multiplications is one of those of a loop that may be one
// launch on a GPU (lower/persistent.h) if all of it is kernels: a call in each round would take
// longer than what it computes.
bool IsSmallInLoop(const Instr& instr, double multiplications);

// Whether some dot is large enough to ask for a library, and no generator's.
bool HasContractions(const Module& module, const Machine& machine);

// ---- what legalize-dots asks in order to lay out a dot for the library

// The element type in which the library computes a dot; nothing when it does not.
std::optional<ElementType> TypeForLibrary(const Instr& dot);
// Narrow factors that the library multiplies as they are, and adds up in f32.
bool TakesNarrow(const Instr& dot, const Machine& machine);
// Whether a call is worth it.
bool IsLargeForLibrary(const Instr& dot, const Machine& machine);
// Whether a generator computes the dot although a library computes its type.
bool IsForGenerator(const Instr& dot, const Machine& machine);
// The order of contracting dimensions is free, as long as both sides have the same: that of each
// side, ascending.
std::vector<std::pair<Dims, Dims>> ContractingOrders(const DotAttrs& attrs);
// One operand: `free` rows and `contracting` columns; nothing when it has to be moved first.
std::optional<Contraction::Matrix> MatrixOf(const Dims& dims, const Dims& free,
                                            const Dims& contracting, bool is_vector);

}  // namespace tokamak
