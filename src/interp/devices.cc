#include "interp/devices.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tokamak {

// A waiting device is counted in waiting_ until an event may let it continue: completing a
// rendezvous or posting a value resets the count, and every waiting device checks its condition
// again. So when as many devices wait as run, no further progress is possible.
template <typename Ready>
Status Devices::WaitFor(std::unique_lock<std::mutex>& lock, Op op, Ready ready) {
  while (!ready()) {
    if (failed_ || stuck_) break;
    if (waiting_ + 1 >= running_) {
      stuck_ = true;
      changed_.notify_all();
      break;
    }
    ++waiting_;
    uint64_t seen = events_;
    changed_.wait(lock, [&] { return events_ != seen || failed_ || stuck_; });
    if (events_ == seen) --waiting_;
  }
  if (ready()) return Ok();
  return MakeError(ErrorCode::kDeviceStopped,
                   std::string(InfoOf(op).name) +
                       (failed_ ? ": another device failed before it came here"
                                : ": waits for a device that has ended or waits elsewhere"));
}

Result<std::vector<Devices::Values>> Devices::Rendezvous(const RendezvousKey& key, int64_t self,
                                                         Values mine) {
  std::unique_lock<std::mutex> lock(mutex_);
  int64_t time = times_[{key, self}]++;
  std::shared_ptr<RendezvousState>& entry = rendezvous_[{key, time}];
  if (entry == nullptr) {
    entry = std::make_shared<RendezvousState>();
    entry->brought.resize(key.members.size());
  }
  std::shared_ptr<RendezvousState> state = entry;
  auto at = std::find(key.members.begin(), key.members.end(), self);
  state->brought[static_cast<size_t>(at - key.members.begin())] = std::move(mine);
  if (++state->arrived == key.members.size()) {
    state->complete = true;
    rendezvous_.erase({key, time});
    ++events_;
    waiting_ = 0;
    changed_.notify_all();
  }
  TOK_RETURN_IF_ERROR(WaitFor(lock, key.op, [&] { return state->complete; }));
  return state->brought;
}

void Devices::Post(const RendezvousKey& key, Values values) {
  std::lock_guard<std::mutex> lock(mutex_);
  channels_[key].push_back(std::move(values));
  ++events_;
  waiting_ = 0;
  changed_.notify_all();
}

Result<Devices::Values> Devices::Take(const RendezvousKey& key) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::deque<Values>& channel = channels_[key];
  TOK_RETURN_IF_ERROR(WaitFor(lock, key.op, [&] { return !channel.empty(); }));
  Values values = std::move(channel.front());
  channel.pop_front();
  return values;
}

void Devices::End(bool failed) {
  std::lock_guard<std::mutex> lock(mutex_);
  --running_;
  failed_ = failed_ || failed;
  if (waiting_ > 0 && waiting_ >= running_) stuck_ = true;
  changed_.notify_all();
}

}  // namespace tokamak
