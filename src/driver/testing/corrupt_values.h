#pragma once

#include <cstdint>

#include "ir/ir.h"

// Mutation testing of programs with checks (`run --corrupt`).

namespace tokamak {

struct CorruptionCount {
  int64_t corrupted = 0;  // checks whose expected value was changed
  int64_t untouched = 0;  // checks without an expected constant that only they use
};

// Mutation test of test programs: changes one element of the constant that each check expects, so
// that a run that evaluates its checks must fail each of them.
CorruptionCount CorruptExpected(Module& module);

}  // namespace tokamak
