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

// Whether a custom call is one of linear algebra: lapack_*_ffi as JAX calls
// them on CPUs, and the names that XLA gives such calls (Qr,
// ProductOfElementaryHouseholderReflectors, LuDecomposition, Eigh,
// cu_lu_pivots_to_permutation).
bool IsLinearAlgebraCall(std::string_view target);
// The routine of such a call, without its type letter ("getrf"; "syevd" of complex numbers, too);
// "" when it has none.
std::string LapackRoutineOf(std::string_view target);
// Runs it, in the precision of its operands (in double in oracle mode): with another one, vectors
// that are determined up to a factor would differ from those of JAX. Without LAPACK: TK5001.
Result<Value> EvalLinearAlgebraCall(const Instr& instr, std::span<const Value> operands,
                                    Context& context);

// Whether operands and results are arrays of LAPACK's own numbers (f32, f64, c64 or c128, one
// precision for all, and s32), so that LapackRoutine takes them as they lie in memory.
bool IsOfLapackArrays(const Instr& instr);
// The matrices, or systems, of such a call, which need nothing of each other, and multiplications
// for one of them, roughly.
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
  const Dims* dims = nullptr;  // of a shape that is there as long
  Kind kind{};
  void* data = nullptr;  // of an operand: read only; of a result: null when nobody wants it
};

// How the calls are written down: a name as in LAPACK without its type letter.
// "ungqr", "unmqr", "heevd" and "hetrd" are "orgqr", "ormqr", "syevd", "sytrd".
struct LapackCall {
  const Instr& instr;
  std::span<const LapackArray> operands, results;
  bool is_double = false;
  LapackRange items = {};
  // The character, number or bool of an attribute; `otherwise` when it is absent.
  int64_t Attr(std::string_view name, int64_t otherwise) const;
  // An attribute that is a letter; `otherwise` when it is absent or something else. LAPACK ends the
  // process at a letter that it does not know: those were refused before the call.
  char Letter(std::string_view name, char otherwise) const;
};
using LapackFn = Status (*)(const LapackCall&);

// The same call on dense row-major arrays: what can be known before is found once. A result whose
// address is null is not made. Threads may share out the items.
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

// Null when there is none.
LapackFn FindFactorization(std::string_view name);  // lapack_factor.cc
LapackFn FindDecomposition(std::string_view name);  // lapack_eigen.cc

}  // namespace tokamak
