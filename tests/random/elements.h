#pragma once

// Random array contents for generated programs and their inputs.

#include <vector>

#include "interp/value.h"
#include "ir/ir.h"
#include "random/random.h"

namespace tokamak::fuzz {

// The kind of numbers in an array.
enum class Mood : uint8_t {
  kZeros,
  kOnes,
  kSplat,     // one number, small or special
  kIota,      // 0, 1, 2 ... in row-major order, possibly with another start or step
  kSmall,     // small integers
  kOrdinary,  // reals of both signs, integers on both sides of 0
  kSpecial,   // NaN, infinities, signed zeros, subnormals, extremes, mixed with ordinary ones
};

Mood DrawMood(Random& random);

// A random array of the given shape. All numbers are representable in the type.
Value DrawElements(Random& random, const Shape& shape, Mood mood);

// Arguments for the entry of a generated program, tuples included; `ordinary` omits most special
// values.
std::vector<Value> DrawInputs(uint64_t seed, const Computation& entry, bool ordinary);

}  // namespace tokamak::fuzz
