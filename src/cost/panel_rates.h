#pragma once

#include <cstdint>

namespace tokamak {

// Multiplies of 16-bit factors that take as long as one of TF32 (hardware: NVIDIA data sheet).
inline constexpr int64_t kTf32Products = 2;
// Of those, the ones that take as long as one of 8-bit factors (hardware: NVIDIA data sheet; not
// measured).
inline constexpr double kByteProducts = 0.5;

// GPU: nanoseconds of a thread that fills panels of asynchronous multiplies, per element (or word
// of narrower elements) that it moves from one place in shared memory to another. The multiplies do
// not hide it. Measured on H200 with f32 that is transposed for TF32: 4096 x 4096 x 4096 takes 339
// us without, 677 us with 64 elements per thread and 32 of K.
inline constexpr double kPanelMoveNs = 10;
// Operations of such a thread that do not wait for each other. Chosen: it computes the elements of
// a vector at once; not measured.
inline constexpr double kIndependentPanelOps = 4;
// Results of such a multiply whose consumers a thread computes without waiting for one after the
// other. Measured on H200: 1.5 to 4 (sums alone, with bias and gelu, with Adam's update).
inline constexpr double kIndependentResults = 2;

}  // namespace tokamak
