#pragma once

#include <array>

#include "cost/machine.h"
#include "gen/gpu/tensor_tiling.h"

// Dots that tensor cores multiply in TF32 or in 8-bit types, which they read along K only.

namespace tokamak::gpu {

// Which operands of a dot to store with K contiguous, in f32 for TF32, instead of converting their
// tiles in the dot's kernel.
struct KMajorCopies {
  TensorForm form;  // in which the dot is multiplied then
  std::array<bool, 2> copies{};
  // Predicted microseconds of the kernel without copies, and of kernel and copies.
  double before_us = 0, after_us = 0;
  // Those of a library. It takes any layout, but is slow if K is contiguous in neither operand.
  double library_us = 0;

  bool IsWorthwhile() const { return copies[0] || copies[1]; }
};

// Returns false if the dot has no form of one product per panel. Of 16-bit factors, only operands
// that the bulk copy engine cannot address are copied.
bool ChooseKMajorCopies(const Instr& dot, const Machine& machine, KMajorCopies& choice);

}  // namespace tokamak::gpu
