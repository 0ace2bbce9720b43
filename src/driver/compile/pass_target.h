#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "driver/compile/target.h"
#include "gen/library/libraries.h"
#include "rewrite/pass.h"

namespace tokamak {

// A target named by the user, in the form that passes take.
class NamedTarget {
 public:
  // "host": this machine with its libraries; "h200": an H200 with all its libraries, present or
  // not; empty: no target. `vector_bits`: overrides the vector width; 0: no override.
  explicit NamedTarget(std::string_view name, int64_t vector_bits = 0);

  PassTarget ForPasses() const;

 private:
  Target target_;
  std::unique_ptr<TargetLibraries> libraries_;  // null if there is no target
};

// The passes that `opt` and `bisect` run for a target: the requested ones, or by default those that
// Compile runs.
std::string PassesFor(std::string_view target, const std::string& passes);

}  // namespace tokamak
