#pragma once

#include <algorithm>

#include "ir/attrs.h"

namespace tokamak {

// Whether a dot of f32 may round its factors to TF32 (11 significant bits), or multiply them in
// another way that is at least as precise: at default precision, as XLA does on GPUs, or with an
// algorithm that asks for one product of TF32.
inline bool AllowsTf32(const DotAttrs& attrs) {
  if (attrs.algorithm)
    return attrs.algorithm->lhs_type == "tf32" && attrs.algorithm->rhs_type == "tf32" &&
           attrs.algorithm->primitive_operations == 1;
  return std::ranges::all_of(attrs.precision,
                             [](Precision precision) { return precision == Precision::kDefault; });
}

}  // namespace tokamak
