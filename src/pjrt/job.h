#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "driver/executable.h"
#include "pjrt/buffer.h"
#include "pjrt/client.h"
#include "runtime/event.h"
#include "runtime/worker.h"

namespace tokamak {

// One run of a program: by the host, or by a device, which is asked for it. Deletes itself when it
// was started and is done.
class Job final : public Task {
 public:
  Job(Ref<PJRT_Client> client, std::shared_ptr<const Executable> executable, Workers& worker);
  ~Job() override = default;

  std::vector<HeldBuffer> inputs;     // device after device
  std::vector<Ref<Storage>> outputs;  // the same
  Ref<Event> done;
  Ref<Event> issued;  // of a device: it has been asked for

  bool InputsAreUsable() const;
  // Short programs of the host; those for which nobody has to wait for the device.
  bool RunsOnCaller() const;
  // On this thread; the inputs are usable. On a device: it is asked for the program.
  SharedError RunNow(const std::atomic<bool>* stop);
  // Has the worker run it once the inputs are usable.
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
