#pragma once

// Applying the scalar computation of a reduce, sort or scatter many times.

#include <optional>
#include <span>
#include <vector>

#include "interp/context.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// One element of any type, as it is stored.
class Scalar {
 public:
  Scalar() : signed_(0) {}
  template <typename T>
  explicit Scalar(T value) : Scalar() {
    Set(value);
  }
  void Set(uint8_t value) { unsigned_ = value; }
  void Set(int64_t value) { signed_ = value; }
  void Set(uint64_t value) { unsigned_ = value; }
  void Set(double value) { real_ = value; }
  void Set(Complex value) {
    real_ = value.real();
    imag_ = value.imag();
  }
  template <typename T>
  T Get() const {
    if constexpr (std::is_same_v<T, Complex>) {
      return Complex(real_, imag_);
    } else if constexpr (std::is_same_v<T, double>) {
      return real_;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return signed_;
    } else {
      return static_cast<T>(unsigned_);
    }
  }

 private:
  union {
    int64_t signed_;
    uint64_t unsigned_;
    double real_;
  };
  double imag_ = 0;
};

// Element i of an array; the array of many scalars.
Scalar ScalarAt(const Value& array, int64_t i);
Value ArrayOf(Shape shape, std::span<const Scalar> scalars);
// The elements of an array in the storage of another type (a body may compute
// in a wider type than its inputs have).
std::vector<Scalar> ScalarsOf(const Value& array, ElementType as);

class BodyCall {
 public:
  // The last parameters of the body are bound to `captures` for good.
  BodyCall(const Computation& body, std::span<const Value> captures, Context& context);
  // One argument per other parameter; one result per element of the root.
  Status Apply(std::span<const Scalar> arguments, std::span<Scalar> results);

 private:
  const Computation& body_;
  std::vector<Value> captures_;
  Context& context_;
};

// The op of a body that is nothing but x op y (in either order) of its two
// parameters, for the ops whose order does not matter; else nothing.
std::optional<Op> CommutativeBody(const Computation& body);
// Whether a body is nothing but its parameter `number`.
bool IsParameter(const Computation& body, int64_t number);

// a op b, not rounded, for an op of CommutativeBody. Maximum and minimum give
// NaN if either is.
template <typename T>
T Combine(Op op, T a, T b);

}  // namespace tokamak
