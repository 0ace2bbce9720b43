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

}  // namespace tokamak
