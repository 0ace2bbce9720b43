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

namespace tokamak {

struct DeviceStep;

// Steps that may be asked for as one: some that stand side by side, or those of several rounds.
struct GraphRun {
  std::vector<const DeviceStep*> members;
  uint64_t rounds = 0;  // of a loop
  std::mutex mutex;     // of what follows
  int64_t runs = 0;
  std::unique_ptr<cuda::StepGraph> graph;  // made when they ran a few times
  bool refused = false;
};

// A step of a program with what a GPU needs to do it.
struct DeviceStep {
  const RunStep* step = nullptr;
  std::shared_ptr<const cuda::LaunchCode> code;      // launch, pack
  std::shared_ptr<const cuda::ProductCode> product;  // library
  std::shared_ptr<const cuda::CallCode> call;        // call, host: of a library; null: the host's
  std::vector<Place> places;                         // of a pack: those of all its launches
  // Bytes of each place, where the host looks at them: of calls, host steps and checked launches.
  std::vector<int64_t> bytes;
  std::optional<uint64_t> rounds;  // while: how many, when that is known
  int64_t rounds_a_launch = 0;     // while: 0 unless it is one launch
  std::vector<Place> first;  // while: of a first round that has a launch and places of its own
  std::vector<std::vector<DeviceStep>> blocks;
  std::unique_ptr<GraphRun> graph;  // of the first of several
};

struct DeviceSteps {
  std::vector<DeviceStep> all;
  // The host has to wait for the device in between: for values, or since it asks for more than the
  // device's queue takes.
  bool waits = false;
};

// Loads the code of all launches. The program must outlive the steps. `one_by_one`: loops, too, are
// made of launches of single steps, and no library takes the place of the host's functions.
// A launch that the device does not take is an error of which cuda::IsRefusal says so. `refuse`:
// for tests, as if it took no launch of more than one instruction.
Result<DeviceSteps> PrepareSteps(const LoweredProgram& program, cuda::Gpu& gpu, bool one_by_one,
                                 bool refuse = false);

// Is told of every launch, pack and product before it is asked for, with the addresses of its
// places on the device. An error ends the run.
class DeviceWatcher {
 public:
  virtual ~DeviceWatcher() = default;
  virtual Status Before(const DeviceStep& step, std::span<std::byte* const> at) = 0;
};

// One run.
struct DeviceRun {
  cuda::Gpu& gpu;
  const LoweredProgram& program;
  std::span<std::byte* const> memories;  // of the device
  std::span<const HostFunction* const> functions;
  HostRun& host;
  const std::atomic<bool>* stop = nullptr;  // may be null
  StepWatcher* watcher = nullptr;           // may be null
  DeviceWatcher* timer = nullptr;           // may be null
  StepRecorder* recorder = nullptr;         // of what the device is not asked for; may be null
};

// Asks the device for all steps, in order. What has no kernel is done by the host, with copies of
// the arrays; loops and branches go where values read back from the device say. TK6103 when it is
// stopped; errors of host functions and of the device.
Status IssueSteps(const DeviceSteps& steps, const DeviceRun& run);

}  // namespace tokamak
