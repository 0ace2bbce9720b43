#pragma once

// The generator of random programs.

#include <cstdint>
#include <memory>

#include "ir/ir.h"

namespace tokamak::fuzz {

// Size limits of a generated program.
struct ProgramSize {
  int max_instrs = 40;  // in all computations together
  int64_t max_elements = 1000;
  // Larger arrays, and in most programs the ops that backend generators specialize in: column
  // reductions, scans, sorts, scatters, dots.
  bool wide = false;
  // Only ops with the same bits on every backend: no sums of reals, no functions of limited
  // accuracy.
  bool exact = false;
  // Contractions with up to 2^24 products, instead of all ops (draw_contraction_program.cc).
  bool contractions = false;
  // The first argument, or the second if programs are wide.
  int64_t Of(int64_t narrow, int64_t when_wide) const { return wide ? when_wide : narrow; }
};

// Generates a random program that verifies. The seed determines it: equal seeds give equal programs
// on every machine and with every compiler. It draws from every op that the interpreter runs alone
// and without a host, and prefers patterns that optimizers look for: constants, shared operands,
// chains of data movement, loops with invariant code, repeated bodies.
std::unique_ptr<Module> DrawProgram(uint64_t seed, const ProgramSize& size = {});

}  // namespace tokamak::fuzz
