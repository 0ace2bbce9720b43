#pragma once

#include <array>

#include "cost/machine.h"
#include "gen/gpu/tensor_tiling.h"

// Dots that tensor cores multiply in TF32, which they read along K only.

namespace tokamak::gpu {

// Which operands of a dot to store in f32 with K contiguous, instead of converting their tiles in
// the dot's kernel.
struct KMajorCopies {
  std::array<bool, 2> copies{};
  // Predicted microseconds of the kernel without copies, and of kernel and copies.
  double before_us = 0, after_us = 0;
  // Those of a library. It takes any layout, but is slow if K is contiguous in neither operand.
  double library_us = 0;

  bool IsWorthwhile() const { return copies[0] || copies[1]; }
};

// Returns false if the dot is not multiplied in TF32 by asynchronous multiplies.
bool ChooseKMajorCopies(const Instr& dot, const Machine& machine, KMajorCopies& choice);

}  // namespace tokamak::gpu
