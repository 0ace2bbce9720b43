#include "driver/compile/custom_kernel_code.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "driver/compile/custom_kernel_source.h"
#include "interp/array_bytes.h"
#include "runtime/child_process.h"
#include "runtime/thread_pool.h"

namespace tokamak {
namespace {

using BlockFn = void (*)(int64_t block, int64_t blocks, void* const* arrays);

struct LoadedKernel {
  std::shared_ptr<const SharedCode> code;
  BlockFn run = nullptr;
};

Result<LoadedKernel> Load(const CustomKernelStep& step) {
  TOK_TRY(CSource source, CSourceOf(step));
  Result<std::shared_ptr<const SharedCode>> code = CompileC(source);
  if (!code.ok()) {
    code.error().where = SpanOf(*step.call);
    return std::move(code.error());
  }
  LoadedKernel kernel{std::move(code.value())};
  kernel.run = reinterpret_cast<BlockFn>(kernel.code->Find(kCustomKernelRun));
  return kernel;
}

class CompiledCustomKernel final : public LibraryCall {
 public:
  CompiledCustomKernel(LoadedKernel kernel, int64_t blocks,
                       std::shared_ptr<const LibraryCall> planned)
      : kernel_(std::move(kernel)), blocks_(blocks), planned_(std::move(planned)) {}

  void Run(std::span<void* const> arguments, const std::atomic<bool>* stop) const override {
    if (blocks_ == 1) return kernel_.run(0, 1, arguments.data());
    double nanoseconds = std::max(1.0, 1000 * Micros() / static_cast<double>(blocks_));
    auto chunk = static_cast<int64_t>(std::ceil(kMinChunkNs / nanoseconds));
    ThreadPool::OfProcess().For(blocks_, chunk, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        if (stop != nullptr && stop->load(std::memory_order_relaxed)) return;
        kernel_.run(block, blocks_, arguments.data());
      }
    });
  }
  int64_t ScratchBytes() const override { return 0; }
  std::string Text() const override { return planned_->Text(); }
  double Micros() const override { return planned_->Micros(); }

 private:
  LoadedKernel kernel_;
  int64_t blocks_;
  std::shared_ptr<const LibraryCall> planned_;
};

// All blocks of a kernel, one after the other.
struct Trial {
  BlockFn run = nullptr;
  int64_t blocks = 1;
  std::vector<void*> arrays;
};

void RunTrial(void* data) {
  const Trial& trial = *static_cast<const Trial*>(data);
  for (int64_t block = 0; block < trial.blocks; ++block)
    trial.run(block, trial.blocks, trial.arrays.data());
}

// The time of a kernel in a child process. Chosen: as for its compilation.
constexpr std::chrono::seconds kTrialTime{60};

}  // namespace

Result<LoadedCalls> LoadCalls(const LoadedCalls& planned, std::span<const Instr* const> instrs) {
  LoadedCalls calls = planned;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (CustomKernelIn(*instrs[i]) == nullptr) continue;
    TOK_TRY(CustomKernelStep step, CustomKernelStepOf(*instrs[i]));
    TOK_TRY(LoadedKernel kernel, Load(step));
    calls[i] =
        std::make_shared<CompiledCustomKernel>(std::move(kernel), step.kernel.blocks, planned[i]);
  }
  return calls;
}

Status CheckCustomKernels(std::span<const Instr* const> steps) {
  for (const Instr* instr : steps) {
    if (CustomKernelIn(*instr) == nullptr) continue;
    TOK_TRY(CustomKernelStep step, CustomKernelStepOf(*instr));
    TOK_TRY(LoadedKernel kernel, Load(step));
  }
  return Ok();
}

Result<Value> EvaluateCustomKernel(const Instr& call, std::span<const Value> operands) {
  TOK_TRY(CustomKernelStep step, CustomKernelStepOf(call));
  TOK_TRY(LoadedKernel kernel, Load(step));
  Trial trial{kernel.run, step.kernel.blocks, {}};
  // The child's copies of the operands are its own; results are memory that both share.
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::unique_ptr<SharedMemory>> outputs;
  ResultShapes shapes = ResultShapesOf(call.shape());
  for (const Value& operand : operands) {
    inputs.emplace_back(static_cast<size_t>(operand.shape().ByteSize()));
    StoreBytes(operand, inputs.back().data());
  }
  for (std::vector<std::byte>& input : inputs) trial.arrays.push_back(input.data());
  for (const Shape& shape : shapes) {
    outputs.push_back(std::make_unique<SharedMemory>(static_cast<size_t>(shape.ByteSize())));
    trial.arrays.push_back(outputs.back()->data());
    if (trial.arrays.back() == nullptr)
      return MakeError(ErrorCode::kOutOfMemory,
                       "kernel '" + step.kernel.name + "': no memory for its results",
                       SpanOf(call));
  }
  for (auto [input, output] : step.kernel.aliases) {
    void* shared = trial.arrays[inputs.size() + output];
    std::memcpy(shared, inputs[input].data(), inputs[input].size());
    trial.arrays[input] = shared;
  }
  std::string why = RunInChild(RunTrial, &trial, kTrialTime);
  if (!why.empty())
    return MakeError(ErrorCode::kCustomKernelCrash,
                     "kernel '" + step.kernel.name + "' failed: " + why, SpanOf(call));
  std::vector<Value> results;
  for (size_t j = 0; j < shapes.size(); ++j) {
    TOK_TRY(Value value, ValueFromBytes(shapes[j].WithoutLayout(), outputs[j]->data()));
    results.push_back(std::move(value));
  }
  if (!call.shape().IsTuple()) return std::move(results[0]);
  return Value::Tuple(std::move(results));
}

}  // namespace tokamak
