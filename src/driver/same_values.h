#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/npz.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

// The proof that a pass is harmless: the interpreter gives the same bits before and after.

namespace tokamak {

// One value per parameter, full of what goes wrong: NaN, infinities, both zeros, subnormal and
// greatest numbers, extremes of integers, among ordinary ones. Equal seeds give equal values.
Result<std::vector<Value>> DrawHardArguments(uint64_t seed, const Computation& entry);

struct ProofOptions {
  double seconds = 1;  // of one run of the program as it was; a longer one proves nothing
  const NpzFile* inputs = nullptr;  // also run on these; may be null
  uint64_t seed = 1;
};

// The runs of one program that others are compared with.
class Proof {
 public:
  // Runs `module` (verified) on drawn, on hard and on given inputs.
  Proof(const Module& module, const ProofOptions& options);

  // Why nothing can be compared: the program takes too long, draws numbers, cannot be run. "": it
  // can.
  const std::string& why_not() const { return why_not_; }
  int64_t runs() const { return static_cast<int64_t>(runs_.size()); }

  // "" when `after` gives the bits that `module` gave (NaN equals NaN whatever its payload, +0 is
  // not -0) and passes the same checks, else the first difference in words. `added`: the values of
  // arguments that passes added (PassOptions::added).
  std::string Compare(const Module& after, std::span<const Value> added = {}) const;
  // The same for passes that may round (MayRound): on drawn and given inputs, a number may be as
  // far from what it was, or from what it is without any rounding, as `run --expect` allows.
  // Results that are further from that themselves are not looked at.
  std::string CompareClosely(const Module& after, std::span<const Value> added = {}) const;

 private:
  struct Run {
    std::string inputs;  // in words
    std::vector<Value> arguments;
    std::vector<Literal> results;
    bool is_hard = false;
    int64_t checks = 0, failures = 0;
    double seconds = 0;
  };
  std::optional<Run> RunOn(const Module& module, std::string inputs, std::vector<Value> arguments,
                           double seconds, std::string& why) const;

  std::unique_ptr<Module> module_;  // as it was
  std::vector<Run> runs_;
  std::string why_not_;
};

}  // namespace tokamak
