#pragma once

#include <cstdint>
#include <memory>

#include "ir/ir.h"

namespace tokamak::fuzz {

// How large a drawn program may get.
struct ProgramSize {
  int max_instrs = 40;  // of all computations together
  int64_t max_elements = 1000;
  // Larger arrays, and in most programs what folds, scans, sorts, scatters, multiplies: what the
  // generators of backends are for.
  bool wide = false;
  // Only what has the same bits on every backend: no sums of reals, no functions with an accuracy.
  bool exact = false;
  // The first of a number, the second when programs are wide.
  int64_t Of(int64_t narrow, int64_t when_wide) const { return wide ? when_wide : narrow; }
};

// A random program that verifies. One number is the whole of it: equal seeds
// give equal programs on every machine and under every compiler. It draws from
// every op that the interpreter runs alone and without a host, and prefers what
// optimizers look for: constants, shared operands, chains of data movement,
// loops with invariant code, bodies that repeat.
std::unique_ptr<Module> DrawProgram(uint64_t seed, const ProgramSize& size = {});

}  // namespace tokamak::fuzz
