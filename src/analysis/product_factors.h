#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"

// Values as products of factors that are moved, converted, masked and scaled on the way:
//
//     multiply(select(p, convert(c), 0), broadcast(1 / s))  =  c * [p] * s^-1

namespace tokamak {

// A value, and for each of its dimensions the dimension of an array that it runs along, or
// DimsAlong::kUnit (analysis/dot_chains.h) for one of size 1.
struct ValueAlong {
  const Instr* instr = nullptr;
  Dims along;
};
// The array itself.
ValueAlong AlongItself(const Instr& array);

// The operand of an op that repeats or moves elements: of a broadcast, a copy, a transpose, or a
// reshape that only inserts or removes dimensions of size 1. nullopt for other ops.
std::optional<ValueAlong> BeforeMove(const ValueAlong& value);

struct Factor {
  enum class How : uint8_t {
    kTimes,
    kDividedBy,
    kWhere,     // 1 where the pred is true, otherwise 0
    kWhereNot,  // 1 where it is false
  };
  ValueAlong value;
  How how = How::kTimes;
};

struct Factors {
  std::vector<Factor> all;  // their values are no moves
  bool is_negative = false;
  // The fewest mantissa bits of the products so far: of the value itself, and of all values between
  // it and the factors.
  int mantissa_bits = 0;
};
// A value of numbers as a product. A factor that runs along none of the value's dimensions `inside`
// is not split. Bounded by a number of factors.
Factors FactorsOf(const Instr& value, const Dims& inside);

}  // namespace tokamak
