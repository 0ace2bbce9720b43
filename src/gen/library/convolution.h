#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"

// Which convolutions go to the GPU's library (cuDNN), and in which form.

namespace tokamak {

// A convolution as the library sees it: y = conv(x, w) or one of its gradients
// (runtime/convolution.h). A convolution with base (lhs) dilation in the program is the gradient of
// x; one with more taps than results, the gradient of w.
struct LibraryConvolution {
  enum class Form : uint8_t { kForward, kBackwardData, kBackwardFilter };
  // A spatial dimension: its size in x, w and y, and its window.
  struct SpatialDim {
    int64_t x = 1, w = 1, y = 1;
    int64_t pad_low = 0, pad_high = 0, stride = 1, dilation = 1;
    bool operator==(const SpatialDim&) const = default;
  };
  Form form{};
  ElementType type{};
  bool tf32 = false;
  int64_t batch = 1, inputs = 1, outputs = 1, groups = 1;  // `inputs`, `outputs`: channels
  std::vector<SpatialDim> space;
  bool operator==(const LibraryConvolution&) const = default;
};

// Returns a convolution that already has the layout of the library; nullopt if it must be laid out
// first or has none of the forms.
std::optional<LibraryConvolution> MatchLaidOutConvolution(const Instr& conv);

// Whether the machine's library computes it. After assign-convolution-layouts, only these are still
// convolutions.
bool UsesConvolutionLibrary(const Instr& instr, const Machine& machine);

// How the contract generator computes a convolution: as a dot whose windows the bulk copy engine
// reads (gen/gpu/window_tiling.h). The dot of a filter gradient is cut into slices along K,
// whose results are added: slices of the batch, or of the first dimension of its images.
struct TensorConvolution {
  int64_t slices = 0;  // 0: it does not, or the library is faster
  bool cuts_space = false;
};
TensorConvolution TensorConvolutionOf(const Instr& conv, const Machine& machine);

// ---- for assign-convolution-layouts

// Returns the form of a convolution in any layout; nullopt if it has none of the forms.
std::optional<LibraryConvolution> MatchConvolution(const Instr& conv);
// Whether the library is faster than kernels and dots. In a loop, also whether it is faster than a
// persistent kernel (gen/generator.h), which a library call in the body would prevent
// (PrefersKernelInLoop, dot.h).
bool PrefersConvolutionLibrary(const LibraryConvolution& convolution, const Instr& conv);
// The dimension numbers of a laid-out convolution of this form, and whether its window is reversed.
ConvDims LibraryDims(LibraryConvolution::Form form, size_t rank);
bool IsReversed(LibraryConvolution::Form form);

}  // namespace tokamak
