#include "interp/devices.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tokamak {

// A waiting device counts in waiting_ until something happened that may let it go on: whoever
// completes a meeting or posts a value takes all waiting devices out of the count, and each looks
// again. So when as many wait as run, nothing can happen any more.
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

Result<std::vector<Devices::Values>> Devices::Meet(const Place& place, int64_t self, Values mine) {
  std::unique_lock<std::mutex> lock(mutex_);
  int64_t time = times_[{place, self}]++;
  std::shared_ptr<Meeting>& entry = meetings_[{place, time}];
  if (entry == nullptr) {
    entry = std::make_shared<Meeting>();
    entry->brought.resize(place.members.size());
  }
  std::shared_ptr<Meeting> meeting = entry;
  auto at = std::find(place.members.begin(), place.members.end(), self);
  meeting->brought[static_cast<size_t>(at - place.members.begin())] = std::move(mine);
  if (++meeting->arrived == place.members.size()) {
    meeting->complete = true;
    meetings_.erase({place, time});
    ++events_;
    waiting_ = 0;
    changed_.notify_all();
  }
  TOK_RETURN_IF_ERROR(WaitFor(lock, place.op, [&] { return meeting->complete; }));
  return meeting->brought;
}

void Devices::Post(const Place& place, Values values) {
  std::lock_guard<std::mutex> lock(mutex_);
  channels_[place].push_back(std::move(values));
  ++events_;
  waiting_ = 0;
  changed_.notify_all();
}

Result<Devices::Values> Devices::Take(const Place& place) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::deque<Values>& channel = channels_[place];
  TOK_RETURN_IF_ERROR(WaitFor(lock, place.op, [&] { return !channel.empty(); }));
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
