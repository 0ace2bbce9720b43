#pragma once

#include "ir/attr_enums.h"

namespace tokamak {

// y `Turned(d)` x wherever x `d` y: the operands exchanged.
constexpr CompareDirection Turned(CompareDirection direction) {
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
