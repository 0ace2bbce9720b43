#include "runtime/event.h"

namespace tokamak {
namespace {

// A sentinel at the end of the stack of waiters: the stack is closed.
Event::Waiter* Closed() {
  return reinterpret_cast<Event::Waiter*>(uintptr_t{1});
}

}  // namespace

const Ref<Event>& Event::Ready() {
  static const Ref<Event>* ready = [] {
    auto* event = new Ref<Event>(MakeRef<Event>());
    (*event)->Fire();
    return event;
  }();
  return *ready;
}

Ref<Event> Event::Failed(SharedError error) {
  Ref<Event> event = MakeRef<Event>();
  event->Fire(std::move(error));
  return event;
}

bool Event::Fire(SharedError error) {
  uint32_t pending = kPending;
  if (!state_.compare_exchange_strong(pending, kFiring, std::memory_order_acq_rel)) return false;
  Ref<Event> self = Ref<Event>::Share(this);  // a waiter may drop the last reference
  error_ = std::move(error);
  state_.store(kFired, std::memory_order_release);
  state_.notify_all();
  Waiter* stack = waiters_.exchange(Closed(), std::memory_order_acq_rel);
  Waiter* first = nullptr;
  while (stack != nullptr) {  // the oldest runs first
    Waiter* next = stack->next_;
    stack->next_ = first;
    first = stack;
    stack = next;
  }
  while (first != nullptr) {
    Waiter* next = first->next_;
    first->Run(error_);
    first = next;
  }
  return true;
}

void Event::Wait() const {
  for (;;) {
    uint32_t state = state_.load(std::memory_order_acquire);
    if (state == kFired) return;
    state_.wait(state, std::memory_order_acquire);
  }
}

void Event::OnFired(Waiter* waiter) {
  Waiter* head = waiters_.load(std::memory_order_acquire);
  while (head != Closed()) {
    waiter->next_ = head;
    if (waiters_.compare_exchange_weak(head, waiter, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
      return;
  }
  // error_ was written before the stack was closed.
  Ref<Event> self = Ref<Event>::Share(this);
  waiter->Run(error_);
}

}  // namespace tokamak
