#pragma once

#include "gen/library/convolution.h"
#include "gen/library/libraries.h"
#include "gen/library/tensor_convolution.h"
#include "rewrite/pass.h"

namespace tokamak {

// Whether a convolution is kept because a library of the target computes it directly. `tensor`: its
// TensorConvolutionOf.
inline bool IsLeftToLibrary(const Instr& conv, const TensorConvolution& tensor,
                            const PassTarget& target) {
  if (target.libraries == nullptr) return UsesConvolutionLibrary(conv, *target.machine);
  if (target.kind != kGpu || tensor.BeatsLibrary()) return false;
  std::optional<LibraryConvolution> read = MatchLaidOutConvolution(conv);
  return read && PrefersConvolutionLibrary(*read, conv) && target.libraries->WhyNot(*read).empty();
}

}  // namespace tokamak
