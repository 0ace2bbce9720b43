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

namespace tokamak::cuda {

// One launch: a kernel, or several as one, each with its number of teams. Its pointers are those of
// the arguments, one kernel's after the other's.
struct LaunchForm {
  std::string label;  // of messages
  std::vector<CudaPackPart> parts;
  // A loop over them, whose pointers are those that CudaLoopText says.
  std::optional<LoopShape> loop = std::nullopt;
};

// Some rounds of a loop that is one launch.
struct LoopTurn {
  int64_t rounds = 0;   // at most
  bool odd = false;     // the first of them is
  bool closes = false;  // the loop ends after them
};
// What became of them.
struct LoopEnd {
  int64_t rounds = 0;
  bool ended = false;  // the condition says so
};

// Whether an error of Gpu::Load is about the form of a launch (TK4120, TK4121): another form of the
// same program may do.
inline bool IsRefusal(const Error& error) {
  return error.code == ErrorCode::kCudaText || error.code == ErrorCode::kNvrtcRefused;
}

// Code of a launch, loaded into a GPU.
class LaunchCode {
 public:
  virtual ~LaunchCode() = default;
  // -1: not known.
  virtual int registers() const { return -1; }
};

// A step that a graph may hold: a launch, or a copy within the device, to the first of its two
// pointers from the second.
struct GraphStep {
  const LaunchCode* code = nullptr;  // null: a copy
  size_t pointers = 0;
  size_t bytes = 0;  // of a copy
};

// Steps that the device does in order, asked for at once.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
};

// A product of matrices or a convolution, ready for the library of a GPU.
class ProductCode {
 public:
  virtual ~ProductCode() = default;
  virtual bool IsConvolution() const { return false; }
};
// What a product is of, besides its shape.
struct ProductKind {
  // Factors and results in memory; sums are of the type that the product says.
  enum class Narrow : uint8_t { kNo, kBF16, kF16 };
  Narrow factors = Narrow::kNo, result = Narrow::kNo;
  bool tf32 = false;  // of f32: 10 bits of each factor's mantissa are enough
};

// A device that runs kernels.
class Gpu : public Device {
 public:
  // Code of launches, in their order; equal ones share theirs. The kernels need not outlive this
  // call. TK4120, TK4121, TK4122.
  virtual Result<std::vector<std::shared_ptr<const LaunchCode>>> Load(
      std::span<const LaunchForm> forms) = 0;
  virtual Status Launch(const LaunchCode& code, std::span<void* const> pointers) = 0;

  // Runs rounds of a loop. Waits for them, where it has a condition.
  virtual Result<LoopEnd> LaunchLoop(const LaunchCode& code, std::span<void* const> pointers,
                                     const LoopTurn& turn) = 0;

  // Null when the device has no graphs of such steps. The code must outlive the graph.
  virtual Result<std::unique_ptr<StepGraph>> MakeGraph(std::span<const GraphStep> steps) = 0;
  // Runs it with these pointers, one step's after the other's. By one thread at a time.
  virtual Status RunGraph(StepGraph& graph, std::span<void* const> pointers) = 0;

  // Whether there is a library that multiplies matrices.
  virtual bool HasProducts() = 0;
  // TK4201, TK4203.
  virtual Result<std::shared_ptr<const ProductCode>> LoadProduct(const MatrixProduct& product,
                                                                 const ProductKind& kind) = 0;
  // The same of a convolution; the error says why no library computes it.
  virtual Result<std::shared_ptr<const ProductCode>> LoadConvolution(
      const Convolution& convolution) = 0;
  virtual Status Multiply(const ProductCode& code, const ProductArrays& arrays) = 0;

  // A call that a library of the device does: its error says why the host has to (TK4201: there is
  // no such library; TK5001: it has no such form).
  virtual Result<std::shared_ptr<const CallCode>> LoadCall(const DeviceCall& call) = 0;
  virtual Status Call(const CallCode& code, std::span<void* const> arrays) = 0;
};

// The first GPU of the machine, opened once and for all. TK4201, TK4202.
Result<Gpu*> OpenGpu();
// One that the host pretends to have: kernels run in the checked simulator, on a thread of its own.
// Its addresses are no addresses of the host, so who touches its memory faults.
Gpu& SimulatedGpu();

}  // namespace tokamak::cuda
