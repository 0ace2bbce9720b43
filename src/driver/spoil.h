#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace tokamak {

struct SpoilCount {
  int64_t spoiled = 0;    // checks whose expected value is now another
  int64_t untouched = 0;  // checks without an expected constant that is theirs alone
};

// Tests the tests: changes one element of the constant that each check of the
// program expects, so that a run that looks at its checks must refuse each.
SpoilCount SpoilExpected(Module& module);

}  // namespace tokamak
