#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "backend/cuda/completions.h"
#include "backend/cuda/driver_api.h"
#include "backend/cuda/driver_calls.h"
#include "backend/cuda/gpu.h"
#include "backend/cuda/images.h"
#include "backend/cuda/launch_source.h"
#include "backend/cuda/pinned.h"

// The Gpu of the CUDA driver. Implemented in driver_gpu.cc (memory, copies), driver_code.cc
// (kernels), driver_graph.cc (CUDA graphs) and driver_calls.cc (library calls).
namespace tokamak::cuda {

class LoadedModule;

// A GPU accessed through the CUDA driver API.
class DriverGpu final : public Gpu,
                        private SlabSource,
                        private Completions::ErrorSource,
                        private CallDevice {
 public:
  // `api` must outlive it.
  static Result<std::unique_ptr<DriverGpu>> Open(const DriverApi& api, int number);

  const DeviceInfo& info() const override { return info_; }
  Result<void*> Allocate(size_t bytes, std::string_view user) override {
    return blocks_.Allocate(bytes, user);
  }
  void Free(void* memory) override { blocks_.Free(memory); }
  BlockStats MemoryStats() const override { return blocks_.Stats(); }
  void ClearMemoryPeaks() override { blocks_.ClearPeaks(); }
  Status CopyIn(void* to, const void* from, size_t bytes) override;
  Status CopyWithin(void* to, const void* from, size_t bytes) override;
  Status Fill(void* to, uint8_t byte, size_t bytes) override;
  Status CopyOut(void* to, const void* from, size_t bytes) override;
  void CopyOutThen(void* to, const void* from, size_t bytes, Ref<Event> event) override;
  void FireWhenDone(Ref<Event> event) override;
  Status Synchronize() override;
  Result<std::vector<std::shared_ptr<const LaunchCode>>> Load(
      std::span<const LaunchForm> forms) override;
  Status Launch(const LaunchCode& code, std::span<void* const> pointers) override;
  Result<LoopEnd> LaunchLoop(const LaunchCode& code, std::span<void* const> pointers,
                             const LoopChunk& chunk) override;
  Result<std::unique_ptr<StepGraph>> MakeGraph(std::span<const GraphStep> steps) override;
  Status RunGraph(StepGraph& graph, std::span<void* const> pointers) override;
  bool HasMatrixMultiply() override;
  Result<std::shared_ptr<const ProductCode>> LoadProduct(const MatrixProduct& product,
                                                         const ProductKind& kind) override;
  Result<std::shared_ptr<const ProductCode>> LoadConvolution(
      const Convolution& convolution) override;
  Status Multiply(const ProductCode& code, const ProductArrays& arrays) override;
  Result<std::shared_ptr<const CallCode>> LoadCall(const DeviceCall& call) override;
  Status Call(const CallCode& code, std::span<void* const> arrays) override;

 private:
  // What Open has determined.
  struct Opened {
    const DriverApi* api = nullptr;
    Handle context = nullptr, stream = nullptr, copy_stream = nullptr;
    DeviceInfo info;
    std::string architecture;
  };
  class Graph;
  struct GraphChunk;

  explicit DriverGpu(Opened opened);
  void* AllocateSlab(size_t bytes) override;
  void FreeSlab(void* slab, size_t bytes) override;
  SharedError ErrorOf(int result) override;
  Result<Function> Kernel(CallKernel kernel, MatrixElement element) override;
  Result<std::shared_ptr<const LaunchCode>> CustomKernel(const CudaSource& source) override;
  Status LaunchKernel(const Function& function, const Grid& grid,
                      std::span<void* const> parameters) override;
  Gpu& gpu() override { return *this; }
  Handle stream() override { return stream_; }

  // Must precede the driver calls of every thread. Returns the sticky device error, if there is
  // one.
  Status Enter();
  Status Check(int result, std::string_view what);
  Error DeviceError(int result, std::string_view what);
  Status CopyOutSmall(void* to, Address from, size_t bytes);
  Status CopyOutLarge(std::byte* to, Address from, size_t bytes);
  Status FillGraph(GraphChunk& graph, std::span<void* const> pointers);
  Status UpdateGraph(GraphChunk& graph, std::span<void* const> pointers);
  Status LaunchGraph(const GraphChunk& graph);
  void NoteLaunch(const std::string* label) {
    recent_[launches_.fetch_add(1, std::memory_order_relaxed) % kRecent].store(
        label, std::memory_order_relaxed);
  }
  Result<std::shared_ptr<const LoadedModule>> LoadModule(
      const std::shared_ptr<const std::string>& cubin);
  Result<std::shared_ptr<const LaunchCode>> MakeCode(const LaunchSource& source,
                                                     const std::string& label,
                                                     std::shared_ptr<const LoadedModule> module);
  ImageOptions OptionsOfImages() const;
  Status CheckAsync(const LaunchSource& source, const std::string& label) const;
  using CodeMap = std::unordered_map<std::string, std::shared_ptr<const LaunchCode>>;
  Status LoadMissing(std::span<const LaunchForm* const> missing, std::span<const std::string> names,
                     bool ask_cache, CodeMap& made);

  const DriverApi& api_;
  Handle context_, stream_, copy_stream_;
  DeviceInfo info_;
  std::string architecture_;
  BlockAllocator blocks_;
  PinnedSlots small_slots_, large_slots_;
  std::mutex large_mutex_;  // one large copy out at a time
  Completions completions_;

  std::mutex code_mutex_;
  std::unordered_map<std::string, std::weak_ptr<const LaunchCode>> codes_;  // by name

  std::mutex call_mutex_;  // libraries allow one call at a time
  CodeMap call_kernels_;

  std::mutex fault_mutex_;
  std::atomic<bool> has_fault_{false};
  SharedError fault_;
  // The most recent launches, for messages. Their number is chosen; no measurement on record.
  static constexpr size_t kRecent = 8;
  std::array<std::atomic<const std::string*>, kRecent> recent_{};
  std::atomic<size_t> launches_{0};
};

}  // namespace tokamak::cuda
