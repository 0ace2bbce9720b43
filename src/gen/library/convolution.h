#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"

// Convolutions that a GPU's library computes.

namespace tokamak {

// A convolution as the library reads it: y = conv(x, w), or one of its gradients (runtime/
// convolution.h, which this becomes). What the program writes as a convolution with holes is the
// gradient of x; with more taps than results, that of w.
struct LibraryConvolution {
  enum class Form : uint8_t { kForward, kBackwardData, kBackwardFilter };
  struct Space {
    int64_t x = 1, w = 1, y = 1;
    int64_t pad_low = 0, pad_high = 0, stride = 1, dilation = 1;
    bool operator==(const Space&) const = default;
  };
  Form form{};
  ElementType type{};
  bool tf32 = false;
  int64_t batch = 1, inputs = 1, outputs = 1, groups = 1;
  std::vector<Space> space;
  bool operator==(const LibraryConvolution&) const = default;
};

// The convolution as it stands; nothing when it has to be laid out first, or is none of the forms.
std::optional<LibraryConvolution> LibraryConvolutionOf(const Instr& conv);

// Whether the machine's library computes it. Only what assign-convolution-layouts laid out
// stays a convolution.
bool IsForConvolutionLibrary(const Instr& instr, const Machine& machine);

// ---- what assign-convolution-layouts asks

// A convolution, wherever its dimensions stand; nothing when it is none of the forms.
std::optional<LibraryConvolution> ReadConvolution(const Instr& conv);
// Whether the library is sooner done than kernels, dots or a loop that is one launch.
bool IsWorthLibrary(const LibraryConvolution& read, const Instr& conv);
// Where the dimensions of a convolution of this form stand that is laid out, and whether its window
// reads the taps from the last one on.
ConvDims LibraryDims(LibraryConvolution::Form form, size_t rank);
bool IsReversed(LibraryConvolution::Form form);

}  // namespace tokamak
