#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "backend/cuda/driver_api.h"
#include "backend/cuda/pinned.h"
#include "runtime/event.h"
#include "runtime/leavable_thread.h"
#include "runtime/process.h"

// Turns CUDA events into our Events: a thread waits for the work of a stream and fires an Event
// when that work is done.
namespace tokamak::cuda {

// Bytes copied from the device into a pinned slot that still have to be copied to their
// destination.
struct Arrived {
  PinnedSlots* slots = nullptr;  // null if there are none
  PinnedSlot slot;
  void* to = nullptr;
  size_t bytes = 0;
};

// A thread that waits for the CUDA events of one stream, in order, and fires one Event for each.
class Completions final : public Stoppable {
 public:
  // Converts the driver's result of a CUDA event (not 0) to an error to pass on.
  class ErrorSource {
   public:
    virtual SharedError ErrorOf(int result) = 0;

   protected:
    ~ErrorSource() = default;
  };
  Completions(const DriverApi& api, Handle context, ErrorSource& error_source)
      : api_(api), context_(context), error_source_(error_source) {}
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  ~Completions() {
    Stop();
    Unguard(this);
  }

  // Records a CUDA event in the stream; `done` fires when the stream has reached it.
  void Add(Handle stream, Ref<Event> done, Arrived arrived = {});
  void Stop() override;

 private:
  struct Waiting {
    Handle event;
    int result;  // of cuEventRecord
    Ref<Event> done;
    Arrived arrived;
  };
  void Loop();
  void Serve(Waiting next);
  int WaitFor(Handle event) const;

  const DriverApi& api_;
  Handle context_;
  ErrorSource& error_source_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Waiting> waiting_;
  std::deque<Handle> free_events_;
  std::atomic<int64_t> count_{0};  // pending events; may lag behind by a few
  bool stopping_ = false, is_asleep_ = false;
  LeavableThread thread_;
};

}  // namespace tokamak::cuda
