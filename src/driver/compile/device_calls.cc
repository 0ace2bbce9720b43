#include "driver/compile/device_calls.h"

#include <algorithm>

#include "driver/compile/custom_kernel_source.h"
#include "interp/lapack.h"
#include "lower/math_calls.h"

namespace tokamak {
namespace {

using cuda::FactorCall;
using Routine = FactorCall::Routine;
using Vectors = FactorCall::Vectors;

// Custom calls are not verified: accepts only the shapes of LAPACK's routines.
class LapackCallReader {
 public:
  explicit LapackCallReader(const Instr& instr)
      : instr_(instr), call_{instr, {}, {}}, wanted_(WantedResults(instr)) {
    const Dims& dims = instr.operand(0)->shape().dims();
    batch_.assign(dims.begin(), dims.end() - 2);
    rows_ = dims[dims.size() - 2];
    columns_ = dims.back();
    results_ = instr.shape().IsTuple() ? instr.shape().elements() : std::vector{instr.shape()};
  }

  std::optional<FactorCall> Read(std::string_view name) const {
    FactorCall made;
    made.element = MatrixElementOf(instr_.operand(0)->shape().type());
    made.rows = rows_;
    made.columns = columns_;
    for (int64_t size : batch_) made.batch *= size;
    bool fits = name == "getrf"                      ? ReadLu(made)
                : name == "geqrf"                    ? ReadQr(made)
                : name == "orgqr"                    ? ReadReflectors(made)
                : name == "syevd" || name == "eigh"  ? ReadEigen(made)
                : name == "gesdd" || name == "gesvd" ? ReadSingular(made)
                                                     : false;
    return fits && !IsSmall(made) ? std::optional(made) : std::nullopt;
  }

 private:
  // Eigenvectors and singular vectors are unique up to their signs, which libraries choose. The
  // host finishes small problems before cuSOLVER has started, with LAPACK's signs, so that results
  // on CPU and GPU agree.
  static bool IsSmall(const FactorCall& made) {
    // Matrix elements (chosen, see above).
    constexpr int64_t kSmall = 4096;
    bool any_sign = made.routine == Routine::kEigen || made.routine == Routine::kSingular;
    return any_sign && made.batch * made.rows * made.columns <= kSmall;
  }

  bool ReadLu(FactorCall& made) const {
    made.routine = Routine::kLu;
    return results_.size() == 3 && Is(0, {rows_, columns_}) && IsInt(1, {least()}) && IsInt(2, {});
  }
  bool ReadQr(FactorCall& made) const {
    made.routine = Routine::kQr;
    return HasInfo(2) && Is(0, {rows_, columns_}) && Is(1, {least()});
  }
  bool ReadReflectors(FactorCall& made) const {
    made.routine = Routine::kReflectors;
    if (instr_.operand_count() != 2) return false;
    const Shape& factors = instr_.operand(1)->shape();
    if (factors.rank() == 0) return false;
    made.reflectors = factors.dims().back();
    return HasInfo(1) && Is(0, {rows_, columns_}) && rows_ >= columns_ &&
           made.reflectors <= columns_ && made.reflectors > 0 &&
           factors.type() == instr_.operand(0)->shape().type() &&
           factors.dims() == With({made.reflectors});
  }
  bool ReadEigen(FactorCall& made) const {
    made.routine = Routine::kEigen;
    char uplo = call_.Letter("uplo", 'L');
    made.lower = uplo == 'L';
    made.vectors = call_.Attr("mode", 'V') == 'N' ? Vectors::kNone : Vectors::kAll;
    return (uplo == 'L' || uplo == 'U') && rows_ == columns_ && HasInfo(2) &&
           Is(0, {rows_, rows_}) && Has(1, {rows_}) &&
           (made.vectors != Vectors::kNone || !wanted_[0]);
  }
  // The operand's contents after the call are not used.
  bool ReadSingular(FactorCall& made) const {
    made.routine = Routine::kSingular;
    int64_t mode = call_.Attr("mode", 'A');
    made.vectors = mode == 'A' ? Vectors::kAll : mode == 'S' ? Vectors::kSome : Vectors::kNone;
    if (results_.size() != 5 || wanted_[0] || !Has(1, {least()}) || !IsInt(4, {})) return false;
    if (made.vectors == Vectors::kNone) return !wanted_[2] && !wanted_[3];
    bool all = made.vectors == Vectors::kAll;
    return Is(2, {rows_, all ? rows_ : least()}) && Is(3, {all ? columns_ : least(), columns_});
  }

  int64_t least() const { return std::min(rows_, columns_); }
  Dims With(std::initializer_list<int64_t> last) const {
    Dims dims = batch_;
    dims.insert(dims.end(), last);
    return dims;
  }
  bool Has(size_t result, std::initializer_list<int64_t> last) const {
    return results_[result].dims() == With(last);
  }
  // Whether a result has the operand's element type and these last dimensions.
  bool Is(size_t result, std::initializer_list<int64_t> last) const {
    return Has(result, last) && results_[result].type() == instr_.operand(0)->shape().type();
  }
  bool IsInt(size_t result, std::initializer_list<int64_t> last) const {
    return Has(result, last) && results_[result].type() == ElementType::kS32;
  }
  // Whether there are `others` results, optionally followed by `info`.
  bool HasInfo(size_t others) const {
    return results_.size() == others || (results_.size() == others + 1 && IsInt(others, {}));
  }

  const Instr& instr_;
  const LapackCall call_;
  const std::vector<bool> wanted_;
  Dims batch_;
  int64_t rows_ = 0, columns_ = 0;
  std::vector<Shape> results_;
};

// s32 pivots to an s32 permutation of rows.
std::optional<cuda::DeviceCall> PermutationOf(const Instr& instr) {
  const Shape& pivots = instr.operand(0)->shape();
  const Shape& result = instr.shape().IsTuple() ? instr.shape().elements()[0] : instr.shape();
  auto fits = [](const Shape& shape) {
    return shape.IsArray() && !shape.HasDynamicDims() && shape.type() == ElementType::kS32 &&
           shape.rank() > 0 && shape.ElementCount() > 0;
  };
  if (!fits(pivots) || !fits(result)) return std::nullopt;
  cuda::PermutationCall call;
  call.swaps = pivots.dims().back();
  call.rows = result.dims().back();
  call.batch = pivots.ElementCount() / call.swaps;
  if (result.ElementCount() != call.batch * call.rows) return std::nullopt;
  return call;
}

// A custom kernel with a CUDA source. The pass fuse-custom-kernels reports malformed ones before.
std::optional<cuda::DeviceCall> CustomCallOf(const Instr& instr) {
  Result<CustomKernelStep> step = CustomKernelStepOf(instr);
  if (!step.ok()) return std::nullopt;
  Result<cuda::CudaSource> source = CudaSourceOf(step.value());
  if (!source.ok()) return std::nullopt;
  return cuda::CustomKernelCall{std::move(source.value()), step.value().kernel.grid};
}

}  // namespace

std::optional<cuda::DeviceCall> DeviceCallOf(const Instr& instr) {
  if (CustomKernelIn(instr) != nullptr) return CustomCallOf(instr);
  if (instr.op() == Op::kFft) return FourierShapeOf(instr);
  if (instr.op() == Op::kCholesky) return CholeskyCallOf(instr);
  if (instr.op() == Op::kTriangularSolve) return TriangularCallOf(instr);
  if (instr.op() == Op::kCustomCall && instr.operand_count() == 1 &&
      instr.attrs<CustomCallAttrs>().target == "cu_lu_pivots_to_permutation")
    return PermutationOf(instr);
  if (!IsLapackStep(instr) || instr.operand(0)->shape().rank() < 2) return std::nullopt;
  std::optional<FactorCall> call =
      LapackCallReader(instr).Read(LapackRoutineOf(instr.attrs<CustomCallAttrs>().target));
  return call ? std::optional<cuda::DeviceCall>(*call) : std::nullopt;
}

}  // namespace tokamak
