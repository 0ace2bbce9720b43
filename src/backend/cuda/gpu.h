#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/cuda_text.h"
#include "backend/cuda/device_call.h"
#include "runtime/convolution.h"
#include "runtime/device.h"
#include "runtime/matrix_product.h"
#include "support/result.h"

// The interface of a GPU: loading and running launches, persistent loop kernels, CUDA graphs and
// library calls. Implemented by DriverGpu and by a simulated GPU for tests.
namespace tokamak::cuda {

// One launch: a kernel, or several fused horizontally, each with its number of blocks. Its pointers
// are the arguments of all kernels, in order.
struct LaunchForm {
  std::string label;  // for messages
  std::vector<HorizontalKernel> entries;
  // A loop over the kernels; its pointers are in the order of CudaLoopText.
  std::optional<LoopShape> loop = std::nullopt;
};

// A range of iterations of a loop kernel that one launch runs.
struct LoopChunk {
  int64_t iterations = 0;  // at most
  bool odd = false;        // whether the first one is odd
  bool closes = false;     // whether the loop ends after them
};
// The outcome of a chunk.
struct LoopEnd {
  int64_t iterations = 0;
  bool ended = false;  // the condition became false
};

// Whether an error of Gpu::Load rejects the form of a launch (TK4120, TK4121): another form of the
// same program may work.
inline bool IsUnsupportedForm(const Error& error) {
  return error.code == ErrorCode::kCudaText || error.code == ErrorCode::kNvrtcError;
}

// Code of a launch, loaded into a GPU.
class LaunchCode {
 public:
  virtual ~LaunchCode() = default;
  // Registers per thread, or -1 if unknown.
  virtual int registers() const { return -1; }
};

// A step of a graph: a launch, or a copy within the device to the first of its two pointers from
// the second.
struct GraphStep {
  const LaunchCode* code = nullptr;  // null: a copy
  size_t pointers = 0;
  size_t bytes = 0;  // of a copy
};

// Steps that run in order and are enqueued at once (a CUDA graph).
class StepGraph {
 public:
  virtual ~StepGraph() = default;
};

// A matrix product or a convolution, prepared for the GPU's library.
class ProductCode {
 public:
  virtual ~ProductCode() = default;
  virtual bool IsConvolution() const { return false; }
};
// Element types of a product beyond those of its shape.
struct ProductKind {
  // Types of operands and results in memory; accumulation is in the type of the product.
  enum class Narrow : uint8_t { kNo, kBF16, kF16 };
  Narrow factors = Narrow::kNo, result = Narrow::kNo;
  bool tf32 = false;  // f32 only: 10 bits of each operand's mantissa suffice
};

// A device that runs kernels.
class Gpu : public Device {
 public:
  // Returns the code of each launch; equal launches share code. The kernels need not outlive this
  // call. TK4120, TK4121, TK4122.
  virtual Result<std::vector<std::shared_ptr<const LaunchCode>>> Load(
      std::span<const LaunchForm> forms) = 0;
  virtual Status Launch(const LaunchCode& code, std::span<void* const> pointers) = 0;

  // Runs iterations of a loop kernel. Waits for them if the loop has a condition.
  virtual Result<LoopEnd> LaunchLoop(const LaunchCode& code, std::span<void* const> pointers,
                                     const LoopChunk& chunk) = 0;

  // Null if the device has no graphs of such steps. The code must outlive the graph.
  virtual Result<std::unique_ptr<StepGraph>> MakeGraph(std::span<const GraphStep> steps) = 0;
  // Runs the graph with the pointers of all steps, in order. One thread at a time per graph.
  virtual Status RunGraph(StepGraph& graph, std::span<void* const> pointers) = 0;

  // Whether a library for matrix products is available.
  virtual bool HasMatrixMultiply() = 0;
  // TK4201, TK4203.
  virtual Result<std::shared_ptr<const ProductCode>> LoadProduct(const MatrixProduct& product,
                                                                 const ProductKind& kind) = 0;
  // Prepares a convolution; the error states why no library computes it.
  virtual Result<std::shared_ptr<const ProductCode>> LoadConvolution(
      const Convolution& convolution) = 0;
  virtual Status Multiply(const ProductCode& code, const ProductArrays& arrays) = 0;

  // Prepares a library call. The error states why the host must run it: TK4201 if the library is
  // missing, TK5001 if it does not support the form.
  virtual Result<std::shared_ptr<const CallCode>> LoadCall(const DeviceCall& call) = 0;
  virtual Status Call(const CallCode& code, std::span<void* const> arrays) = 0;
};

// The first GPU of the machine, opened once per process. TK4201, TK4202.
Result<Gpu*> OpenGpu();
// A GPU simulated on the host: kernels run in the checked simulator on a separate thread. Its
// addresses are not valid host addresses, so an access to its memory by the host faults.
Gpu& SimulatedGpu();

}  // namespace tokamak::cuda
