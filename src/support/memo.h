#pragma once

#include <mutex>
#include <unordered_map>
#include <utility>

namespace tokamak {

// What was made before, by all that it was made from, for any number of threads. Keys are compared
// in full: one that has another's hash has not its value. A key has Hash() and ==.
template <typename Key, typename Value>
class Memo {
 public:
  // No more than `most` are kept; the rest is made each time.
  explicit Memo(size_t most) : most_(most) {}

  // The value of an equal key, or make(). Two threads may make the same at a time.
  template <typename Make>
  Value Get(const Key& key, Make&& make) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto found = known_.find(key);
      if (found != known_.end()) return found->second;
    }
    Value value = make();
    std::lock_guard<std::mutex> lock(mutex_);
    if (known_.size() < most_) known_.emplace(key, value);
    return value;
  }

 private:
  struct HashKey {
    size_t operator()(const Key& key) const { return static_cast<size_t>(key.Hash()); }
  };
  size_t most_;
  std::mutex mutex_;
  std::unordered_map<Key, Value, HashKey> known_;
};

}  // namespace tokamak
