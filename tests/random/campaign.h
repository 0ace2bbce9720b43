#pragma once

// Checks a range of seeds on several threads, and minimizes and stores the failures.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "random/check.h"
#include "random/options.h"

namespace tokamak::fuzz {

// A failed property of one seed.
struct Failure {
  uint64_t seed = 0;
  std::string through, what;
  Finding::Kind kind{};
  bool operator<(const Failure& other) const {
    return seed != other.seed ? seed < other.seed : through < other.through;
  }
};

// The results of a range of seeds.
struct Tally {
  int64_t programs = 0, instrs = 0;
  // Programs times transformations; skipped because no bits are promised, or by the interpreter.
  int64_t held = 0, failed = 0, unpromised = 0, rejected = 0;
  std::map<std::string, int64_t> ops, rejections;
  std::vector<Failure> failures;

  void Add(const Tally& other);
};

// Checks the seeds of the options on the requested number of threads. Reports progress on standard
// error if it is a terminal. If a seed takes a minute or ends the process, it is printed there
// first.
Tally RunCampaign(const Options& options,
                  const std::vector<std::unique_ptr<Transformation>>& transformations);

// Minimizes the failing program of a seed and writes it; returns the path.
Result<std::string> KeepFailure(const Options& options, const Failure& failure);

// Checks a file written by KeepFailure; empty if it passes.
Result<std::string> ReplayFile(const std::string& path);

}  // namespace tokamak::fuzz
