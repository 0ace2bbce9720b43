#pragma once

// The geometry of ops as data: which elements of an operand one element of a result reads. Every
// analysis and generator that needs it asks here, so that an op's geometry is defined once.
//
//     transpose(x), dimensions={1,0}     x[v1, v0]
//     slice(x), slice={[3:9:2]}          x[2 v0 + 3]
//     reshape(x), [6,4] to [24]          x[v0 / 4, v0 mod 4]
//     pad(x), padding=1_1_2              x[(v0 - 1) / 3], if 3 divides v0 - 1 and the index exists
//     dot(x, w)                          x[v0, v2], w[v2, v1], for all v2
//     dynamic-slice(x, i)                x[v0 + i], where i is clamped at run time
//     torch-index-select(x, i), dim=0    x[i[v0], v1], where a negative i counts from the end
//
// The first variables are the dimensions of the result. Those behind them are iterated for each
// element: reduced and contracted dimensions, taps of windows, index vectors of a scatter.
//
// Variables are symbols: their extents name dimensions, and a size is only one property of them.
//   Sharding propagation    An axis of a mesh that shards a variable shards every dimension that is
//                           read at this variable alone (SameDim). A sharded iterated variable
//                           leaves partial results to reduce. In a reshape, divisor and modulus
//                           split a variable into factors, and the major one can be sharded. All
//                           other expressions (start, condition, offset) need data of neighbours.
//   Dynamic shapes          Ops whose expressions are variables only have maps for dynamic sizes:
//                           broadcast, transpose, slice, reduce, dot, sort. The others need sizes
//                           as numbers so far. Each such number is a sum or product of extents.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/ir.h"
#include "support/inline_vector.h"

namespace tokamak {

// The extent of a variable, named after a dimension that has it: dimension `dim` of array `part` of
// the value of `array`. Extents of one name are equal even if the size is not known.
struct Extent {
  int64_t size = 1;              // kDynamic: known at run time only
  const Instr* array = nullptr;  // null: a number of the op's attributes, such as a window's size
  size_t part = 0, dim = 0;
};

struct IndexTerm {
  size_t variable = 0;
  int64_t coefficient = 1;
};

// A start index that is read at run time: element `component` of the index vector that the result's
// element reads. If the map of the index operand has a component variable, it is set to
// `component`.
struct RunTimeStart {
  enum class Kind : uint8_t {
    kNone,
    kClamped,      // to [0, last]
    kFromEnd,      // negative values count from the end (last + 1 is added), then clamped
    kSkipped,      // if it is outside [0, last], nothing is read
    kPermutation,  // not an operand: values decide which element along the dimension is read (sort)
    // The iterated variable `component` of `operand`, in [0, last], at which values of this operand
    // are selected (select-and-scatter).
    kSelected
  };
  Kind kind = Kind::kNone;
  bool is_subtracted = false;
  size_t operand = 0;
  int64_t component = 0;
  int64_t last = 0;

  // Whether it may differ from 0.
  bool Moves() const { return kind == Kind::kPermutation || (kind != Kind::kNone && last > 0); }
};

// p / divisor mod modulus, rounded down, of the position
//   p = offset + sum of coefficient * variable + start (or - start).
// With `last`, only elements with 0 <= p <= last and p divisible by `divisor` are read.
//
// In a reshape, coefficients and divisors are products of extents: joined dimensions v0, v1 are
// read at v0 * extent(v1) + v1; split ones are the digits of one index, the minor one first divided
// by 1.
struct IndexExpr {
  size_t first_term = 0, term_count = 0;  // in IndexMap::terms
  int64_t offset = 0;
  int64_t divisor = 1;
  int64_t modulus = 0;  // 0: none
  std::optional<int64_t> last = std::nullopt;
  RunTimeStart start = {};
};

struct IndexMap {
  size_t result_rank = 0;
  // [0, result_rank): dimensions of the result; then iterated ones. The vectors of a map are inline
  // because planners and generators create many: most arrays have at most 4 dimensions.
  InlineVector<Extent, 6> variables;
  // The iterated variable that numbers the components of an index vector.
  std::optional<size_t> component;
  InlineVector<IndexTerm, 6> terms;  // of all expressions
  InlineVector<IndexExpr, 4> dims;   // one per dimension of the operand
  // Conditions of a read besides those of `dims`: every one has a `last`. With `outside`, the
  // operand is read where not all of them hold.
  std::vector<IndexExpr> guards;
  bool outside = false;

  std::span<const IndexTerm> TermsOf(const IndexExpr& expr) const {
    return std::span(terms).subspan(expr.first_term, expr.term_count);
  }
  // The dimension of the result at whose index dimension `dim` of the operand is read, if both have
  // `size` elements: coefficient 1 and nothing else.
  std::optional<size_t> SameDim(size_t dim, int64_t size) const;
  // Whether an expression has no condition, or one that holds for all indices.
  bool AlwaysHolds(const IndexExpr& expr) const;
  // Whether every element of the result reads exactly one element, at an index that does not depend
  // on values.
  bool ReadsOneFixedElement() const;
  // The sizes of the iterated variables.
  Dims IteratedSizes() const;
  // The number of assignments of the iterated variables; INT64_MAX if it is larger. A dynamic size
  // counts as 1.
  int64_t ReadsPerElement() const;
};

// How result `result` of an instruction reads an operand. For an iota, operand 0 is the array of
// all indices along its dimension. Returns nullopt if there is no map: ops whose geometry is not
// fixed (calls, dynamic shapes, collectives) or that read each operand as a whole (fft, cholesky).
std::optional<IndexMap> IndexMapOf(const Instr& instr, size_t operand, size_t result = 0);

// Whether IndexMapOf returns a map.
bool HasIndexMap(const Instr& instr, size_t operand);
// Whether it does for some instructions of this op.
bool HasIndexMap(Op op);

// IndexMap::ReadsPerElement of operand 0; 1 if it has no map.
int64_t ReadsPerElement(const Instr& instr);

}  // namespace tokamak
