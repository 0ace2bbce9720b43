#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/ref.h"
#include "support/error.h"

namespace tokamak {

// Shared by all that an error poisons.
using SharedError = std::shared_ptr<const Error>;

// Something that will have happened, well or with an error: the work that fills a buffer, a
// transfer. It fires once. Waiters run on the thread that fires it, or at once on their own when it
// has fired; never under a lock, and they may drop the last hold on the event.
class Event final : public RefCounted {
 public:
  Event() = default;
  static Ref<Event> Failed(SharedError error);
  // One event that has fired well, for all who need one.
  static const Ref<Event>& Ready();

  bool HasFired() const { return state_.load(std::memory_order_acquire) == kFired; }
  // Null while it has not fired, and when all is well.
  const SharedError* error() const { return HasFired() && error_ != nullptr ? &error_ : nullptr; }

  // False, and nothing happens, when it was fired before.
  bool Fire(SharedError error = nullptr);
  // Blocks until it has fired.
  void Wait() const;

  // What to run afterwards; deletes itself in Run if it wants to.
  class Waiter {
   public:
    virtual void Run(const SharedError& error) = 0;

   protected:
    Waiter() = default;
    virtual ~Waiter() = default;

   private:
    friend class Event;
    Waiter* next_ = nullptr;
  };
  void OnFired(Waiter* waiter);
  // fn(const SharedError&) on the heap, run once.
  template <typename Fn>
  void Then(Fn fn);

 private:
  enum State : uint32_t { kPending, kFiring, kFired };
  ~Event() override = default;

  std::atomic<uint32_t> state_{kPending};
  std::atomic<Waiter*> waiters_{nullptr};  // a stack; Closed() once it has fired
  SharedError error_;
};

template <typename Fn>
void Event::Then(Fn fn) {
  class Heap final : public Waiter {
   public:
    explicit Heap(Fn held) : fn_(std::move(held)) {}
    void Run(const SharedError& error) override {
      std::unique_ptr<Heap> self(this);
      fn_(error);
    }
    ~Heap() override = default;

   private:
    Fn fn_;
  };
  if (HasFired()) return fn(error_);
  OnFired(new Heap(std::move(fn)));
}

}  // namespace tokamak
