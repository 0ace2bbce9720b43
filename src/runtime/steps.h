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

// What an executable does when it runs: a flat list of steps over memory that is there already. No
// step allocates, and no graph is walked.

namespace tokamak {

// Bytes in one of the memories of a run.
struct Place {
  int32_t memory = 0;  // by number: 0 is the arena, then parameters, results, constants
  int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

// Machine code (or a simulation) of a kernel. Called by several threads at a time.
class KernelCode {
 public:
  virtual ~KernelCode() = default;
  // Iterations begin .. end - 1 of the grid.
  virtual void Run(void* const* arguments, const int64_t* extents, int64_t begin,
                   int64_t end) const = 0;
};

// Code of packs that are one launch indeed, as on a GPU.
class PackCode {
 public:
  virtual ~PackCode() = default;
  // Kernels by number, each with its arguments.
  virtual void Run(std::span<const size_t> kernels,
                   std::span<const std::vector<void*>> arguments) const = 0;
};

// What the host functions of one run share.
class HostRun {
 public:
  virtual ~HostRun() = default;
};

// A function of the host: an instruction without a kernel, a library's.
class HostFunction {
 public:
  virtual ~HostFunction() = default;
  virtual Status Run(std::span<void* const> inputs, std::span<void* const> outputs,
                     HostRun& run) const = 0;
  // It is the interpreter, which nothing can be compared with.
  virtual bool IsInterpreter() const { return false; }
};

enum class StepKind : uint8_t {
  kLaunch,
  kPack,
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
  // Launch: the arguments. Library: operands, result. Call: operands, results, memory to work in.
  // Host: inputs, then outputs. Copy: to, from.
  // While: its condition, a pred, which the first block computes. Conditional: the index of the
  // block to run. Poison: where nothing lives, filled with NaN of every type (ones), so that who
  // reads it is found.
  std::vector<Place> places = {};
  size_t inputs = 0;  // host: how many places are inputs
  // Launch, library, call, host, while: which kernel, product, call, function, loop.
  size_t target = 0;
  // Launch: iterations, and how many a thread takes at least. Pack: the same in units (ShareOut).
  int64_t grid = 1;
  int64_t grain = 1;
  int64_t grain_asleep = 0;  // launch: as thread_pool.h has it
  int64_t first_unit = 0;    // launch of a pack
  int64_t bytes = 0;         // copy, poison
  bool is_pred = false;      // conditional: true is block 0
  // Copy: the loop after it, which is one launch, reads the source itself in its first iteration.
  bool left_out = false;
  // While: the places of the launch of its first iteration, where such copies are left out.
  std::vector<Place> first_places = {};
  bool runs_first = false;  // while: the condition is looked at after a round, which looks itself
  // Pack: launches that need nothing of each other and run as one.
  // While: condition, body, and copies of what the body made to where it is carried. Two more,
  // where both places of each copy change roles every round instead: condition and body of odd
  // rounds. `places` then has the condition of those, too.
  std::vector<std::vector<RunStep>> blocks = {};
  int64_t at = 0;  // when, as the assignment of memory counts
};

// Divides the work of a pack into units, about as long as each other, by the grains of its
// launches: those of one launch lie side by side, and each launch has at least one.
void ShareOut(RunStep& pack);

// Is told of every launch (those of a pack run one by one then), library call and function of the
// host, in the thread of the run.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  // With the arguments of the step; an error ends the run.
  virtual Status Before(const RunStep& step, std::span<void* const> arguments) = 0;
  virtual Status After(const RunStep& step, std::span<void* const> arguments) = 0;
};

// Takes the place of whatever executes steps, and of the data that decides where a run goes: what a
// program issues can be listed without being done.
class StepRecorder {
 public:
  virtual ~StepRecorder() = default;
  // A launch, pack, library call, call, host step or copy, instead of doing it.
  virtual void Issue(const RunStep& step) = 0;
  // Whether a loop has another iteration.
  virtual bool GoesOn(const RunStep& loop) = 0;
  // The block that a conditional runs.
  virtual size_t BlockOf(const RunStep& conditional) = 0;
};

// One run.
struct StepContext {
  std::span<std::byte* const> memories;
  std::span<const KernelCode* const> kernels;
  std::span<const ProductCall> products;
  std::span<const std::shared_ptr<const LibraryCall>> calls = {};
  std::span<const HostFunction* const> functions;
  HostRun* host = nullptr;
  const std::atomic<bool>* stop = nullptr;  // may be null
  StepWatcher* watcher = nullptr;           // may be null
  const PackCode* packs = nullptr;          // may be null: launches side by side
  StepRecorder* recorder = nullptr;         // may be null
};

// Runs steps in order. TK6103 when it is stopped; errors of host functions.
Status RunSteps(const std::vector<RunStep>& steps, const StepContext& context);

}  // namespace tokamak
