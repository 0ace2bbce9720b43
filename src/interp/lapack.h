#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interp/context.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Whether a custom call is a linear-algebra call: lapack_*_ffi as JAX calls them on CPUs, and XLA's
// names for such calls (Qr, ProductOfElementaryHouseholderReflectors, LuDecomposition, Eigh,
// cu_lu_pivots_to_permutation).
bool IsLinearAlgebraCall(std::string_view target);
// The LAPACK routine of such a call, without its type letter ("getrf"; "syevd" for complex numbers,
// too); "" if it has none.
std::string LapackRoutineOf(std::string_view target);
// Runs the call in the precision of its operands (in double in oracle mode): in another precision,
// vectors that are determined only up to a factor would differ from JAX's. Returns TK5001 without
// LAPACK.
Result<Value> EvalLinearAlgebraCall(const Instr& instr, std::span<const Value> operands,
                                    Context& context);

// Whether all operands and results have element types that LAPACK uses (f32, f64, c64 or c128 in a
// single precision, and s32), so that LapackRoutine can use them in place.
bool IsOfLapackArrays(const Instr& instr);
// Whether an instruction is a linear-algebra call that LapackRoutine can run.
bool IsLapackStep(const Instr& instr);
// Which results of a call have users.
std::vector<bool> WantedResults(const Instr& instr);
// The number of independent matrices or systems of such a call, and the approximate number of
// multiplications for each.
struct LapackBatch {
  int64_t items = 1;
  double products = 0;
};
LapackBatch BatchOf(const Instr& instr);
// Items [begin, end) of the batch.
struct LapackRange {
  int64_t begin = 0, end = INT64_MAX;
};
// One operand or result: dense and row-major, of int, or of reals or complex numbers in the
// precision of the call.
struct LapackArray {
  enum class Kind : uint8_t { kInt, kReal, kComplex };
  const Dims* dims = nullptr;  // of a shape that lives as long as this
  Kind kind{};
  void* data = nullptr;  // operand: read only; result: null if unused
};

// The routine names are LAPACK's without the type letter. "ungqr", "unmqr", "heevd" and "hetrd" are
// called "orgqr", "ormqr", "syevd", "sytrd".
struct LapackCall {
  const Instr& instr;
  std::span<const LapackArray> operands, results;
  bool is_double = false;
  LapackRange items = {};
  // The character, number or bool of an attribute; `otherwise` if it is absent.
  int64_t Attr(std::string_view name, int64_t otherwise) const;
  // A letter attribute; `otherwise` if it is absent or not a letter. LAPACK aborts the process on
  // an unknown letter, so unknown letters are rejected before the call.
  char Letter(std::string_view name, char otherwise) const;
};
using LapackFn = Status (*)(const LapackCall&);

// The same call on dense row-major arrays, with everything that can be precomputed computed once. A
// result whose address is null is not computed. Threads may split the items.
class LapackRoutine {
 public:
  explicit LapackRoutine(const Instr& instr);
  Status Run(std::span<void* const> operands, std::span<void* const> results,
             LapackRange items = {}) const;

 private:
  LapackCall CallOf(std::span<const LapackArray> arrays, LapackRange items) const;

  const Instr& instr_;
  std::vector<LapackArray> arrays_;  // operands, then results
  Result<LapackFn> fn_;
};

// Each returns null if the routine is unknown.
LapackFn FindFactorization(std::string_view name);  // lapack_factor.cc
LapackFn FindDecomposition(std::string_view name);  // lapack_eigen.cc

}  // namespace tokamak
