#pragma once

#include <vector>

#include "interp/value.h"
#include "ir/ir.h"
#include "random/random.h"

namespace tokamak::fuzz {

// What kind of numbers an array is filled with.
enum class Mood : uint8_t {
  kZeros,
  kOnes,
  kSplat,     // one number, small or special
  kIota,      // 0, 1, 2 ... in row-major order, perhaps from elsewhere or by another step
  kSmall,     // small integers
  kOrdinary,  // reals of both signs, integers of either side of 0
  kSpecial,   // NaN, infinities, signed zeros, subnormals, extremes; some ordinary ones between
};

Mood DrawMood(Random& random);

// An array of the given shape. Numbers are those that the type can hold.
Value DrawElements(Random& random, const Shape& shape, Mood mood);

// Arguments for the entry of a drawn program. Tuples are filled too; `ordinary`
// leaves out most of what is special.
std::vector<Value> DrawInputs(uint64_t seed, const Computation& entry, bool ordinary);

}  // namespace tokamak::fuzz
