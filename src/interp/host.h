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

// Host functions that custom calls reach by name. Called by all devices of all runs.
class HostCalls {
 public:
  virtual bool Knows(const std::string& target) const = 0;
  // Requires a known target. `device` is the calling device, numbered replica * partitions +
  // partition.
  virtual Result<Value> Call(const Instr& instr, std::span<const Value> operands,
                             int64_t device) = 0;

 protected:
  HostCalls() = default;
  ~HostCalls() = default;
};

// The host of a run: infeed values, probes, printing. Shared by all devices.
class Host {
 public:
  explicit Host(std::string probe_dir) : probe_dir_(std::move(probe_dir)) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();  // removes a temporary probe folder

  void Feed(Value value);
  // The next infeed value: an array, or a tuple of values that are taken together.
  Result<Value> TakeFeed();

  // Channels of a single-device run.
  void Post(int64_t channel, std::vector<Value> values);
  Result<std::vector<Value>> Take(int64_t channel);

  // Writes the next occurrence of a probe to <dir>/<id>_<n>.npy.
  Status WriteProbe(const std::string& id, const Value& value);
  // Reads the `iteration`-th occurrence of a probe, from 0, as an array of the given shape.
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
