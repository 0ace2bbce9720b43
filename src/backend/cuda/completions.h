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

namespace tokamak::cuda {

// Bytes that came out of the device, for somebody.
struct Arrived {
  PinnedSlots* slots = nullptr;  // null: none
  PinnedSlot slot;
  void* to = nullptr;
  size_t bytes = 0;
};

// A thread that waits for events of one stream, in their order, and fires one of ours for each.
class Completions final : public Stoppable {
 public:
  // Makes an error to hand on of what the driver says of an event (not 0).
  class Judge {
   public:
    virtual SharedError ErrorOf(int result) = 0;

   protected:
    ~Judge() = default;
  };
  Completions(const DriverApi& api, Handle context, Judge& judge)
      : api_(api), context_(context), judge_(judge) {}
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  ~Completions() {
    Stop();
    Unguard(this);
  }

  // Records an event in the stream.
  void Add(Handle stream, Ref<Event> done, Arrived arrived = {});
  void Stop() override;

 private:
  struct Waiting {
    Handle event;
    int result;  // of recording it
    Ref<Event> done;
    Arrived arrived;
  };
  void Loop();
  void Serve(Waiting next);
  int WaitFor(Handle event) const;

  const DriverApi& api_;
  Handle context_;
  Judge& judge_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Waiting> waiting_;
  std::deque<Handle> free_events_;
  std::atomic<int64_t> count_{0};  // of those waited for, a little late
  bool stopping_ = false, is_asleep_ = false;
  LeavableThread thread_;
};

}  // namespace tokamak::cuda
