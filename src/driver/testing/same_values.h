#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"
#include "text/npz.h"

// Evidence that a pass is correct: the interpreter computes the same bits before and after.

namespace tokamak {

// One value per parameter, with many special values among ordinary ones: NaN, infinities, both
// zeros, subnormal and largest numbers, extreme integers. Equal seeds give equal values.
Result<std::vector<Value>> DrawHardArguments(uint64_t seed, const Computation& entry);

struct ProofOptions {
  double seconds = 1;  // limit of one run of the original program; longer runs are not compared
  const NpzFile* inputs = nullptr;  // also run on these; may be null
  uint64_t seed = 1;
};

// Reference runs of one program, with which transformed programs are compared.
class Proof {
 public:
  // Runs `module` (verified) on random, on special (hard) and on user-supplied inputs.
  Proof(const Module& module, const ProofOptions& options);

  // Why no comparison is possible: the program takes too long, generates random numbers or cannot
  // be run. Empty if it is possible.
  const std::string& why_not() const { return why_not_; }
  int64_t runs() const { return static_cast<int64_t>(runs_.size()); }

  // Returns an empty string if `after` computes the same bits as `module` (NaN equals NaN with any
  // payload, +0 differs from -0) and passes the same checks; otherwise the first difference as
  // text. `added`: the values of arguments that passes added (PassOptions::added).
  std::string Compare(const Module& after, std::span<const Value> added = {}) const;
  // The comparison for passes that may round (MayRound), on random and user-supplied inputs: a
  // number may differ from the original result, or from the unrounded result, by the tolerance of
  // `run --expect`. Elements whose original result already exceeds that tolerance are skipped.
  std::string CompareClosely(const Module& after, std::span<const Value> added = {}) const;

 private:
  struct Run {
    std::string inputs;  // description for messages
    std::vector<Value> arguments;
    std::vector<Literal> results;
    bool is_hard = false;
    int64_t checks = 0, failures = 0;
    double seconds = 0;
  };
  std::optional<Run> RunOn(const Module& module, std::string inputs, std::vector<Value> arguments,
                           double seconds, std::string& why) const;

  std::unique_ptr<Module> module_;  // the original module
  std::vector<Run> runs_;
  std::string why_not_;
};

}  // namespace tokamak
