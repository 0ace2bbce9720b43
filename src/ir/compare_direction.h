#pragma once

#include "ir/attr_enums.h"

namespace tokamak {

// The direction after exchanging the operands: y `Swapped(d)` x holds exactly if x `d` y does.
constexpr CompareDirection Swapped(CompareDirection direction) {
  switch (direction) {
    case CompareDirection::kLt:
      return CompareDirection::kGt;
    case CompareDirection::kLe:
      return CompareDirection::kGe;
    case CompareDirection::kGt:
      return CompareDirection::kLt;
    case CompareDirection::kGe:
      return CompareDirection::kLe;
    case CompareDirection::kEq:
    case CompareDirection::kNe:
      return direction;
  }
  return direction;
}

// Whether a comparison of two numbers holds.
template <typename T>
constexpr bool Holds(T x, CompareDirection direction, T y) {
  switch (direction) {
    case CompareDirection::kEq:
      return x == y;
    case CompareDirection::kNe:
      return x != y;
    case CompareDirection::kLt:
      return x < y;
    case CompareDirection::kLe:
      return x <= y;
    case CompareDirection::kGt:
      return x > y;
    case CompareDirection::kGe:
      return x >= y;
  }
  return false;
}

}  // namespace tokamak
