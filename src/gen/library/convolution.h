#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "cost/work.h"
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

  // Multiplications. Chosen: smaller convolutions take less time than the call with its reordered
  // operands, and a generated kernel fuses them with their neighbours.
  static constexpr double kLeastWork = 1 << 22;

  // The product of the sizes of all spatial dimensions.
  int64_t Count(int64_t SpatialDim::*of) const;
  double Multiplications() const;
  // More taps than results, except for filter gradients. A 7x7 window with 1x1 results took 276 us
  // against 65 us as a matrix product, and a 56x56 filter gave wrong results (cuDNN 9.19, H200).
  bool HasManyTaps() const;
  bool operator==(const LibraryConvolution&) const = default;
};

// The work of the library's kernel, on tensor cores if the type allows it.
Work WorkOf(const LibraryConvolution& convolution, const Machine& machine);

// Returns a convolution that already has the layout of the library; nullopt if it must be laid out
// first or has none of the forms.
std::optional<LibraryConvolution> MatchLaidOutConvolution(const Instr& conv);

// Whether split-dilated-convolutions can split a convolution with this window into phases without
// base dilation.
bool CanSplitBaseDilation(const Window& window);

// Whether the machine's library computes it. After assign-convolution-layouts, only these are still
// convolutions.
bool UsesConvolutionLibrary(const Instr& instr, const Machine& machine);

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
