#pragma once

#include <vector>

#include "gen/gpu/chain_tiling.h"
#include "kernel/builder.h"

namespace tokamak::gpu {

// Powers of two that rows of weights are multiplied with, of weights that are the sum of two f16
// (split_operand.h): f16 has few exponents, so small weights would lose bits. They make the largest
// weight of a row so far nearly the largest f16. When a larger one comes, the product so far is
// multiplied with the ratio of both scales, and in the end with the inverse of the last one.
class ChainScales {
 public:
  ChainScales(KernelBuilder& b, const ChainTiling& tiling) : b_(b), t_(tiling) {}

  // `halves`: rows of a thread.
  void Declare(int64_t halves);
  // Whether the weights of a second dot have scales.
  bool Has(size_t second) const;
  // Begins the row with this number.
  void Begin(Scalar half);
  // Adds a weight of a tile of columns, of four threads that share the row.
  void Add(size_t second, Scalar half, Scalar weight);
  // Ends the tile. Returns the factor of the product so far.
  Scalar Update(size_t second, Scalar half);
  Scalar Scale(size_t second, Scalar half) { return b_.Read(scales_[second], half); }
  Scalar Inverse(size_t second, Scalar half) { return InverseOf(Scale(second, half)); }

 private:
  Scalar InverseOf(const Scalar& scale);

  KernelBuilder& b_;
  const ChainTiling& t_;
  std::vector<ArrayId> largest_, scales_;  // by second dot
};

}  // namespace tokamak::gpu
