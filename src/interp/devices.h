#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "interp/value.h"
#include "ir/op.h"
#include "support/result.h"

namespace tokamak {

// The devices of one run, a thread each: where collectives meet and channels are kept. A device is
// numbered replica * partitions + partition. A wait that can never end (all devices wait, or have
// ended) gives every waiting device an error instead.
class Devices {
 public:
  Devices(int64_t replicas, int64_t partitions)
      : replicas_(replicas), partitions_(partitions), running_(replicas * partitions) {}
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  int64_t replicas() const { return replicas_; }
  int64_t partitions() const { return partitions_; }
  int64_t count() const { return replicas_ * partitions_; }

  // What a meeting is known by, beside how often these members have met there before.
  struct Place {
    Op op;
    int64_t channel;
    std::vector<int64_t> members;
    bool operator<(const Place& other) const {
      return std::tie(op, channel, members) < std::tie(other.op, other.channel, other.members);
    }
  };
  using Values = std::vector<Value>;

  // Gives `mine`, waits for the others, and gives what each member brought, in their order.
  Result<std::vector<Values>> Meet(const Place& place, int64_t self, Values mine);

  // Puts values into a channel, or takes the oldest out of it, waiting for them.
  void Post(const Place& place, Values values);
  Result<Values> Take(const Place& place);

  // A device ends, well or with an error.
  void End(bool failed);

 private:
  struct Meeting {
    std::vector<Values> brought;
    size_t arrived = 0;
    bool complete = false;
  };
  // Waits until `ready`, or until nothing can make it so.
  template <typename Ready>
  Status WaitFor(std::unique_lock<std::mutex>& lock, Op op, Ready ready);

  int64_t replicas_, partitions_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t running_ = 0, waiting_ = 0;
  uint64_t events_ = 0;  // meetings completed, values posted
  bool failed_ = false, stuck_ = false;
  std::map<std::pair<Place, int64_t>, std::shared_ptr<Meeting>> meetings_;
  std::map<std::pair<Place, int64_t>, int64_t> times_;  // per member
  std::map<Place, std::deque<Values>> channels_;
};

}  // namespace tokamak
