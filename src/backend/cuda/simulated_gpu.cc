// A GPU simulated on the host: a separate thread runs the queue in order, and kernels run in the
// checked simulator.

#include <algorithm>
#include <complex>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>

#include "backend/cuda/custom_kernel.h"
#include "backend/cuda/gpu.h"
#include "backend/cuda/launch_source.h"
#include "backend/cuda/nvrtc.h"
#include "backend/cuda/simulated_convolution.h"
#include "backend/cuda/simulated_loop.h"
#include "kernel/scalar.h"
#include "kernel/simulate.h"
#include "runtime/leavable_thread.h"
#include "runtime/process.h"

namespace tokamak::cuda {
namespace {

// Bytes of simulated device memory. Chosen; no measurement on record.
constexpr int64_t kMemory = int64_t{8} << 30;
// Added to host addresses to form device addresses: no processor has such addresses, so the host
// faults on them.
constexpr uintptr_t kDeviceAddressOffset = uintptr_t{1} << 62;
// Bytes. Fresh memory is filled with NaN up to this size. Chosen; no measurement on record.
constexpr size_t kMostFilled = size_t{1} << 24;

std::byte* HostPointer(const void* memory) {
  auto address = reinterpret_cast<uintptr_t>(memory);
  return reinterpret_cast<std::byte*>(address == 0 ? 0 : address - kDeviceAddressOffset);
}

// Runs work in order on one thread.
class Queue final : public Stoppable {
 public:
  void Add(std::function<void()> work) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!thread_.IsStarted() && !stopping_ && thread_.Start([this] { Loop(); })) GuardAtExit(this);
    if (stopping_ || !thread_.IsStarted()) {  // no thread: run it on the caller
      lock.unlock();
      return work();
    }
    waiting_.push_back(std::move(work));
    lock.unlock();
    wake_.notify_one();
  }
  void Wait() {
    std::mutex mutex;
    std::condition_variable done;
    bool is_done = false;
    Add([&] {
      std::lock_guard<std::mutex> lock(mutex);
      is_done = true;
      done.notify_one();
    });
    std::unique_lock<std::mutex> lock(mutex);
    done.wait(lock, [&] { return is_done; });
  }
  void Stop() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.JoinOrLeave();
  }

 private:
  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  LeavableThread thread_;
};

class SimulatedCode final : public LaunchCode {
 public:
  // Shared with pending launches, which may outlive the code.
  std::shared_ptr<const std::vector<Kernel>> kernels;
  std::optional<LoopShape> loop;
};

class SimulatedGraph final : public StepGraph {
 public:
  std::vector<GraphStep> steps;
};

class SimulatedProduct final : public ProductCode {
 public:
  MatrixProduct product;
  ProductKind kind;
};

class SimulatedConvolution final : public ProductCode {
 public:
  bool IsConvolution() const override { return true; }
  Convolution convolution;
};

// Library calls by the host's routines.
class SimulatedCall final : public CallCode {
 public:
  DeviceCall call;
  std::shared_ptr<const Fourier> fourier;
};

// By definition, accumulating in double.
template <typename T, typename To, typename Sum>
void MultiplyAs(const MatrixProduct& product, const ProductArrays& arrays) {
  auto* lhs = static_cast<const T*>(arrays.lhs);
  auto* rhs = static_cast<const T*>(arrays.rhs);
  auto* result = static_cast<To*>(arrays.result);
  for (int64_t b = 0; b < product.BatchCount(); ++b) {
    int64_t rest = b, left = 0, right = 0;
    for (size_t i = product.batch.size(); i-- > 0;) {
      left += rest % product.batch[i].count * product.batch[i].lhs;
      right += rest % product.batch[i].count * product.batch[i].rhs;
      rest /= product.batch[i].count;
    }
    for (int64_t i = 0; i < product.m; ++i) {
      for (int64_t j = 0; j < product.n; ++j) {
        Sum sum{};
        for (int64_t p = 0; p < product.k; ++p)
          sum += Sum(lhs[left + i * product.lhs.row + p * product.lhs.column]) *
                 Sum(rhs[right + p * product.rhs.row + j * product.rhs.column]);
        *result++ = To(sum);
      }
    }
  }
}

void MultiplyAll(const MatrixProduct& product, const ProductKind& kind,
                 const ProductArrays& arrays) {
  using Wide = std::complex<double>;
  using Narrow = ProductKind::Narrow;
  bool wide_result = kind.result == Narrow::kNo;
  if (kind.factors == Narrow::kBF16)
    return wide_result ? MultiplyAs<BF16, float, double>(product, arrays)
                       : MultiplyAs<BF16, BF16, double>(product, arrays);
  if (kind.factors == Narrow::kF16)
    return wide_result ? MultiplyAs<F16, float, double>(product, arrays)
                       : MultiplyAs<F16, F16, double>(product, arrays);
  switch (product.type) {
    case MatrixType::kF32:
      return MultiplyAs<float, float, double>(product, arrays);
    case MatrixType::kF64:
      return MultiplyAs<double, double, double>(product, arrays);
    case MatrixType::kC64:
      return MultiplyAs<std::complex<float>, std::complex<float>, Wide>(product, arrays);
    case MatrixType::kC128:
      return MultiplyAs<Wide, Wide, Wide>(product, arrays);
  }
}

void Permute(const PermutationCall& call, const void* pivots, void* to) {
  auto* swaps = static_cast<const int32_t*>(pivots);
  auto* rows = static_cast<int32_t*>(to);
  for (int64_t item = 0; item < call.batch; ++item, swaps += call.swaps, rows += call.rows) {
    std::iota(rows, rows + call.rows, 0);
    for (int64_t i = 0; i < std::min(call.swaps, call.rows); ++i)
      if (swaps[i] >= 0 && swaps[i] < call.rows) std::swap(rows[i], rows[swaps[i]]);
  }
}

class HostGpu final : public Gpu, private SlabSource {
 public:
  HostGpu() : blocks_(*this, kMemory) {
    info_.name = "simulated GPU";
    info_.memory_bytes = kMemory;
  }

  const DeviceInfo& info() const override { return info_; }
  Result<void*> Allocate(size_t bytes, std::string_view user) override {
    TOK_TRY(void* allocated, blocks_.Allocate(bytes, user));
    if (bytes <= kMostFilled) TOK_RETURN_IF_ERROR(Fill(allocated, 0xFF, bytes));
    return allocated;
  }
  void Free(void* memory) override { blocks_.Free(memory); }
  BlockStats MemoryStats() const override { return blocks_.Stats(); }
  void ClearMemoryPeaks() override { blocks_.ClearPeaks(); }

  Status CopyIn(void* to, const void* from, size_t bytes) override {
    auto* begin = static_cast<const std::byte*>(from);
    queue_.Add([to = HostPointer(to), held = std::vector<std::byte>(begin, begin + bytes)] {
      std::memcpy(to, held.data(), held.size());
    });
    return Ok();
  }
  Status CopyWithin(void* to, const void* from, size_t bytes) override {
    queue_.Add(
        [to = HostPointer(to), from = HostPointer(from), bytes] { std::memmove(to, from, bytes); });
    return Ok();
  }
  Status Fill(void* to, uint8_t byte, size_t bytes) override {
    queue_.Add([to = HostPointer(to), byte, bytes] { std::memset(to, byte, bytes); });
    return Ok();
  }
  Status CopyOut(void* to, const void* from, size_t bytes) override {
    queue_.Add([to, from = HostPointer(from), bytes] { std::memcpy(to, from, bytes); });
    return Synchronize();
  }
  void CopyOutThen(void* to, const void* from, size_t bytes, Ref<Event> event) override {
    queue_.Add([to, from = HostPointer(from), bytes] { std::memcpy(to, from, bytes); });
    FireWhenDone(std::move(event));
  }
  void FireWhenDone(Ref<Event> event) override {
    queue_.Add([this, event] {
      callbacks_.Add([event, fault = TakeSimulationError()] { event->Fire(fault); });
    });
  }
  Status Synchronize() override {
    queue_.Wait();
    if (SharedError error = TakeSimulationError()) return *error;
    return Ok();
  }

  Result<std::vector<std::shared_ptr<const LaunchCode>>> Load(
      std::span<const LaunchForm> forms) override {
    std::vector<std::shared_ptr<const LaunchCode>> codes;
    for (const LaunchForm& form : forms) {
      // Rejects kernels that cannot be written as CUDA C++.
      TOK_RETURN_IF_ERROR(SourceOf(form, LaunchName(form)));
      auto kernels = std::make_shared<std::vector<Kernel>>();
      for (const HorizontalKernel& entry : form.entries) kernels->push_back(*entry.kernel);
      auto code = std::make_shared<SimulatedCode>();
      code->kernels = std::move(kernels);
      code->loop = form.loop;
      codes.push_back(std::move(code));
    }
    return codes;
  }
  Status Launch(const LaunchCode& launch, std::span<void* const> pointers) override {
    const auto& code = static_cast<const SimulatedCode&>(launch);
    std::vector<void*> near;
    for (const void* pointer : pointers) near.push_back(HostPointer(pointer));
    queue_.Add([this, kernels = code.kernels, near = std::move(near)] {
      Note(SimulateTogether(*kernels, near));
    });
    return Ok();
  }

  // Runs iterations in order; the phases between two grid barriers are one launch.
  Result<LoopEnd> LaunchLoop(const LaunchCode& launch, std::span<void* const> pointers,
                             const LoopChunk& chunk) override {
    const auto& code = static_cast<const SimulatedCode&>(launch);
    std::vector<void*> near;
    for (const void* pointer : pointers) near.push_back(HostPointer(pointer));
    if (code.loop->has_condition()) {
      TOK_RETURN_IF_ERROR(Synchronize());
      return SimulateLoop(*code.loop, *code.kernels, near, chunk);
    }
    // As on a device: without a condition, the caller does not wait.
    queue_.Add([this, loop = *code.loop, kernels = code.kernels, near = std::move(near), chunk] {
      Note(SimulateLoop(loop, *kernels, near, chunk));
    });
    return LoopEnd{chunk.iterations, false};
  }

  Result<std::unique_ptr<StepGraph>> MakeGraph(std::span<const GraphStep> steps) override {
    auto graph = std::make_unique<SimulatedGraph>();
    graph->steps.assign(steps.begin(), steps.end());
    return std::unique_ptr<StepGraph>(std::move(graph));
  }
  Status RunGraph(StepGraph& graph, std::span<void* const> pointers) override {
    for (const GraphStep& step : static_cast<SimulatedGraph&>(graph).steps) {
      std::span<void* const> own = pointers.first(step.pointers);
      pointers = pointers.subspan(step.pointers);
      TOK_RETURN_IF_ERROR(step.code != nullptr ? Launch(*step.code, own)
                                               : CopyWithin(own[0], own[1], step.bytes));
    }
    return Ok();
  }

  bool HasMatrixMultiply() override { return true; }
  Result<std::shared_ptr<const ProductCode>> LoadProduct(const MatrixProduct& product,
                                                         const ProductKind& kind) override {
    auto code = std::make_shared<SimulatedProduct>();
    code->product = product;
    code->kind = kind;
    return std::shared_ptr<const ProductCode>(std::move(code));
  }
  Result<std::shared_ptr<const ProductCode>> LoadConvolution(
      const Convolution& convolution) override {
    for (const Convolution::Space& dim : convolution.space)
      if (dim.pad_low != dim.pad_high)
        return MakeError(ErrorCode::kDeviceFault, "it pads both sides alike");
    auto code = std::make_shared<SimulatedConvolution>();
    code->convolution = convolution;
    return std::shared_ptr<const ProductCode>(std::move(code));
  }
  Status Multiply(const ProductCode& code, const ProductArrays& arrays) override {
    ProductArrays there{HostPointer(arrays.lhs), HostPointer(arrays.rhs),
                        HostPointer(arrays.result)};
    if (code.IsConvolution()) {
      const auto& own = static_cast<const SimulatedConvolution&>(code);
      queue_.Add([convolution = own.convolution, there] { Convolve(convolution, there); });
      return Ok();
    }
    const auto& own = static_cast<const SimulatedProduct&>(code);
    queue_.Add(
        [product = own.product, kind = own.kind, there] { MultiplyAll(product, kind, there); });
    return Ok();
  }

  Result<std::shared_ptr<const CallCode>> LoadCall(const DeviceCall& call) override {
    if (std::holds_alternative<FactorCall>(call))
      return MakeError(ErrorCode::kUnsupportedOp, "the simulated GPU has no LAPACK");
    if (const auto* custom = std::get_if<CustomKernelCall>(&call)) return RejectCustom(*custom);
    auto code = std::make_shared<SimulatedCall>();
    code->call = call;
    if (const auto* shape = std::get_if<FourierShape>(&call)) code->fourier = MakeFourier(*shape);
    return std::shared_ptr<const CallCode>(std::move(code));
  }
  // Only compiles a kernel of the user, if NVRTC is available: the host runs its C source.
  static Error RejectCustom(const CustomKernelCall& custom) {
    if (Nvrtc::Open().ok()) {
      ImageOptions options;
      options.cache = DiskCache::OfProcess();
      Result<std::string> cubin = CompileCustomKernel(custom.source, options);
      if (!cubin.ok()) return std::move(cubin.error());
    }
    return MakeError(ErrorCode::kUnsupportedOp, "the simulated GPU runs no CUDA C++");
  }
  Status Call(const CallCode& code, std::span<void* const> arrays) override {
    const auto& own = static_cast<const SimulatedCall&>(code);
    std::vector<void*> near;
    for (const void* array : arrays) near.push_back(HostPointer(array));
    queue_.Add([call = own.call, fourier = own.fourier, near = std::move(near)] {
      if (fourier != nullptr) return fourier->Run(near[0], near[1]);
      if (const auto* cholesky = std::get_if<CholeskyCall>(&call))
        return RunCholesky(*cholesky, near[0], near[1]);
      if (const auto* permutation = std::get_if<PermutationCall>(&call))
        return Permute(*permutation, near[0], near[1]);
      RunTriangular(std::get<TriangularCall>(call), near[0], near[1], near[2]);
    });
    return Ok();
  }

 private:
  // Runs on the thread of the queue. A real device would be lost; this one reports the error to the
  // next waiting caller.
  template <typename T>
  void Note(Result<T> report) {
    std::lock_guard<std::mutex> lock(fault_mutex_);
    if (!report.ok() && fault_ == nullptr)
      fault_ = std::make_shared<const Error>(std::move(report.error()));
  }
  SharedError TakeSimulationError() {
    std::lock_guard<std::mutex> lock(fault_mutex_);
    return std::exchange(fault_, nullptr);
  }

  void* AllocateSlab(size_t bytes) override {
    void* slab = std::aligned_alloc(BlockAllocator::kGranule, bytes);
    if (slab == nullptr) return nullptr;
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slab) + kDeviceAddressOffset);
  }
  void FreeSlab(void* slab, size_t) override {
    queue_.Add([slab = HostPointer(slab)] { std::free(slab); });
  }

  DeviceInfo info_;
  Queue callbacks_, queue_;
  BlockAllocator blocks_;
  std::mutex fault_mutex_;
  SharedError fault_;
};

}  // namespace

Gpu& SimulatedGpu() {
  static auto* gpu = new HostGpu;
  return *gpu;
}

}  // namespace tokamak::cuda
