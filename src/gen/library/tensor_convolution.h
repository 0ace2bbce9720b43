#pragma once

#include "cost/machine.h"
#include "ir/ir.h"

// Which convolutions the contract generator computes by tensor cores: as dots whose windows the
// bulk copy engine reads (gen/gpu/window_tiling.h).

namespace tokamak {

// The dot of a filter gradient is cut into slices along K, whose results are added: slices of the
// batch, or of the first dimension of its images. The input gradient of a strided convolution is
// split into phases (split-dilated-convolutions), each of which is such a dot.
struct TensorConvolution {
  int64_t slices = 0;  // 0: it does not compute it
  bool is_filter = false, cuts_space = false;
  bool has_phases = false;
  bool copies_filter = false;     // to have its input channels last
  double us = 0, library_us = 0;  // predicted microseconds, if it can compute it

  bool BeatsLibrary() const { return slices > 0 && us <= library_us; }
};
TensorConvolution TensorConvolutionOf(const Instr& conv, const Machine& machine);

}  // namespace tokamak
