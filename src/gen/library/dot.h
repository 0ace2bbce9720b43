#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"

// Which dots go to a BLAS library (cuBLAS, or the CPU's), and in which form. The decision for a
// dot:
//
//   1. Machine::uses_library: if it is not set, no dot or convolution goes to a library.
//      legalize-dots sets it in its copy of the machine if NeedsBlas(module) and the library can be
//      loaded (TargetLibraries::HasMatrixMultiply). For planner and lowering the driver sets it to
//      TargetLibraries::uses_library: a library for dots or for convolutions is used.
//   2. PrefersGenerator: a generator computes the dot. On CPUs this is every dot that
//      CanUseContract accepts. On GPUs: dots that the library does not support, that are too small
//      for a call, small ones in loops (PrefersKernelInLoop), and ones with small k and a single
//      elementwise consumer.
//   3. legalize-dots converts and transposes the operands of the other dots, if they have a
//      LibraryTypeOf and AmortizesLibraryCall holds, so that LibraryDotOf accepts them.
//   4. UsesLibrary, which planner and lowering ask: Machine::uses_library, not (2), LibraryTypeOf,
//      AmortizesLibraryCall and LibraryDotOf all hold.
//   5. Of the dots for which UsesLibrary is false, those that CanUseContract (gen/contract.h)
//      accepts go to the contract generator (kContract), the rest to kColumns: one lane per result.

namespace tokamak {

// A dot in the form of the library: a batch of matrix multiplications lhs (m x k) * rhs (k x n).
// Strides are in elements. Every matrix that is not a vector has one stride of 1. The contract
// generator (gen/contract.h) does not use this form, and accepts dots that do not have it.
struct LibraryDot {
  // Strides from row to row and from column to column.
  struct MatrixStrides {
    int64_t row = 1, column = 1;
  };
  // A batch dimension: its size, and its strides in the operands.
  struct BatchDim {
    int64_t count = 1, lhs = 0, rhs = 0;
  };
  ElementType type{};  // element type of the sums
  int64_t m = 1, n = 1, k = 1;
  MatrixStrides lhs, rhs;
  std::vector<BatchDim> batch;
};

// Returns the dot in this form; nullopt if the machine's library does not support its types, or an
// operand would first have to be converted or transposed. GPU libraries accept bf16 and f16.
std::optional<LibraryDot> LibraryDotOf(const Instr& dot, const Machine& machine);

// Whether the machine's library computes this dot or convolution. It must be supported in its
// current layout, and expected to be faster than a kernel. This is the final answer: step 4 above
// for a dot, UsesConvolutionLibrary (convolution.h) for a convolution.
bool UsesLibrary(const Instr& instr, const Machine& machine);

// Whether an instruction with this many multiplications is in the body of a while loop and so small
// that a library call per iteration would take longer than the computation. A kernel is preferred
// then, since a loop whose body has a library call cannot become a persistent kernel
// (lower/persistent.h).
bool PrefersKernelInLoop(const Instr& instr, double multiplications);

// Whether the module has a dot that is worth loading the library for: large enough, and not
// computed by a generator. Dots in loops count, since they may be hoisted.
bool NeedsBlas(const Module& module, const Machine& machine);

// ---- for legalize-dots, which lays out dots for the library

// The element type in which the library computes a dot; nullopt if it does not.
std::optional<ElementType> LibraryTypeOf(const Instr& dot);
// Whether the library multiplies the narrow floats (bf16, f16) of this dot directly and accumulates
// in f32; otherwise they are converted first.
bool SupportsNarrowFloats(const Instr& dot, const Machine& machine);
// Whether the dot is large enough to amortize a call.
bool AmortizesLibraryCall(const Instr& dot, const Machine& machine);
// Whether a generator computes the dot although a library may support it: step 2 above.
bool PrefersGenerator(const Instr& dot, const Machine& machine);
// Whether asynchronous multiplies of our own are as fast as a library's.
bool PrefersTensorContract(const Instr& dot, const Machine& machine);
// Contracting dimensions may be listed in any order that both operands share. Returns two
// candidates: ascending in lhs, and ascending in rhs.
std::vector<std::pair<Dims, Dims>> ContractingOrders(const DotAttrs& attrs);
// The strides of one operand of sizes `dims` as a matrix whose rows are the dimensions `free` and
// whose columns are the dimensions `contracting` (indices); nullopt if it has to be transposed
// first.
std::optional<LibraryDot::MatrixStrides> MatrixOf(const Dims& dims, const Dims& free,
                                                  const Dims& contracting, bool is_vector);

}  // namespace tokamak
