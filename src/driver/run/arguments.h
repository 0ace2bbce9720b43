#pragma once

#include <string>
#include <utility>
#include <vector>

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"
#include "text/npz.h"

// Conversion between .npz files (in_0, out_0 ...) and the parameters and results of an entry.

namespace tokamak {

// The arrays among the parameters of a computation, tuples flattened depth first: in_0, in_1 ...
// Tokens are not numbered.
std::vector<Shape> FlattenParameters(const Computation& entry);

// One value per parameter, built from the arrays in_0, in_1 ... of a file.
Result<std::vector<Value>> ArgumentsFrom(const NpzFile& file, const Computation& entry);

// The results of the entry as out_0, out_1 ...; tokens are not numbered. A result of bounded
// dynamic shape (f32[<=4]) is stored in an array of its bounds: the valid elements, packed, then
// zeros. XLA uses the same convention.
std::vector<std::pair<std::string, Literal>> NameResults(const std::vector<Value>& results,
                                                         const Computation& entry);

}  // namespace tokamak
