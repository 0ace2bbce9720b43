#include "backend/cuda/completions.h"

namespace tokamak::cuda {

void Completions::Add(Handle stream, Ref<Event> done) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (stopping_) {
    lock.unlock();
    done->Fire(std::make_shared<const Error>(
        MakeError(ErrorCode::kStopped, "cuda: the process ended before the work was done")));
    return;
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { Loop(); });
    GuardAtExit(this);
  }
  Waiting next{nullptr, 0, std::move(done)};
  if (!free_events_.empty()) {
    next.event = free_events_.front();
    free_events_.pop_front();
  } else {
    next.result = api_.create_event(&next.event, kEventNoTiming | kEventBlockingSync);
  }
  if (next.result == 0) next.result = api_.record(next.event, stream);
  waiting_.push_back(std::move(next));
  lock.unlock();
  wake_.notify_one();
}

void Completions::Loop() {
  api_.set_current(context_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    int result = next.result == 0 ? api_.wait(next.event) : next.result;
    next.done->Fire(result == 0 ? nullptr : judge_.ErrorOf(result));
    next.done = {};
    lock.lock();
    if (next.event != nullptr) free_events_.push_back(next.event);
  }
}

void Completions::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  wake_.notify_one();
  if (!thread_.joinable()) return;
  // A function that it calls may be what ends the process.
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace tokamak::cuda
