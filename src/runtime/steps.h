#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/library_call.h"
#include "runtime/matrix_product.h"
#include "support/result.h"

// The program that an executable runs: a flat list of steps over memory that is already allocated.
// No step allocates, and no graph is traversed.

namespace tokamak {

// A slice of one of the memories of a run.
struct BufferSlice {
  int32_t memory = 0;  // 0 is the arena, then parameters, results, constants
  int64_t offset = 0;
  bool operator==(const BufferSlice&) const = default;
};

// Machine code (or a simulation) of a kernel. Thread-safe.
class KernelCode {
 public:
  virtual ~KernelCode() = default;
  // Runs iterations begin .. end - 1 of the grid.
  virtual void Run(void* const* arguments, const int64_t* extents, int64_t begin,
                   int64_t end) const = 0;
};

// Code of horizontally fused launches that are one launch on the device, as on a GPU.
class HorizontalCode {
 public:
  virtual ~HorizontalCode() = default;
  // `kernels`: their numbers, each with its arguments.
  virtual void Run(std::span<const size_t> kernels,
                   std::span<const std::vector<void*>> arguments) const = 0;
};

// State that the host functions of one run share.
class HostRun {
 public:
  virtual ~HostRun() = default;
};

// A host function: an instruction without a kernel, or a library call.
class HostFunction {
 public:
  virtual ~HostFunction() = default;
  virtual Status Run(std::span<void* const> inputs, std::span<void* const> outputs,
                     HostRun& run) const = 0;
  // Whether it is the reference interpreter, which has no reference to be compared with.
  virtual bool IsInterpreter() const { return false; }
};

enum class StepKind : uint8_t {
  kLaunch,
  kHorizontal,
  kLibrary,
  kCall,
  kHost,
  kCopy,
  kWhile,
  kConditional,
  kPoison,
};

struct RunStep {
  StepKind kind{};
  // Launch: the arguments. Library: operands, result. Call: operands, results, scratch. Host:
  // inputs, then outputs. Copy: to, from. While: its condition, a pred, which the first block
  // computes. Conditional: the index of the block to run. Poison: unused memory, filled with
  // all-ones bytes (a NaN of every float type) to expose reads of it.
  std::vector<BufferSlice> slices = {};
  size_t inputs = 0;  // host: how many slices are inputs
  // Launch, library, call, host, while: the number of the kernel, product, call, function, loop.
  size_t target = 0;
  // Launch: iterations of the grid, and the minimum number per thread. Horizontal: the same in
  // units (DivideIntoUnits).
  int64_t grid = 1;
  int64_t min_chunk = 1;
  int64_t min_chunk_asleep = 0;  // launch: see thread_pool.h
  int64_t first_unit = 0;        // launch in a horizontally fused launch
  int64_t bytes = 0;             // copy, poison
  bool is_pred = false;          // conditional: true is block 0
  // Copy: skipped, because the whole-loop kernel that follows reads the source in its first
  // iteration.
  bool left_out = false;
  // While: the slices of the launch of the first iteration if such copies are skipped.
  std::vector<BufferSlice> first_slices = {};
  bool runs_first = false;  // while: tests the condition only after an iteration, which computes it
  // Horizontal: independent launches that run as one. While: condition, body, and copies of the
  // body's results to the carried slices. If double-buffered, the two slices of each copy swap
  // roles every iteration instead, and two more blocks are the condition and body of odd
  // iterations. `slices` then also has the condition of odd iterations.
  std::vector<std::vector<RunStep>> blocks = {};
  int64_t at = 0;     // position in the schedule, as counted by the memory assignment
  size_t number = 0;  // see NumberSteps
};

// Numbers all steps, depth first, each before its blocks: the index of what a backend holds for
// them.
void NumberSteps(std::vector<RunStep>& steps);

// Divides the work of a horizontally fused launch into units of about equal duration, by the
// min_chunks of its launches. The units of one launch are contiguous; each launch has at least one.
void DivideIntoUnits(RunStep& pack);

// Observes every launch, library call, call and host function, in the thread of the run. On a CPU,
// horizontally fused launches then run individually.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  // False: the arguments are addresses where the step runs, which may be a device.
  virtual bool ReadsArrays() const { return true; }
  // `arguments`: those of the step. An error ends the run.
  virtual Status Before(const RunStep& step, std::span<void* const> arguments) = 0;
  virtual Status After(const RunStep& step, std::span<void* const> arguments) = 0;
};

// Replaces both the execution of steps and the data that control flow depends on: lists what a
// program issues without running it. On a device, the device itself records all but host steps.
class StepRecorder {
 public:
  virtual ~StepRecorder() = default;
  // Called instead of running a launch, horizontally fused launch, library call, call, host step or
  // copy.
  virtual void Issue(const RunStep& step) = 0;
  // Whether a loop has another iteration.
  virtual bool GoesOn(const RunStep& loop) = 0;
  // The block that a conditional runs.
  virtual size_t BlockOf(const RunStep& conditional) = 0;
};

// One run on the CPU.
struct StepContext {
  std::span<std::byte* const> memories;
  std::span<const KernelCode* const> kernels;
  std::span<const ProductCall> products;
  std::span<const std::shared_ptr<const LibraryCall>> calls = {};
  std::span<const HostFunction* const> functions;
  HostRun* host = nullptr;
  const std::atomic<bool>* stop = nullptr;  // may be null
  StepWatcher* watcher = nullptr;           // may be null
  // Null: fused launches are distributed over the thread pool.
  const HorizontalCode* horizontal = nullptr;
  StepRecorder* recorder = nullptr;  // may be null
};

// Runs steps in order (step_walk.h). Returns TK6103 if it is stopped; errors of host functions.
Status RunSteps(const std::vector<RunStep>& steps, const StepContext& context);

}  // namespace tokamak
