#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/ref.h"
#include "support/error.h"

// One-shot completion events, with errors.
namespace tokamak {

// Shared by everything that the error poisons.
using SharedError = std::shared_ptr<const Error>;

// A one-shot event that completes with success or with an error: the work that fills a buffer, a
// transfer. Waiters run on the thread that fires it, or at once on the calling thread if it has
// fired; never under a lock, and they may drop the last reference to the event.
class Event final : public RefCounted {
 public:
  Event() = default;
  static Ref<Event> Failed(SharedError error);
  // A shared event that has fired with success.
  static const Ref<Event>& Ready();

  bool HasFired() const { return state_.load(std::memory_order_acquire) == kFired; }
  // Null if it has not fired, or has fired with success.
  const SharedError* error() const { return HasFired() && error_ != nullptr ? &error_ : nullptr; }

  // Returns false and does nothing if it was fired before.
  bool Fire(SharedError error = nullptr);
  // Blocks until it has fired.
  void Wait() const;

  // A continuation. It may delete itself in Run.
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
  // Runs fn(const SharedError&) once, from the heap.
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
