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

// Steps of a lowered program, prepared for a GPU and issued to it. Consecutive steps, or the
// iterations of a loop, are replayed as a CUDA graph once they have run a few times.

namespace tokamak {

struct DeviceStep;

// Steps that can be issued as one CUDA graph: consecutive steps, or several loop iterations.
struct GraphRun {
  std::vector<const DeviceStep*> members;
  uint64_t trip_count = 0;  // if this is a loop
  std::mutex mutex;         // guards the members below
  int64_t runs = 0;
  std::unique_ptr<cuda::StepGraph> graph;  // built after the steps have run a few times
  bool rejected = false;
};

// A step of a program with the code and buffers that the GPU needs for it.
struct DeviceStep {
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
  std::vector<std::vector<DeviceStep>> blocks;
  std::unique_ptr<GraphRun> graph;  // set on the first member of a graph
};

struct DeviceSteps {
  std::vector<DeviceStep> all;
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

// Called before each launch, horizontally fused launch and library call is issued, with the device
// addresses of its slices. An error ends the run.
class DeviceWatcher {
 public:
  virtual ~DeviceWatcher() = default;
  virtual Status Before(const DeviceStep& step, std::span<std::byte* const> at) = 0;
};

// The state of one run.
struct DeviceRun {
  cuda::Gpu& gpu;
  const LoweredProgram& program;
  std::span<std::byte* const> memories;  // on the device
  std::span<const HostFunction* const> functions;
  HostRun& host;
  const std::atomic<bool>* stop = nullptr;  // may be null
  StepWatcher* watcher = nullptr;           // may be null
  DeviceWatcher* timer = nullptr;           // may be null
  StepRecorder* recorder = nullptr;         // records steps instead of issuing them; may be null
};

// Issues all steps to the device, in order. Steps without a device implementation run on the host,
// with copies of the arrays. Data-dependent loops and branches read their condition back from the
// device. Returns TK6103 if the run is stopped, or an error of a host function or the device.
Status IssueSteps(const DeviceSteps& steps, const DeviceRun& run);

}  // namespace tokamak
