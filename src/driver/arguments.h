#pragma once

#include <string>
#include <utility>
#include <vector>

#include "driver/npz.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// The arrays among the parameters of a computation, tuples flattened depth
// first: in_0, in_1 ... Tokens take no number.
std::vector<Shape> FlattenParameters(const Computation& entry);

// One value per parameter, made from the arrays in_0, in_1 ... of a file.
Result<std::vector<Value>> ArgumentsFrom(const NpzFile& file, const Computation& entry);

// Results of the entry as out_0, out_1 ...; tokens take no number. A result with
// bounds (f32[<=4]) is given in an array of its bounds: the elements there are,
// packed, then zeros, as XLA does.
std::vector<std::pair<std::string, Literal>> NameResults(const std::vector<Value>& results,
                                                         const Computation& entry);

}  // namespace tokamak
