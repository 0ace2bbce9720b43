#pragma once

// Applies the scalar computation of a reduce, sort or scatter many times.

#include <optional>
#include <span>
#include <vector>

#include "interp/context.h"
#include "interp/scalar_body.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

template <typename T>
ScalarSlot ScalarOf(T value) {
  ScalarSlot scalar;
  scalar.Set<T>(value);
  return scalar;
}

// An array of scalars.
Value ArrayOf(Shape shape, std::span<const ScalarSlot> scalars);
// The elements of an array in the storage of another type (a body may compute in a wider type than
// that of its inputs).
std::vector<ScalarSlot> ScalarsOf(const Value& array, ElementType as);

// A ScalarBody whose arguments and results are passed as spans.
class BodyCall {
 public:
  // The last parameters of the body are bound to `captures` permanently.
  BodyCall(const Computation& body, std::span<const Value> captures, Context& context,
           ScalarBody::Narrow narrow = ScalarBody::Narrow::kRounded);
  // Takes one argument per unbound parameter and one result per element of the root.
  Status Apply(std::span<const ScalarSlot> arguments, std::span<ScalarSlot> results);

 private:
  std::unique_ptr<ScalarBody> body_;
};

// The op of a body that computes only x op y (in either order) of its two parameters, if op is
// commutative; otherwise nullopt.
std::optional<Op> CommutativeBody(const Computation& body);
// Whether a body returns its parameter `number` unchanged.
bool IsParameter(const Computation& body, int64_t number);

// a op b, not rounded, for an op that CommutativeBody returns. Maximum and minimum give NaN if
// either operand is NaN.
template <typename T>
T Combine(Op op, T a, T b);

}  // namespace tokamak
