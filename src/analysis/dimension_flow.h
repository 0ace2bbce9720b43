#pragma once

// Which dimensions of operands and results an op reads together, from its index maps. Sharding
// propagation follows these: if one dimension of a factor is sharded, all of them can be, and no
// device needs elements of another one.
//
//     dot [b,m,k] x [b,k,n]        b: lhs 0, rhs 0, result 0      m: lhs 1, result 1
//                                  n: rhs 2, result 2             k: lhs 2, rhs 1 (partial results)
//     reshape [a,b] to [a*b]       a: operand 0, result 0 as the major factor
//     gather of rows x[i[n]]       n: indices 0, result 0
//     reverse, pad, dynamic-slice  only the dimensions that they leave as they are

#include <optional>
#include <vector>

#include "analysis/index_map.h"

namespace tokamak {

// A dimension of an operand that is read at the index of a factor.
struct FlowDim {
  size_t operand = 0, dim = 0;
  // The dimension has the factor and others, all of them minor: blocks of equal size of both
  // correspond if their number divides both sizes (reshape).
  bool is_major = false;
  bool operator==(const FlowDim&) const = default;
};

// A variable of the op's index maps. Iterated variables of several operands are one factor if their
// extents have the same name.
struct DimFactor {
  Extent extent;
  std::optional<size_t> result_dim;  // none: it is reduced
  std::vector<FlowDim> operand_dims;
};

// The factors of an instruction that have a name: first the dimensions of the result, then the
// iterated ones in the order in which operands read them. Operands without an index map are in no
// factor. Sizes may be dynamic.
std::vector<DimFactor> DimensionFlow(const Instr& instr, size_t result = 0);

}  // namespace tokamak
