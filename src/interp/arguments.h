#pragma once

#include <cstdint>
#include <vector>

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Supplies the argument arrays of a run.
class ArraySource {
 public:
  // Returns the n-th array among the parameters, with tuples flattened depth first.
  virtual Result<Value> Array(int64_t number, const Shape& shape) = 0;

 protected:
  ~ArraySource() = default;
};

// Returns one value per parameter, built from arrays. Tokens are not numbered.
Result<std::vector<Value>> MakeArguments(const Computation& entry, ArraySource& source);

// Returns one random value per parameter: reals and complex parts in [-1, 1), integers in [0, 4)
// (so that most indices are in bounds), preds with equal probability. Equal seeds give equal values
// on every machine. A dynamic dimension gets its bound, or 3 if it has none.
Result<std::vector<Value>> DrawArguments(uint64_t seed, const Computation& entry);

}  // namespace tokamak
