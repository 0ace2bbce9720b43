#pragma once

#include <cstdint>
#include <vector>

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Where arguments come from.
class ArraySource {
 public:
  // The value of the n-th array among the parameters, tuples flattened depth first.
  virtual Result<Value> Array(int64_t number, const Shape& shape) = 0;

 protected:
  ~ArraySource() = default;
};

// One value per parameter, made from arrays. Tokens take no number.
Result<std::vector<Value>> MakeArguments(const Computation& entry, ArraySource& source);

// One value per parameter, drawn: reals and complex parts in [-1, 1), integers
// in [0, 4) (so that indices mostly lie inside), preds evenly. Equal seeds
// give equal values on every machine. A dynamic dimension gets its bound, or 3.
Result<std::vector<Value>> DrawArguments(uint64_t seed, const Computation& entry);

}  // namespace tokamak
