#pragma once

// A recording stand-in for a GPU, for tok_issued_steps.

#include <map>
#include <string>

#include "backend/cuda/gpu.h"

namespace tokamak {

// How often each step was issued: "kernel add_1 0123456789abcdef", "copy 64".
using Issued = std::map<std::string, int64_t>;

std::string KernelKey(const std::string& names, uint64_t code);
std::string ProductKey(uint64_t code);
inline constexpr const char* kDeviceCallKey = "library of the device";
std::string CopyKey(int64_t bytes);

// A GPU that executes nothing and records what is issued to it. It has every library.
class RecordingGpu final : public cuda::Gpu {
 public:
  Issued& issued() { return issued_; }

  const DeviceInfo& info() const override { return info_; }
  Result<void*> Allocate(size_t bytes, std::string_view user) override;
  void Free(void*) override {}
  BlockStats MemoryStats() const override { return {}; }
  void ClearMemoryPeaks() override {}
  Status CopyIn(void*, const void*, size_t) override { return Ok(); }
  Status CopyWithin(void* to, const void* from, size_t bytes) override;
  Status Fill(void*, uint8_t, size_t) override { return Ok(); }
  Status CopyOut(void*, const void*, size_t) override { return Ok(); }
  void CopyOutThen(void*, const void*, size_t, Ref<Event> event) override;
  void FireWhenDone(Ref<Event> event) override;
  Status Synchronize() override { return Ok(); }

  Result<std::vector<std::shared_ptr<const cuda::LaunchCode>>> Load(
      std::span<const cuda::LaunchForm> forms) override;
  Status Launch(const cuda::LaunchCode& code, std::span<void* const> pointers) override;
  Result<cuda::LoopEnd> LaunchLoop(const cuda::LaunchCode& code, std::span<void* const> pointers,
                                   const cuda::LoopChunk& chunk) override;
  Result<std::unique_ptr<cuda::StepGraph>> MakeGraph(
      std::span<const cuda::GraphStep> steps) override;
  Status RunGraph(cuda::StepGraph& graph, std::span<void* const> pointers) override;
  bool HasMatrixMultiply() override { return true; }
  Result<std::shared_ptr<const cuda::ProductCode>> LoadProduct(
      const MatrixProduct& product, const cuda::ProductKind& kind) override;
  Result<std::shared_ptr<const cuda::ProductCode>> LoadConvolution(
      const Convolution& convolution) override;
  Status Multiply(const cuda::ProductCode& code, const ProductArrays& arrays) override;
  Result<std::shared_ptr<const cuda::CallCode>> LoadCall(const cuda::DeviceCall& call) override;
  Status Call(const cuda::CallCode& code, std::span<void* const> arrays) override;

 private:
  DeviceInfo info_{"recording device", 132, int64_t{1} << 37};
  uintptr_t next_ = uintptr_t{1} << 40;  // unmapped addresses
  Issued issued_;
};

}  // namespace tokamak
