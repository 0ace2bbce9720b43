#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Functions of the host that custom calls reach by name. Called by all devices of all runs.
class HostCalls {
 public:
  virtual bool Knows(const std::string& target) const = 0;
  // Only for a target that it knows; `device` asks, numbered replica * partitions + partition.
  virtual Result<Value> Call(const Instr& instr, std::span<const Value> operands,
                             int64_t device) = 0;

 protected:
  HostCalls() = default;
  ~HostCalls() = default;
};

// The host of a run: what infeed gives, where probes go. Shared by all devices.
class Host {
 public:
  explicit Host(std::string probe_dir) : probe_dir_(std::move(probe_dir)) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();  // removes a temporary probe folder

  void Feed(Value value);
  // The next value for infeed: an array, or a tuple of what is taken together.
  Result<Value> TakeFeed();

  // Channels of a run with one device.
  void Post(int64_t channel, std::vector<Value> values);
  Result<std::vector<Value>> Take(int64_t channel);

  // Writes the next occurrence of a probe: <dir>/<id>_<n>.npy.
  Status WriteProbe(const std::string& id, const Value& value);
  // What a probe wrote at its `iteration`-th time, from 0; an array of the given shape.
  Result<Value> ReadProbe(const std::string& id, int64_t iteration, const Shape& shape);

  HostCalls* calls = nullptr;  // null: none

  // Prints to stdout, one text at a time.
  void Print(const std::string& text);

 private:
  Result<std::string> ProbePath(const std::string& id, int64_t iteration);

  std::mutex mutex_;
  std::map<int64_t, std::deque<std::vector<Value>>> channels_;
  std::deque<Value> feed_;
  std::string probe_dir_;
  bool own_dir_ = false;
  std::map<std::string, int64_t> probe_counts_;
};

}  // namespace tokamak
