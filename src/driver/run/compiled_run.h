#pragma once

#include <memory>
#include <span>
#include <vector>

#include "driver/compile/compile_options.h"
#include "driver/compile/target.h"
#include "driver/run/executable.h"
#include "driver/run/held_arrays.h"
#include "interp/interp.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// A compiled program that takes and returns interpreter values. Does not modify the module.
class CompiledRun {
 public:
  static Result<CompiledRun> Make(const Module& module, const CompileOptions& options);
  // For a target that need not be one of a backend.
  static Result<CompiledRun> Make(const Module& module, const Target& target,
                                  const CompileOptions& options);

  // The arguments have the shapes of the entry's parameters, including tuples.
  Result<RunOutcome> Run(std::span<const Value> arguments) const;
  // The arguments, and memory for the results, in the layout that the executable expects.
  Result<HeldArrays> Hold(std::span<const Value> arguments) const;
  const Executable& executable() const { return *executable_; }

 private:
  CompiledRun() = default;
  std::vector<Value> Leaves(std::span<const Value> arguments) const;
  std::shared_ptr<const Executable> executable_;
  std::vector<Shape> results_;
  TextSpan root_;  // location of the results in the source text
};

}  // namespace tokamak
