#pragma once

#include "kernel/scalar.h"
#include "runtime/convolution.h"
#include "runtime/matrix_product.h"

// Reference convolution for the simulated GPU.
namespace tokamak::cuda {

// A 16-bit float type, stored as its bits.
template <ScalarType kType>
struct NarrowFloat {
  uint16_t bits = 0;
  NarrowFloat() = default;
  explicit NarrowFloat(double value) : bits(static_cast<uint16_t>(BitsOfDouble(kType, value))) {}
  explicit operator double() const { return DoubleOfBits(kType, bits); }
};
using BF16 = NarrowFloat<ScalarType::kBF16>;
using F16 = NarrowFloat<ScalarType::kF16>;

// Computes a convolution by its definition, accumulating in double.
void Convolve(const Convolution& convolution, const ProductArrays& arrays);

}  // namespace tokamak::cuda
