#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "driver/target.h"
#include "gen/library/libraries.h"
#include "rewrite/pass.h"

namespace tokamak {

// A target that users name, as passes see it.
class NamedTarget {
 public:
  // "host": this machine with its libraries; "h200": an H200 with all of its own, whether one is
  // there or not; "": none. `vector_bits`: of its vectors; 0: as they are.
  explicit NamedTarget(std::string_view name, int64_t vector_bits = 0);

  PassTarget ForPasses() const;

 private:
  Target target_;
  std::unique_ptr<TargetLibraries> libraries_;  // null: there is no target
};

// What `opt` and `bisect` run for it: the passes that were asked for, or by default those that
// Compile runs.
std::string PassesFor(std::string_view target, const std::string& passes);

}  // namespace tokamak
