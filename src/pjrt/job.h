#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "driver/run/executable.h"
#include "pjrt/buffer.h"
#include "pjrt/client.h"
#include "runtime/event.h"
#include "runtime/worker.h"

namespace tokamak {

// One run of a program, on the host or issued to a device. After Start it deletes itself when it is
// done.
class Job final : public Task {
 public:
  Job(Ref<PJRT_Client> client, std::shared_ptr<const Executable> executable, Workers& worker);
  ~Job() override = default;

  std::vector<HeldBuffer> inputs;     // device-major
  std::vector<Ref<Storage>> outputs;  // device-major
  Ref<Event> done;
  Ref<Event> issued;  // device only: the program has been enqueued

  bool InputsAreUsable() const;
  // True for short host programs, and for device programs that can be issued without blocking.
  bool RunsOnCaller() const;
  // Runs on this thread; requires usable inputs. On a device: enqueues the program.
  SharedError RunNow(const std::atomic<bool>* stop);
  // Schedules it on the worker once the inputs are usable.
  void Start();
  void Run(bool stopped) override;

 private:
  Status RunOnHost(const std::atomic<bool>* stop);
  Status IssueToDevice(const std::atomic<bool>* stop);
  void CountDown();
  void Finish(const SharedError& error);

  Ref<PJRT_Client> client_;
  std::shared_ptr<const Executable> executable_;
  Workers& worker_;
  std::atomic<int64_t> waiting_{0};
};

}  // namespace tokamak
