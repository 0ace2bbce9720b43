#include "backend/cuda/solver.h"

#include <algorithm>

#include <fmt/format.h>

#include "backend/cuda/opened_library.h"

namespace tokamak::cuda {
namespace {

constexpr int kLeastBlas = 12, kLeastSolver = 11;  // major versions in CUDA 12

// Resolves "cusolverDn{}potrf" with {} replaced by S, D, C, Z.
template <typename Routine>
void FindAll(OpenedLibrary& library, std::string_view real, std::string_view complex,
             Routine& routine) {
  constexpr std::string_view kLetters = "SDCZ";
  for (size_t i = 0; i < 4; ++i) {
    std::string symbol(i < 2 ? real : complex);
    symbol.replace(symbol.find("{}"), 2, kLetters.substr(i, 1));
    library.Find(symbol, routine[i]);
  }
}
template <typename Routine>
void FindAll(OpenedLibrary& library, std::string_view name, Routine& routine) {
  FindAll(library, name, name, routine);
}

}  // namespace

Status Solver::FindSolver(Handle stream) {
  TOK_TRY(OpenedLibrary library,
          OpenedLibrary::Open("cuSOLVER", "libcusolver.so", "cusolverGetProperty", kLeastSolver));
  FindAll(library, "cusolverDn{}potrf_bufferSize", potrf_size);
  FindAll(library, "cusolverDn{}potrf", potrf);
  FindAll(library, "cusolverDn{}potrfBatched", potrf_batched);
  FindAll(library, "cusolverDn{}getrf_bufferSize", getrf_size);
  FindAll(library, "cusolverDn{}getrf", getrf);
  FindAll(library, "cusolverDn{}geqrf_bufferSize", geqrf_size);
  FindAll(library, "cusolverDn{}geqrf", geqrf);
  FindAll(library, "cusolverDn{}orgqr_bufferSize", "cusolverDn{}ungqr_bufferSize", orgqr_size);
  FindAll(library, "cusolverDn{}orgqr", "cusolverDn{}ungqr", orgqr);
  FindAll(library, "cusolverDn{}syevd_bufferSize", "cusolverDn{}heevd_bufferSize", syevd_size);
  FindAll(library, "cusolverDn{}syevd", "cusolverDn{}heevd", syevd);
  FindAll(library, "cusolverDn{}syevjBatched_bufferSize", "cusolverDn{}heevjBatched_bufferSize",
          syevj_batched_size);
  FindAll(library, "cusolverDn{}syevjBatched", "cusolverDn{}heevjBatched", syevj_batched);
  FindAll(library, "cusolverDn{}gesvdj_bufferSize", gesvdj_size);
  FindAll(library, "cusolverDn{}gesvdj", gesvdj);
  FindAll(library, "cusolverDn{}gesvdjBatched_bufferSize", gesvdj_batched_size);
  FindAll(library, "cusolverDn{}gesvdjBatched", gesvdj_batched);
  int (*create)(Handle*) = nullptr, (*create_eigen)(Handle*) = nullptr,
      (*create_singular)(Handle*) = nullptr;
  library.Find("cusolverDnCreate", create);
  library.Find("cusolverDnCreateSyevjInfo", create_eigen);
  library.Find("cusolverDnCreateGesvdjInfo", create_singular);
  int (*set_stream)(Handle, Handle) = nullptr;
  library.Find("cusolverDnSetStream", set_stream);
  TOK_RETURN_IF_ERROR(library.missing());
  int status = create(&solver);
  if (status == 0) status = set_stream(solver, stream);
  if (status == 0) status = create_eigen(&eigen_options);
  if (status == 0) status = create_singular(&singular_options);
  return status == 0 ? Ok() : Status(LibraryError("cuSOLVER", status));
}

Status Solver::FindBlas(Handle stream) {
  TOK_TRY(OpenedLibrary library,
          OpenedLibrary::Open("cuBLAS", "libcublas.so", "cublasGetProperty", kLeastBlas));
  FindAll(library, "cublas{}getrfBatched", getrf_batched);
  FindAll(library, "cublas{}trsm_v2", trsm);
  FindAll(library, "cublas{}trsmBatched", trsm_batched);
  int (*create)(Handle*) = nullptr;
  int (*set_stream)(Handle, Handle) = nullptr;
  library.Find("cublasCreate_v2", create);
  library.Find("cublasSetStream_v2", set_stream);
  TOK_RETURN_IF_ERROR(library.missing());
  int status = create(&blas);
  if (status == 0) status = set_stream(blas, stream);
  return status == 0 ? Ok() : Status(LibraryError("cuBLAS", status));
}

Result<Solver> Solver::Load(CallDevice& device) {
  Solver made;
  TOK_RETURN_IF_ERROR(made.FindBlas(device.stream()));
  TOK_RETURN_IF_ERROR(made.FindSolver(device.stream()));
  return made;
}

Result<const Solver*> Solver::Open(CallDevice& device) {
  static const auto* loaded = new Result<Solver>(Load(device));
  if (!loaded->ok()) return loaded->error();
  return &loaded->value();
}

size_t BytesOf(MatrixElement element) {
  constexpr size_t kBytes[] = {4, 8, 8, 16};
  return kBytes[IndexOf(element)];
}

Error LibraryError(const char* library, int status) {
  return MakeError(ErrorCode::kDeviceFault, fmt::format("{}: status {}", library, status));
}

Status CheckSizes(int64_t rows, int64_t columns, int64_t batch) {
  // Elements must be countable by int; the batch is a grid dimension (CUDA programming guide).
  constexpr int64_t kMost = int64_t{1} << 31, kMostBatch = 65535;
  if (rows > 0 && columns > 0 && batch > 0 && rows < kMost && columns < kMost / rows &&
      batch <= kMostBatch)
    return Ok();
  return MakeError(ErrorCode::kUnsupportedOp,
                   fmt::format("cuSOLVER: {} matrices of {} x {}", batch, rows, columns));
}

Status Transpose(CallDevice& device, const CallDevice::Function& transpose, void* to,
                 const void* from, const TransposedForm& form) {
  auto tiles = [](int64_t size) { return (size + kTransposeTile - 1) / kTransposeTile; };
  return LaunchWith(device, transpose, {tiles(form.columns), tiles(form.rows), form.batch}, to,
                    from, static_cast<int>(form.rows), static_cast<int>(form.columns),
                    form.stride == 0 ? form.rows * form.columns : form.stride,
                    form.conjugates ? 1 : 0);
}

Status StoreAddresses(CallDevice& device, const CallDevice::Function& addresses, void* to,
                      const void* first, size_t bytes, int64_t count) {
  return LaunchWith(device, addresses, {(count + kCallThreads - 1) / kCallThreads}, to, first,
                    static_cast<int64_t>(bytes), count);
}

}  // namespace tokamak::cuda
