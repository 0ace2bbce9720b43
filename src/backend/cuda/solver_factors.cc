// LAPACK's factorizations by cuSOLVER: LU, QR, eigenvalues and singular values.

#include <algorithm>

#include "backend/cuda/solver.h"
#include "kernel/gpu_limits.h"

namespace tokamak::cuda {
namespace {

using Routine = FactorCall::Routine;
using Vectors = FactorCall::Vectors;

// Common to all routines: a loop over the matrices of a batch, and workspace.
class FactorRun : public DriverCall {
 public:
  FactorRun(const Solver& solver, const FactorCall& call)
      : solver_(solver),
        call_(call),
        type_(IndexOf(call.element)),
        width_(BytesOf(call.element)),
        m_(static_cast<int>(call.rows)),
        n_(static_cast<int>(call.columns)),
        k_(std::min(m_, n_)),
        count_(static_cast<int>(call.batch)) {}

  Status Prepare(CallDevice& device) {
    TOK_TRY(transpose_, device.Kernel(CallKernel::kTranspose, call_.element));
    int status = AskWork();
    if (status != 0) return FactorizationError(status);
    return More(device);
  }

  Status Run(std::span<void* const> arrays, CallDevice& device) const override {
    CallMemory parts;
    size_t matrices_at = parts.Add(Matrices(m_, n_)),
           work_at = parts.Add(static_cast<size_t>(std::max(work_, 1)) * width_),
           info_at = parts.Add(static_cast<size_t>(count_) * sizeof(int)),
           own_at = parts.Add(OwnBytes());
    TOK_TRY(DeviceMemory memory,
            DeviceMemory::Take(device.gpu(), parts.bytes(), "workspace of cuSOLVER"));
    Workspace workspace{.matrices = memory.data() + matrices_at,
                        .work = memory.data() + work_at,
                        .own = memory.data() + own_at,
                        .info = reinterpret_cast<int*>(memory.data() + info_at)};
    return Factor(arrays, workspace, device);
  }

 protected:
  struct Workspace {
    std::byte *matrices, *work, *own;
    int* info;
  };
  // Queries work_. Returns a status of the library.
  virtual int AskWork() = 0;
  virtual Status More(CallDevice&) { return Ok(); }
  virtual size_t OwnBytes() const { return 0; }
  virtual Status Factor(std::span<void* const> arrays, const Workspace& workspace,
                        CallDevice& device) const = 0;

  size_t Matrices(int rows, int columns) const {
    return static_cast<size_t>(count_) * static_cast<size_t>(rows) * static_cast<size_t>(columns) *
           width_;
  }
  std::byte* Item(void* array, int item, int64_t elements, size_t width) const {
    return static_cast<std::byte*>(array) + static_cast<size_t>(item * elements) * width;
  }
  std::byte* Item(void* array, int item, int64_t elements) const {
    return Item(array, item, elements, width_);
  }
  int64_t Elements() const { return call_.rows * call_.columns; }
  // Eigenvalues and singular values are real.
  size_t RealWidth() const {
    return call_.element == MatrixElement::kF32 || call_.element == MatrixElement::kC64 ? 4 : 8;
  }
  // Where `info` of the batch goes: to result number `result` if the call has it.
  int* InfoOf(std::span<void* const> arrays, size_t result, const Workspace& workspace) const {
    return arrays.size() > result ? static_cast<int*>(arrays[result]) : workspace.info;
  }
  // Calls body(item) for each matrix until a status is not 0.
  template <typename Body>
  Status ForEach(Body&& body) const {
    for (int item = 0; item < count_; ++item)
      if (int status = body(item); status != 0) return FactorizationError(status);
    return Ok();
  }
  static Error FactorizationError(int status) {
    return LibraryError("cuSOLVER: a factorization", status);
  }
  Status LaunchTranspose(CallDevice& device, void* to, const void* from, int rows, int columns,
                         bool conjugates = false) const {
    return Transpose(device, transpose_, to, from, {count_, rows, columns, conjugates});
  }

  const Solver& solver_;
  const FactorCall call_;
  const size_t type_, width_;
  const int m_, n_, k_, count_;
  int work_ = 0;  // elements
  CallDevice::Function transpose_;
};

class LuRun final : public FactorRun {
 public:
  using FactorRun::FactorRun;

 private:
  // Small matrices of a batch are factored in one call. The limit is chosen; no measurement on
  // record.
  bool together() const { return count_ > 1 && m_ == n_ && n_ <= 256; }
  int AskWork() override {
    return solver_.getrf_size[type_](solver_.solver, m_, n_, nullptr, m_, &work_);
  }
  Status More(CallDevice& device) override {
    TOK_TRY(addresses_, device.Kernel(CallKernel::kAddresses, call_.element));
    TOK_TRY(finite_, device.Kernel(CallKernel::kFinite, call_.element));
    TOK_TRY(fill_nan_, device.Kernel(CallKernel::kFillNan, call_.element));
    return Ok();
  }
  size_t OwnBytes() const override { return static_cast<size_t>(count_) * sizeof(void*); }
  Status Factor(std::span<void* const> arrays, const Workspace& workspace,
                CallDevice& device) const override {
    TOK_RETURN_IF_ERROR(LaunchTranspose(device, workspace.matrices, arrays[0], m_, n_));
    int* pivots = static_cast<int*>(arrays[2]);
    int* info = InfoOf(arrays, 3, workspace);
    if (together()) {
      TOK_RETURN_IF_ERROR(StoreAddresses(device, addresses_, workspace.own, workspace.matrices,
                                         static_cast<size_t>(Elements()) * width_, count_));
      int status = solver_.getrf_batched[type_](
          solver_.blas, n_, reinterpret_cast<void**>(workspace.own), n_, pivots, info, count_);
      if (status != 0) return LibraryError("cuBLAS: getrf", status);
    } else {
      TOK_RETURN_IF_ERROR(ForEach([&](int item) {
        return solver_.getrf[type_](solver_.solver, m_, n_,
                                    Item(workspace.matrices, item, Elements()), m_, workspace.work,
                                    pivots + int64_t{item} * k_, info + item);
      }));
    }
    TOK_RETURN_IF_ERROR(LaunchTranspose(device, arrays[1], workspace.matrices, n_, m_));
    return FillNan(arrays, workspace, device);
  }
  // The library turns NaN into finite numbers (measured on an H200: a system with a NaN had a
  // finite solution).
  Status FillNan(std::span<void* const> arrays, const Workspace& workspace,
                 CallDevice& device) const {
    auto* flags = reinterpret_cast<int*>(workspace.own);
    TOK_RETURN_IF_ERROR(device.gpu().Fill(flags, 0, static_cast<size_t>(count_) * sizeof(int)));
    TOK_RETURN_IF_ERROR(LaunchWith(device, finite_, {count_}, flags, arrays[0], m_, n_, 0));
    return LaunchWith(device, fill_nan_, {count_}, arrays[1], flags, m_, n_);
  }

  CallDevice::Function addresses_, finite_, fill_nan_;
};

// Matrices that fit shared memory and are small enough for one block to be fast. kMostBytes is the
// static limit; the others are chosen; no measurement on record.
bool IsSmall(const FactorCall& call) {
  constexpr int64_t kMostNumbers = 6144, kMostBytes = kStaticSharedBytes, kMostRows = 512;
  int64_t numbers = call.rows * call.columns;
  return call.rows <= kMostRows && numbers <= kMostNumbers &&
         numbers * static_cast<int64_t>(BytesOf(call.element)) <= kMostBytes;
}

class SmallQrRun final : public DriverCall {
 public:
  explicit SmallQrRun(const FactorCall& call) : call_(call) {}

  Status Prepare(CallDevice& device) {
    TOK_TRY(kernel_,
            device.Kernel(makes_factors() ? CallKernel::kSmallQr : CallKernel::kSmallReflectors,
                          call_.element));
    return Ok();
  }
  Status Run(std::span<void* const> arrays, CallDevice& device) const override {
    int m = static_cast<int>(call_.rows), n = static_cast<int>(call_.columns);
    CallDevice::Grid grid{
        .x = call_.batch,
        .shared_bytes = static_cast<size_t>(m) * static_cast<size_t>(n) * BytesOf(call_.element)};
    constexpr size_t kInfo = 3;
    if (arrays.size() > kInfo)
      TOK_RETURN_IF_ERROR(
          device.gpu().Fill(arrays[kInfo], 0, static_cast<size_t>(call_.batch) * sizeof(int)));
    if (makes_factors())
      return LaunchWith(device, kernel_, grid, arrays[1], arrays[2], arrays[0], m, n);
    return LaunchWith(device, kernel_, grid, arrays[2], arrays[0], arrays[1], m, n,
                      static_cast<int>(call_.reflectors));
  }

 private:
  bool makes_factors() const { return call_.routine == Routine::kQr; }

  const FactorCall call_;
  CallDevice::Function kernel_;
};

class QrRun final : public FactorRun {
 public:
  using FactorRun::FactorRun;

 private:
  int AskWork() override {
    return solver_.geqrf_size[type_](solver_.solver, m_, n_, nullptr, m_, &work_);
  }
  Status Factor(std::span<void* const> arrays, const Workspace& workspace,
                CallDevice& device) const override {
    TOK_RETURN_IF_ERROR(LaunchTranspose(device, workspace.matrices, arrays[0], m_, n_));
    int* info = InfoOf(arrays, 3, workspace);
    TOK_RETURN_IF_ERROR(ForEach([&](int item) {
      return solver_.geqrf[type_](solver_.solver, m_, n_,
                                  Item(workspace.matrices, item, Elements()), m_,
                                  Item(arrays[2], item, k_), workspace.work, work_, info + item);
    }));
    return LaunchTranspose(device, arrays[1], workspace.matrices, n_, m_);
  }
};

class ReflectorsRun final : public FactorRun {
 public:
  using FactorRun::FactorRun;

 private:
  int reflectors() const { return static_cast<int>(call_.reflectors); }
  int AskWork() override {
    return solver_.orgqr_size[type_](solver_.solver, m_, n_, reflectors(), nullptr, m_, nullptr,
                                     &work_);
  }
  Status Factor(std::span<void* const> arrays, const Workspace& workspace,
                CallDevice& device) const override {
    TOK_RETURN_IF_ERROR(LaunchTranspose(device, workspace.matrices, arrays[0], m_, n_));
    int* info = InfoOf(arrays, 3, workspace);
    TOK_RETURN_IF_ERROR(ForEach([&](int item) {
      return solver_.orgqr[type_](
          solver_.solver, m_, n_, reflectors(), Item(workspace.matrices, item, Elements()), m_,
          Item(arrays[1], item, call_.reflectors), workspace.work, work_, info + item);
    }));
    return LaunchTranspose(device, arrays[2], workspace.matrices, n_, m_);
  }
};

// A row-major Hermitian matrix is the library's matrix conjugated; so are its vectors.
class EigenRun final : public FactorRun {
 public:
  using FactorRun::FactorRun;
  bool waits() const override { return true; }

 private:
  // Largest size for which the batched Jacobi method is used. Chosen; no measurement on record.
  static constexpr int kMostOfJacobi = 32;
  Status More(CallDevice& device) override {
    TOK_TRY(finite_, device.Kernel(CallKernel::kFinite, call_.element));
    return Ok();
  }
  bool together() const { return n_ <= kMostOfJacobi; }
  int mode() const { return call_.vectors == Vectors::kNone ? 0 : 1; }
  int triangle() const { return call_.lower ? kUpper : kLower; }
  int AskWork() override {
    if (together())
      return solver_.syevj_batched_size[type_](solver_.solver, mode(), triangle(), n_, nullptr, n_,
                                               nullptr, &work_, solver_.eigen_options, count_);
    return solver_.syevd_size[type_](solver_.solver, mode(), triangle(), n_, nullptr, n_, nullptr,
                                     &work_);
  }
  Status Factor(std::span<void* const> arrays, const Workspace& workspace,
                CallDevice& device) const override {
    TOK_RETURN_IF_ERROR(device.gpu().CopyWithin(workspace.matrices, arrays[0], Matrices(n_, n_)));
    int* info = InfoOf(arrays, 3, workspace);
    if (together()) {
      int status = solver_.syevj_batched[type_](solver_.solver, mode(), triangle(), n_,
                                                workspace.matrices, n_, arrays[2], workspace.work,
                                                work_, info, solver_.eigen_options, count_);
      if (status != 0) return FactorizationError(status);
    } else {
      TOK_RETURN_IF_ERROR(ForEach([&](int item) {
        return solver_.syevd[type_](
            solver_.solver, mode(), triangle(), n_, Item(workspace.matrices, item, Elements()), n_,
            Item(arrays[2], item, n_, RealWidth()), workspace.work, work_, info + item);
      }));
    }
    // The library may turn NaN into finite numbers.
    TOK_RETURN_IF_ERROR(
        LaunchWith(device, finite_, {count_}, info, arrays[0], n_, n_, call_.lower ? 1 : 2));
    return LaunchTranspose(device, arrays[1], workspace.matrices, n_, n_, true);
  }

  CallDevice::Function finite_;
};

// A^T = conj(V) S U^T: the library's left vectors are our right ones, already in our memory layout.
// The others are transposed.
class SingularRun final : public FactorRun {
 public:
  using FactorRun::FactorRun;
  bool waits() const override { return true; }

 private:
  int mode() const { return call_.vectors == Vectors::kNone ? 0 : 1; }
  int thin() const { return call_.vectors == Vectors::kAll ? 0 : 1; }
  // Columns of the left vectors.
  int columns() const { return call_.vectors == Vectors::kAll ? m_ : k_; }
  Status More(CallDevice& device) override {
    TOK_TRY(finite_, device.Kernel(CallKernel::kFinite, call_.element));
    return Ok();
  }
  // Small matrices of a batch are factored in one call, which computes all vectors. The limit is
  // that of gesvdjBatched (cuSOLVER documentation).
  static constexpr int kMaxThreadsPerPoint = 32;
  bool together() const {
    return count_ > 1 && m_ <= kMaxThreadsPerPoint && n_ <= kMaxThreadsPerPoint;
  }
  int AskWork() override {
    if (together())
      return solver_.gesvdj_batched_size[type_](solver_.solver, mode(), n_, m_, nullptr, n_,
                                                nullptr, nullptr, n_, nullptr, m_, &work_,
                                                solver_.singular_options, count_);
    return solver_.gesvdj_size[type_](solver_.solver, mode(), thin(), n_, m_, nullptr, n_, nullptr,
                                      nullptr, n_, nullptr, m_, &work_, solver_.singular_options);
  }
  // Workspace for our left vectors, and for the right ones if the results have no room for them.
  size_t LeftBytes() const { return Matrices(m_, together() ? m_ : columns()); }
  size_t OwnBytes() const override {
    return LeftBytes() + (together() ? Matrices(n_, n_) : mode() == 0 ? Matrices(n_, k_) : 0);
  }
  Status Factor(std::span<void* const> arrays, const Workspace& workspace,
                CallDevice& device) const override {
    TOK_RETURN_IF_ERROR(device.gpu().CopyWithin(workspace.matrices, arrays[0], Matrices(m_, n_)));
    int* info = InfoOf(arrays, 5, workspace);
    if (together()) {
      TOK_RETURN_IF_ERROR(FactorTogether(arrays, workspace, info, device));
    } else {
      TOK_RETURN_IF_ERROR(FactorOneByOne(arrays, workspace, info));
    }
    TOK_RETURN_IF_ERROR(LaunchWith(device, finite_, {count_}, info, arrays[0], m_, n_, 0));
    if (mode() == 0) return Ok();
    return Transpose(device, transpose_, arrays[3], workspace.own,
                     {.batch = count_,
                      .rows = columns(),
                      .columns = m_,
                      .conjugates = true,
                      .stride = int64_t{m_} * (together() ? m_ : columns())});
  }

  int64_t right() const { return call_.vectors == Vectors::kAll ? n_ : k_; }

  Status FactorOneByOne(std::span<void* const> arrays, const Workspace& workspace,
                        int* info) const {
    int64_t left = int64_t{m_} * columns();
    void* vectors = mode() == 0 ? workspace.own + LeftBytes() : arrays[4];
    return ForEach([&](int item) {
      return solver_.gesvdj[type_](
          solver_.solver, mode(), thin(), n_, m_, Item(workspace.matrices, item, Elements()), n_,
          Item(arrays[2], item, k_, RealWidth()), Item(vectors, item, n_ * right()), n_,
          Item(workspace.own, item, left), m_, workspace.work, work_, info + item,
          solver_.singular_options);
    });
  }

  Status FactorTogether(std::span<void* const> arrays, const Workspace& workspace, int* info,
                        CallDevice& device) const {
    void* vectors = workspace.own + LeftBytes();
    int status = solver_.gesvdj_batched[type_](
        solver_.solver, mode(), n_, m_, workspace.matrices, n_, arrays[2], vectors, n_,
        workspace.own, m_, workspace.work, work_, info, solver_.singular_options, count_);
    if (status != 0) return FactorizationError(status);
    if (mode() == 0) return Ok();
    // The first k vectors, in their memory layout: a row becomes a column.
    return Transpose(
        device, transpose_, arrays[4], vectors,
        {.batch = count_, .rows = 1, .columns = n_ * right(), .stride = int64_t{n_} * n_});
  }

  CallDevice::Function finite_;
};

class PermutationRun final : public DriverCall {
 public:
  explicit PermutationRun(const PermutationCall& call) : call_(call) {}

  Status Prepare(CallDevice& device) {
    TOK_TRY(kernel_, device.Kernel(CallKernel::kPermutation, MatrixElement::kF32));
    return Ok();
  }
  Status Run(std::span<void* const> arrays, CallDevice& device) const override {
    return LaunchWith(device, kernel_, {call_.batch}, arrays[1], arrays[0],
                      static_cast<int>(call_.swaps), static_cast<int>(call_.rows));
  }

 private:
  const PermutationCall call_;
  CallDevice::Function kernel_;
};

std::shared_ptr<FactorRun> RunOf(const Solver& solver, const FactorCall& call) {
  switch (call.routine) {
    case Routine::kLu:
      return std::make_shared<LuRun>(solver, call);
    case Routine::kQr:
      return std::make_shared<QrRun>(solver, call);
    case Routine::kReflectors:
      return std::make_shared<ReflectorsRun>(solver, call);
    case Routine::kEigen:
      return std::make_shared<EigenRun>(solver, call);
    case Routine::kSingular:
      return std::make_shared<SingularRun>(solver, call);
  }
  return nullptr;
}

}  // namespace

Result<PreparedCall> PrepareMatrices(const PermutationCall& call, CallDevice& device) {
  TOK_RETURN_IF_ERROR(CheckSizes(call.rows, call.swaps, call.batch));
  auto run = std::make_shared<PermutationRun>(call);
  TOK_RETURN_IF_ERROR(run->Prepare(device));
  return PreparedCall(std::move(run));
}

Result<PreparedCall> PrepareMatrices(const FactorCall& call, CallDevice& device) {
  TOK_RETURN_IF_ERROR(CheckSizes(call.rows, call.columns, call.batch));
  bool is_qr = call.routine == Routine::kQr || call.routine == Routine::kReflectors;
  if (is_qr && IsSmall(call)) {
    auto run = std::make_shared<SmallQrRun>(call);
    TOK_RETURN_IF_ERROR(run->Prepare(device));
    return PreparedCall(std::move(run));
  }
  TOK_TRY(const Solver* solver, Solver::Open(device));
  std::shared_ptr<FactorRun> run = RunOf(*solver, call);
  TOK_RETURN_IF_ERROR(run->Prepare(device));
  return PreparedCall(std::move(run));
}

}  // namespace tokamak::cuda
