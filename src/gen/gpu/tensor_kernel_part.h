#pragma once

#include "gen/element.h"
#include "gen/gpu/dot_results.h"
#include "gen/gpu/tensor_tiling.h"

namespace tokamak::gpu {

// What the classes that write a part of a tensor-core kernel have in common: the kernel, and the
// dot that it computes.
class TensorKernelPart {
 public:
  TensorKernelPart(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                   const Instr& dot, const DotDimensions& dot_dims, const TensorTiling& tiling)
      : b_(b), emitter_(emitter), region_(region), dot_(dot), dot_dims_(dot_dims), t_(tiling) {}

 protected:
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const FusedRegion& region_;
  const Instr& dot_;
  const DotDimensions& dot_dims_;
  const TensorTiling& t_;
};

}  // namespace tokamak::gpu
