#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/gpu.h"
#include "lower/lower.h"
#include "runtime/steps.h"
#include "support/result.h"

// Steps of a lowered program, prepared for a GPU and issued to it by the executor
// (runtime/step_walk.h). Consecutive steps, or the iterations of a loop, are replayed as a CUDA
// graph once they have run a few times.

namespace tokamak {

struct DeviceStep;

// Steps that can be issued as one CUDA graph: consecutive steps, or several loop iterations.
struct GraphRun {
  std::vector<const DeviceStep*> members;
  size_t steps = 0;         // how many consecutive steps of a block these are
  uint64_t trip_count = 0;  // if this is a loop: its iterations
  std::mutex mutex;         // guards the members below
  int64_t runs = 0;
  std::unique_ptr<cuda::StepGraph> graph;  // built after the steps have run a few times
  bool rejected = false;
};

// The code and buffers that the GPU needs for a step.
struct DeviceStep {
  // Null: not issued, as a launch inside another one, or a copy that is left out.
  const RunStep* step = nullptr;
  std::shared_ptr<const cuda::LaunchCode> code;      // launch, horizontally fused launch
  std::shared_ptr<const cuda::ProductCode> product;  // library
  std::shared_ptr<const cuda::CallCode> call;        // call, host step; null: the host runs it
  std::vector<BufferSlice> slices;                   // concatenated over the kernels of a launch
  // Size of each slice in bytes. Set for calls, host steps and checked launches, which the host
  // reads.
  std::vector<int64_t> bytes;
  std::optional<uint64_t> trip_count;  // while: trip count if known
  int64_t iterations_per_launch = 0;   // while: 0 unless the loop is one launch
  std::vector<BufferSlice>
      first;  // while: slices of the first iteration, if it has a separate launch
  std::unique_ptr<GraphRun> graph;  // set on the first member of a graph
};

struct DeviceSteps {
  std::vector<DeviceStep> all;  // by RunStep::number
  DeviceStep& Of(const RunStep& step) { return all[step.number]; }
  const DeviceStep& Of(const RunStep& step) const { return all[step.number]; }
  // The host has to wait for the device while issuing: for values that decide control flow, or
  // because there are more launches than the device's queue holds.
  bool waits = false;
};

// Loads the code of all launches. The program must outlive the steps. `one_by_one`: loops are also
// split into launches of single steps, and no device library replaces host functions. If the device
// rejects a launch, the returned error satisfies cuda::IsUnsupportedForm. `reject_launches`: for
// tests, reject every launch of more than one instruction.
Result<DeviceSteps> PrepareSteps(const LoweredProgram& program, cuda::Gpu& gpu, bool one_by_one,
                                 bool reject_launches = false);

// The state of one run.
struct DeviceRun {
  cuda::Gpu& gpu;
  const LoweredProgram& program;
  std::span<std::byte* const> memories;  // on the device
  std::span<const HostFunction* const> functions;
  HostRun& host;
  const std::atomic<bool>* stop = nullptr;  // may be null
  StepWatcher* watcher = nullptr;           // may be null
  StepRecorder* recorder = nullptr;  // records host steps instead of running them; may be null
};

// Issues all steps of the program to the device, in order. Steps without a device implementation
// run on the host, with copies of the arrays. Data-dependent loops and branches read their
// condition back from the device. Returns TK6103 if the run is stopped, or an error of a host
// function or the device.
Status IssueSteps(const DeviceSteps& steps, const DeviceRun& run);

}  // namespace tokamak
