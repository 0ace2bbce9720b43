#pragma once

#include <span>
#include <string>
#include <vector>

#include "driver/run/compare_arrays.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"
#include "text/npz.h"

// `run --expect`: comparison of results with the expected arrays of a file.

namespace tokamak {

struct ExpectOptions {
  Tolerance tolerance;
  // Compare with the expected results only; do not rerun the program with other roundings.
  bool strict = false;
  // The results come from the interpreter, not from a backend.
  bool is_interpreted = true;
};

struct ExpectOutcome {
  std::vector<Error> mismatches;   // one per result that differs
  std::vector<std::string> notes;  // one per result that agrees with another opinion only
};

// Compares the results of running `module` on `arguments` with out_0, out_1 ... of a file. Of a
// result of bounded dynamic shape only the valid elements are compared.
//
// If they differ, the program is run again (docs/numerics.md, Comparisons). An element also agrees
// if it is close to the oracle, which rounds reals only at the end, or to a run that flushes
// subnormal numbers to 0, as XLA CPU does. Results of a backend must then also be close to one of
// these interpreter runs.
ExpectOutcome CompareWithExpected(const NpzFile& expected, const Module& module,
                                  std::span<const Value> arguments,
                                  const std::vector<Value>& results, const ExpectOptions& options);

}  // namespace tokamak
