#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "interp/context.h"
#include "interp/convert_element.h"
#include "interp/rounding.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// One element of any type, in the storage type of its kind.
struct ScalarSlot {
  union {
    double real = 0;
    int64_t s;
    uint64_t u;  // also pred
  };
  double imag = 0;

  template <typename T>
  T Get() const {
    if constexpr (std::is_same_v<T, double>) return real;
    if constexpr (std::is_same_v<T, int64_t>) return s;
    if constexpr (std::is_same_v<T, uint64_t>) return u;
    if constexpr (std::is_same_v<T, uint8_t>) return static_cast<uint8_t>(u);
    if constexpr (std::is_same_v<T, Complex>) return {real, imag};
  }
  template <typename T>
  void Set(T value) {
    if constexpr (std::is_same_v<T, double>) real = value;
    if constexpr (std::is_same_v<T, int64_t>) s = value;
    if constexpr (std::is_same_v<T, uint64_t> || std::is_same_v<T, uint8_t>) u = value;
    if constexpr (std::is_same_v<T, Complex>) real = value.real(), imag = value.imag();
  }
};

// A computation over scalars, compiled to a flat list of steps over registers, for ops that apply
// one to many elements: reduce, scatter, sort, map. Elementwise ops, tuples and calls become steps
// of a few nanoseconds that use the evaluators' own functions and rounding; any other scalar op
// calls its evaluator; a computation with arrays inside runs as a call. Not thread-safe.
//
//   ScalarBody body(*instr.called(0), context);
//   body.in(0).Set<double>(a); body.in(1).Set<double>(b);
//   TOK_RETURN_IF_ERROR(body.Apply());
//   double c = body.out(0).Get<double>();
class ScalarBody {
 public:
  // kAsF32: reals narrower than f32 are rounded as f32 inside, so that a sum of many rounds once.
  enum class Narrow : uint8_t { kRounded, kAsF32 };
  ScalarBody(const Computation& computation, Context& context, Narrow narrow = Narrow::kRounded);
  ScalarBody(const ScalarBody&) = delete;
  ScalarBody& operator=(const ScalarBody&) = delete;
  ~ScalarBody();

  // Parameters that are scalars; results are the leaves of the root.
  ScalarSlot& in(size_t parameter) { return registers_[parameter]; }
  const ScalarSlot& out(size_t result) const { return registers_[outputs_[result]]; }
  size_t result_count() const { return outputs_.size(); }
  ElementType result_type(size_t i) const { return result_types_[i]; }

  // Binds parameter i to this value permanently: captures.
  void Bind(size_t parameter, Value value);

  // Computes out from in.
  Status Apply();

  // The op of a body that computes only op(parameter 0, parameter 1), in either order if
  // commutative: add, multiply, maximum, minimum, and, or, xor.
  std::optional<Op> simple() const { return simple_; }

  // accumulator = body(accumulator, x[k * stride]) for k = 0 .. count-1. One result, two unbound
  // parameters, all of storage type T.
  template <typename T>
  Status Accumulate(T& accumulator, const T* x, size_t count, ptrdiff_t stride = 1);
  // accumulators[k] = body(accumulators[k], x[k * stride]).
  template <typename T>
  Status AccumulateEach(std::span<T> accumulators, const T* x, ptrdiff_t stride = 1);

 private:
  struct Step;
  class Compiler;
  Status CallWhole();
  template <typename T, typename Use>
  bool WithSimpleOp(Use use) const;

  const Computation& computation_;
  Context& context_;
  std::vector<ScalarSlot> registers_;  // parameters first
  std::vector<Step> steps_;
  std::vector<uint32_t> outputs_;
  std::vector<ElementType> result_types_;
  std::vector<std::optional<Value>> bound_;
  bool whole_ = false;  // not compiled: Apply makes a call
  std::optional<Op> simple_;
  ElementType simple_type_{};  // type that the simple op rounds to
};

}  // namespace tokamak
