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

// The devices of one run, one thread each: the rendezvous of collectives, and the channels. A
// device has the number replica * partitions + partition. If a wait can never end (every device
// waits or has ended), every waiting device gets an error instead of a deadlock.
class Devices {
 public:
  Devices(int64_t replicas, int64_t partitions)
      : replicas_(replicas), partitions_(partitions), running_(replicas * partitions) {}
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  int64_t replicas() const { return replicas_; }
  int64_t partitions() const { return partitions_; }
  int64_t count() const { return replicas_ * partitions_; }

  // Identifies a rendezvous, together with the number of earlier ones of the same key.
  struct RendezvousKey {
    Op op;
    int64_t channel;
    std::vector<int64_t> members;
    bool operator<(const RendezvousKey& other) const {
      return std::tie(op, channel, members) < std::tie(other.op, other.channel, other.members);
    }
  };
  using Values = std::vector<Value>;

  // Contributes `mine`, waits for the other members, and returns the values of all members in
  // order.
  Result<std::vector<Values>> Rendezvous(const RendezvousKey& key, int64_t self, Values mine);

  // Post puts values into a channel. Take waits for and removes the oldest values.
  void Post(const RendezvousKey& key, Values values);
  Result<Values> Take(const RendezvousKey& key);

  // Marks one device as ended, with or without an error.
  void End(bool failed);

 private:
  struct RendezvousState {
    std::vector<Values> brought;
    size_t arrived = 0;
    bool complete = false;
  };
  // Waits until `ready`, or until no running device can make it true.
  template <typename Ready>
  Status WaitFor(std::unique_lock<std::mutex>& lock, Op op, Ready ready);

  int64_t replicas_, partitions_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t running_ = 0, waiting_ = 0;
  uint64_t events_ = 0;  // rendezvous completed plus values posted
  bool failed_ = false, stuck_ = false;
  std::map<std::pair<RendezvousKey, int64_t>, std::shared_ptr<RendezvousState>> rendezvous_;
  std::map<std::pair<RendezvousKey, int64_t>, int64_t> times_;  // per member
  std::map<RendezvousKey, std::deque<Values>> channels_;
};

}  // namespace tokamak
