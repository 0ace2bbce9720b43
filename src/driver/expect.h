#pragma once

#include <span>
#include <string>
#include <vector>

#include "driver/compare_arrays.h"
#include "driver/npz.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

struct ExpectOptions {
  Tolerance tolerance;
  // Judge by the given results alone.
  bool strict = false;
  // The results are the interpreter's own, not a backend's.
  bool is_interpreted = true;
};

struct ExpectOutcome {
  std::vector<Error> faults;       // one per result that differs
  std::vector<std::string> notes;  // one per result that agrees by another opinion only
};

// Compares the results of running `module` on `arguments` with out_0, out_1 ... of a file. Of a
// result with bounds only the elements there are count.
//
// Where they differ, the program is run again (docs/numerics.md, Comparisons): an element also
// agrees when reals that are rounded at the end only come close (the oracle), or when those of a
// run that takes subnormal numbers for 0 do, as XLA CPU does. What a backend gives must then be
// close to what the interpreter gives in one of these ways, too.
ExpectOutcome CompareWithExpected(const NpzFile& expected, const Module& module,
                                  std::span<const Value> arguments,
                                  const std::vector<Value>& results, const ExpectOptions& options);

}  // namespace tokamak
