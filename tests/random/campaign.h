#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "random/check.h"
#include "random/options.h"

namespace tokamak::fuzz {

// Something that does not hold, of one seed.
struct Failure {
  uint64_t seed = 0;
  std::string through, what;
  Finding::Kind kind{};
  bool operator<(const Failure& other) const {
    return seed != other.seed ? seed < other.seed : through < other.through;
  }
};

// What a range of seeds came to.
struct Tally {
  int64_t programs = 0, instrs = 0;
  // Programs times transformations; skipped for no bits that are promised, and by the interpreter.
  int64_t held = 0, failed = 0, unpromised = 0, refused = 0;
  std::map<std::string, int64_t> ops, refusals;
  std::vector<Failure> failures;

  void Add(const Tally& other);
};

// Checks the options' seeds on their number of threads. Says on standard error
// how far it is, when that is a terminal. A seed that takes a minute, or ends the
// process, is named there before the process ends.
Tally RunCampaign(const Options& options,
                  const std::vector<std::unique_ptr<Transformation>>& transformations);

// Makes the failing program of a seed small and writes it; the path.
Result<std::string> KeepFailure(const Options& options, const Failure& failure);

// Checks a file that KeepFailure wrote; empty when it holds.
Result<std::string> ReplayFile(const std::string& path);

}  // namespace tokamak::fuzz
