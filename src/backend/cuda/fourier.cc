// Fourier transforms by cuFFT.

#include <array>

#include <fmt/format.h>

#include "backend/cuda/driver_calls.h"
#include "backend/cuda/opened_library.h"

namespace tokamak::cuda {
namespace {

constexpr int kFourierLeastMajor = 11;  // of CUDA 12

// Functions and enumerators of cufft.h (CUDA 12 and 13); 0 is success.
struct Cufft {
  using Count = long long;
  int (*create)(int* plan) = nullptr;
  int (*destroy)(int plan) = nullptr;
  int (*allocate)(int plan, int automatic) = nullptr;
  int (*make)(int plan, int rank, Count* lengths, Count* in_sizes, Count in_stride,
              Count in_distance, Count* out_sizes, Count out_stride, Count out_distance, int type,
              Count batch, size_t* work) = nullptr;
  int (*set_stream)(int plan, Handle stream) = nullptr;
  int (*set_work)(int plan, void* work) = nullptr;
  // f32, f64.
  std::array<int (*)(int plan, const void* from, void* to, int direction), 2> complex{};
  std::array<int (*)(int plan, const void*from, void*to), 2> from_real{}, to_real{};

  static Result<Cufft> Load() {
    TOK_TRY(OpenedLibrary library,
            OpenedLibrary::Open("cuFFT", "libcufft.so", "cufftGetProperty", kFourierLeastMajor));
    Cufft fft;
    library.Find("cufftCreate", fft.create);
    library.Find("cufftDestroy", fft.destroy);
    library.Find("cufftSetAutoAllocation", fft.allocate);
    library.Find("cufftMakePlanMany64", fft.make);
    library.Find("cufftSetStream", fft.set_stream);
    library.Find("cufftSetWorkArea", fft.set_work);
    library.Find("cufftExecC2C", fft.complex[0]);
    library.Find("cufftExecZ2Z", fft.complex[1]);
    library.Find("cufftExecR2C", fft.from_real[0]);
    library.Find("cufftExecD2Z", fft.from_real[1]);
    library.Find("cufftExecC2R", fft.to_real[0]);
    library.Find("cufftExecZ2D", fft.to_real[1]);
    TOK_RETURN_IF_ERROR(library.missing());
    return fft;
  }
  static Result<const Cufft*> Open() {
    static const auto* loaded = new Result<Cufft>(Load());
    if (!loaded->ok()) return loaded->error();
    return &loaded->value();
  }
};

int TypeOf(const FourierShape& shape) {
  constexpr int kComplex[] = {0x29, 0x69}, kFromReal[] = {0x2a, 0x6a}, kToReal[] = {0x2c, 0x6c};
  size_t wide = shape.is_double ? 1 : 0;
  if (shape.kind == FourierKind::kFromReal) return kFromReal[wide];
  return shape.kind == FourierKind::kToReal ? kToReal[wide] : kComplex[wide];
}

Error Failed(const char* what, int status) {
  return MakeError(ErrorCode::kDeviceFault, fmt::format("cuFFT: {}: status {}", what, status));
}

class FourierCall final : public DriverCall {
 public:
  FourierCall(const Cufft& fft, FourierShape shape) : fft_(fft), shape_(std::move(shape)) {}
  FourierCall(const FourierCall&) = delete;
  FourierCall& operator=(const FourierCall&) = delete;
  ~FourierCall() override {
    if (has_plan_) fft_.destroy(plan_);
  }

  Status Prepare(CallDevice& device) {
    const std::vector<int64_t>& sizes =
        shape_.kind == FourierKind::kToReal ? shape_.output : shape_.input;
    std::vector<Cufft::Count> lengths(sizes.end() - static_cast<int64_t>(shape_.transformed),
                                      sizes.end());
    Cufft::Count batch = 1;
    for (size_t d = 0; d + shape_.transformed < sizes.size(); ++d) batch *= sizes[d];
    numbers_ = 2;  // reals in the complex operand of an inverse transform
    for (int64_t size : shape_.input) numbers_ *= size;
    for (Cufft::Count length : lengths) points_ *= static_cast<double>(length);
    int status = fft_.create(&plan_);
    has_plan_ = status == 0;
    if (status == 0) status = fft_.allocate(plan_, 0);
    if (status == 0)
      status = fft_.make(plan_, static_cast<int>(lengths.size()), lengths.data(), nullptr, 1, 0,
                         nullptr, 1, 0, TypeOf(shape_), batch, &work_bytes_);
    if (status == 0) status = fft_.set_stream(plan_, device.stream());
    if (status != 0) return Failed("a plan cannot be made", status);
    if (IsInverse()) {
      bool is_spectrum = shape_.kind == FourierKind::kToReal;
      TOK_TRY(scale_, device.Kernel(is_spectrum ? CallKernel::kSpectrum : CallKernel::kScale,
                                    shape_.is_double ? MatrixElement::kF64 : MatrixElement::kF32));
    }
    return Ok();
  }

  Status Run(std::span<void* const> arrays, CallDevice& device) const override {
    const void* from = arrays[0];
    void* to = arrays[1];
    DeviceMemory copy, work;
    if (IsInverse()) {
      // Scales the operand first. The copy is needed if the library overwrites its operand;
      // otherwise the result is transformed in place.
      void* scaled = to;
      if (shape_.kind == FourierKind::kToReal) {
        TOK_TRY(copy, DeviceMemory::Take(device.gpu(), CopyBytes(), "operands of cuFFT"));
        scaled = copy.data();
      }
      TOK_RETURN_IF_ERROR(Scale(scaled, from, device));
      from = scaled;
    }
    if (work_bytes_ > 0) {
      TOK_TRY(work, DeviceMemory::Take(device.gpu(), work_bytes_, "workspace of cuFFT"));
    }
    int status = fft_.set_work(plan_, work.data());
    if (status == 0) status = Ask(from, to);
    return status == 0 ? Ok() : Status(Failed("a transform", status));
  }

 private:
  bool IsInverse() const {
    return shape_.kind == FourierKind::kInverse || shape_.kind == FourierKind::kToReal;
  }
  size_t CopyBytes() const {
    return static_cast<size_t>(numbers_) * (shape_.is_double ? sizeof(double) : sizeof(float));
  }

  Status Scale(void* to, const void* from, CallDevice& device) const {
    if (shape_.is_double) return ScaleBy(1 / points_, to, from, device);
    return ScaleBy(static_cast<float>(1 / points_), to, from, device);
  }
  template <typename Real>
  Status ScaleBy(Real factor, void* to, const void* from, CallDevice& device) const {
    // Grid size limit: 16 blocks per SM of an H200 (132 SMs). Chosen; no measurement on record.
    constexpr int64_t kMostBlocks = 132 * 16;
    CallDevice::Grid grid{std::min((numbers_ + kCallThreads - 1) / kCallThreads, kMostBlocks)};
    if (shape_.kind == FourierKind::kInverse)
      return LaunchWith(device, scale_, grid, to, from, numbers_, factor);
    // Sizes of the transformed dimensions, last first.
    auto size = [&](size_t number) {
      const std::vector<int64_t>& sizes = shape_.input;
      return number < shape_.transformed ? static_cast<int>(sizes[sizes.size() - 1 - number]) : 1;
    };
    return LaunchWith(device, scale_, grid, to, from, numbers_ / 2, factor, size(0), size(2),
                      size(1), shape_.output.back() % 2 == 0 ? 1 : 0);
  }

  int Ask(const void* from, void* to) const {
    constexpr int kForward = -1, kBackward = 1;
    size_t wide = shape_.is_double ? 1 : 0;
    switch (shape_.kind) {
      case FourierKind::kForward:
        return fft_.complex[wide](plan_, from, to, kForward);
      case FourierKind::kInverse:
        return fft_.complex[wide](plan_, from, to, kBackward);
      case FourierKind::kFromReal:
        return fft_.from_real[wide](plan_, from, to);
      case FourierKind::kToReal:
        return fft_.to_real[wide](plan_, from, to);
    }
    return 0;
  }

  const Cufft& fft_;
  FourierShape shape_;
  int plan_ = 0;
  bool has_plan_ = false;
  size_t work_bytes_ = 0;
  int64_t numbers_ = 0;
  double points_ = 1;
  CallDevice::Function scale_;
};

}  // namespace

Result<PreparedCall> PrepareFourier(const FourierShape& shape, CallDevice& device) {
  // Dimensions that cuFFT transforms at most (cuFFT documentation).
  constexpr size_t kMostRank = 3;
  if (shape.transformed > kMostRank)
    return MakeError(ErrorCode::kUnsupportedOp,
                     fmt::format("cuFFT: transforms of {} dimensions", shape.transformed));
  TOK_TRY(const Cufft* fft, Cufft::Open());
  auto call = std::make_shared<FourierCall>(*fft, shape);
  TOK_RETURN_IF_ERROR(call->Prepare(device));
  return PreparedCall(std::move(call));
}

}  // namespace tokamak::cuda
