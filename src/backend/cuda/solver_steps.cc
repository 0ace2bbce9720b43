// Cholesky factorizations by cuSOLVER, triangular solves by cuBLAS. Both interpret a row-major
// matrix as its transpose, so triangles and sides swap and no data moves. Single matrices are
// transposed if the library is slower with the other triangle or side (measured on an H200: 2.7
// times slower with the upper triangle of 2048 x 2048, 10 times with eight columns from the right).

#include "backend/cuda/solver.h"

namespace tokamak::cuda {
namespace {

class CholeskyRun final : public DriverCall {
 public:
  CholeskyRun(const Solver& solver, const CholeskyCall& call) : solver_(solver), call_(call) {}

  Status Prepare(CallDevice& device) {
    TOK_TRY(check_, device.Kernel(CallKernel::kCheckCholesky, call_.element));
    TOK_TRY(finish_, device.Kernel(CallKernel::kFinish, call_.element));
    if (call_.batch > 1) {
      TOK_TRY(addresses_, device.Kernel(CallKernel::kAddresses, call_.element));
      return Ok();
    }
    TOK_TRY(transpose_, device.Kernel(CallKernel::kTranspose, call_.element));
    int n = static_cast<int>(call_.n);
    int status = solver_.potrf_size[type_](solver_.solver, transposes() ? kLower : triangle_, n,
                                           nullptr, n, &work_);
    return status == 0 ? Ok() : Status(LibraryError("cuSOLVER: potrf", status));
  }

  Status Run(std::span<void* const> arrays, CallDevice& device) const override {
    CallMemory parts;
    size_t info_at = parts.Add(static_cast<size_t>(call_.batch) * sizeof(int));
    size_t more_at = parts.Add(call_.batch > 1 ? static_cast<size_t>(call_.batch) * sizeof(void*)
                                               : static_cast<size_t>(work_) * width_);
    size_t transposed_at = parts.Add(transposes() ? bytes() : 0);
    TOK_TRY(DeviceMemory memory,
            DeviceMemory::Take(device.gpu(), parts.bytes(), "workspace of cuSOLVER"));
    auto* info = reinterpret_cast<int*>(memory.data() + info_at);
    std::byte* more = memory.data() + more_at;
    int n = static_cast<int>(call_.n);
    if (transposes()) {
      TOK_RETURN_IF_ERROR(
          FactorTransposed(arrays, memory.data() + transposed_at, more, info, device));
    } else {
      TOK_RETURN_IF_ERROR(FactorInPlace(arrays, more, info, device));
    }
    TOK_RETURN_IF_ERROR(LaunchWith(device, check_, {call_.batch}, info, arrays[1], n));
    int64_t tiles = (call_.n + kTransposeTile - 1) / kTransposeTile;
    return LaunchWith(device, finish_, {tiles, tiles, call_.batch}, arrays[1], info, n,
                      call_.lower ? 1 : 0);
  }

 private:
  bool transposes() const { return call_.batch == 1 && call_.lower; }
  size_t bytes() const { return static_cast<size_t>(call_.n * call_.n) * width_; }

  Status FactorTransposed(std::span<void* const> arrays, void* transposed_matrix, void* work,
                          int* info, CallDevice& device) const {
    int n = static_cast<int>(call_.n);
    TOK_RETURN_IF_ERROR(Transpose(device, transpose_, transposed_matrix, arrays[0], {1, n, n}));
    int status =
        solver_.potrf[type_](solver_.solver, kLower, n, transposed_matrix, n, work, work_, info);
    if (status != 0) return LibraryError("cuSOLVER: potrf", status);
    return Transpose(device, transpose_, arrays[1], transposed_matrix, {1, n, n});
  }

  Status FactorInPlace(std::span<void* const> arrays, std::byte* more, int* info,
                       CallDevice& device) const {
    int n = static_cast<int>(call_.n), status = 0;
    void* factor = arrays[1];
    TOK_RETURN_IF_ERROR(
        device.gpu().CopyWithin(factor, arrays[0], bytes() * static_cast<size_t>(call_.batch)));
    if (call_.batch > 1) {
      TOK_RETURN_IF_ERROR(StoreAddresses(device, addresses_, more, factor, bytes(), call_.batch));
      status =
          solver_.potrf_batched[type_](solver_.solver, triangle_, n, reinterpret_cast<void**>(more),
                                       n, info, static_cast<int>(call_.batch));
    } else {
      status = solver_.potrf[type_](solver_.solver, triangle_, n, factor, n, more, work_, info);
    }
    return status == 0 ? Ok() : Status(LibraryError("cuSOLVER: potrf", status));
  }

  const Solver& solver_;
  const CholeskyCall call_;
  const size_t type_ = IndexOf(call_.element), width_ = BytesOf(call_.element);
  const int triangle_ = call_.lower ? kUpper : kLower;
  int work_ = 0;
  CallDevice::Function check_, finish_, addresses_, transpose_;
};

class TriangularRun final : public DriverCall {
 public:
  TriangularRun(const Solver& solver, const TriangularCall& call) : solver_(solver), call_(call) {}

  Status Prepare(CallDevice& device) {
    if (call_.batch > 1) {
      TOK_TRY(addresses_, device.Kernel(CallKernel::kAddresses, call_.element));
    } else if (call_.left) {
      TOK_TRY(transpose_, device.Kernel(CallKernel::kTranspose, call_.element));
    }
    return Ok();
  }

  Status Run(std::span<void* const> arrays, CallDevice& device) const override {
    if (call_.batch == 1 && call_.left) return SolveFromLeft(arrays, device);
    TOK_RETURN_IF_ERROR(device.gpu().CopyWithin(arrays[2], arrays[1],
                                                right_bytes() * static_cast<size_t>(call_.batch)));
    const int side = call_.left ? 1 : 0, operation = call_.conjugated   ? 2
                                                     : call_.transposed ? 1
                                                                        : 0;
    if (call_.batch > 1) return SolveAll({side, operation}, arrays, device);
    return CheckStatus(solver_.trsm[type_](solver_.blas, side, triangle_, operation, diagonal_,
                                           columns_, rows_, one(), arrays[0], n_, arrays[2],
                                           columns_));
  }

 private:
  struct Form {
    int side = 0, operation = 0;
  };
  static Status CheckStatus(int status) {
    return status == 0 ? Ok() : Status(LibraryError("cuBLAS: trsm", status));
  }
  // For complex numbers, the real part comes first.
  const void* one() const {
    static constexpr float kOne[2] = {1, 0};
    static constexpr double kWideOne[2] = {1, 0};
    bool wide = call_.element == MatrixElement::kF64 || call_.element == MatrixElement::kC128;
    return wide ? static_cast<const void*>(kWideOne) : kOne;
  }
  bool is_complex() const {
    return call_.element == MatrixElement::kC64 || call_.element == MatrixElement::kC128;
  }
  size_t right_bytes() const { return static_cast<size_t>(call_.rows * call_.columns) * width_; }

  // The right-hand side is transposed, unless it is a vector. The library has no operation that
  // conjugates without transposing its view of the matrix; the right-hand side and the result are
  // conjugated instead.
  Status SolveFromLeft(std::span<void* const> arrays, CallDevice& device) const {
    bool conjugates = call_.conjugated && is_complex(), transposes = columns_ > 1 || conjugates;
    DeviceMemory memory;
    void* x = arrays[2];
    if (transposes) {
      TOK_TRY(memory, DeviceMemory::Take(device.gpu(), right_bytes(), "workspace of cuBLAS"));
      x = memory.data();
      TOK_RETURN_IF_ERROR(
          Transpose(device, transpose_, x, arrays[1], {1, rows_, columns_, conjugates}));
    } else {
      TOK_RETURN_IF_ERROR(device.gpu().CopyWithin(x, arrays[1], right_bytes()));
    }
    TOK_RETURN_IF_ERROR(CheckStatus(solver_.trsm[type_](solver_.blas, 0, triangle_,
                                                        call_.transposed ? 0 : 1, diagonal_, rows_,
                                                        columns_, one(), arrays[0], n_, x, rows_)));
    if (!transposes) return Ok();
    return Transpose(device, transpose_, arrays[2], x, {1, columns_, rows_, conjugates});
  }

  Status SolveAll(const Form& form, std::span<void* const> arrays, CallDevice& device) const {
    auto batch = static_cast<size_t>(call_.batch);
    CallMemory parts;
    size_t a_at = parts.Add(batch * sizeof(void*)), x_at = parts.Add(batch * sizeof(void*));
    TOK_TRY(DeviceMemory memory,
            DeviceMemory::Take(device.gpu(), parts.bytes(), "workspace of cuBLAS"));
    auto** all_a = reinterpret_cast<void**>(memory.data() + a_at);
    auto** all_x = reinterpret_cast<void**>(memory.data() + x_at);
    TOK_RETURN_IF_ERROR(StoreAddresses(device, addresses_, all_a, arrays[0],
                                       static_cast<size_t>(call_.n * call_.n) * width_,
                                       call_.batch));
    TOK_RETURN_IF_ERROR(
        StoreAddresses(device, addresses_, all_x, arrays[2], right_bytes(), call_.batch));
    return CheckStatus(solver_.trsm_batched[type_](
        solver_.blas, form.side, triangle_, form.operation, diagonal_, columns_, rows_, one(),
        all_a, n_, all_x, columns_, static_cast<int>(call_.batch)));
  }

  const Solver& solver_;
  const TriangularCall call_;
  const size_t type_ = IndexOf(call_.element), width_ = BytesOf(call_.element);
  const int triangle_ = call_.lower ? kUpper : kLower, diagonal_ = call_.unit ? 1 : 0,
            rows_ = static_cast<int>(call_.rows), columns_ = static_cast<int>(call_.columns),
            n_ = static_cast<int>(call_.n);
  CallDevice::Function addresses_, transpose_;
};

}  // namespace

Result<PreparedCall> PrepareMatrices(const CholeskyCall& call, CallDevice& device) {
  TOK_RETURN_IF_ERROR(CheckSizes(call.n, call.n, call.batch));
  TOK_TRY(const Solver* solver, Solver::Open(device));
  auto run = std::make_shared<CholeskyRun>(*solver, call);
  TOK_RETURN_IF_ERROR(run->Prepare(device));
  return PreparedCall(std::move(run));
}

Result<PreparedCall> PrepareMatrices(const TriangularCall& call, CallDevice& device) {
  TOK_RETURN_IF_ERROR(CheckSizes(call.n, call.n, call.batch));
  TOK_RETURN_IF_ERROR(CheckSizes(call.rows, call.columns, call.batch));
  TOK_TRY(const Solver* solver, Solver::Open(device));
  auto run = std::make_shared<TriangularRun>(*solver, call);
  TOK_RETURN_IF_ERROR(run->Prepare(device));
  return PreparedCall(std::move(run));
}

}  // namespace tokamak::cuda
