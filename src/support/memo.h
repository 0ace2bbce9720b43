#pragma once

#include <mutex>
#include <unordered_map>
#include <utility>

namespace tokamak {

// A thread-safe memo table: maps keys to computed values. Keys are compared in full, so a hash
// collision never returns another key's value. A key type provides Hash() and ==.
template <typename Key, typename Value>
class Memo {
 public:
  // Keeps at most `most` entries; further values are recomputed on every call.
  explicit Memo(size_t most) : most_(most) {}

  // Returns the value of an equal key, or make(). Two threads may compute the same value
  // concurrently.
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
