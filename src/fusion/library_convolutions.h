#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "explain/decision.h"
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
  };
  Form form{};
  ElementType type{};
  bool tf32 = false;
  int64_t batch = 1, inputs = 1, outputs = 1, groups = 1;
  std::vector<Space> space;
};

// The convolution as it stands; nothing when it has to be laid out first, or is none of the forms.
std::optional<LibraryConvolution> LibraryConvolutionOf(const Instr& conv);

// Whether the machine's library computes it. Only what PrepareConvolutions laid out stays a
// convolution.
bool IsForConvolutionLibrary(const Instr& instr, const Machine& machine);

// A library of convolutions: every one that it may be asked for.
class ConvolutionLibrary {
 public:
  virtual ~ConvolutionLibrary() = default;
  // Why it does not compute it; "" when it does.
  virtual std::string WhyNot(const LibraryConvolution&) { return ""; }
};

// Lays out the convolutions that the library computes, and sooner than kernels or products do:
// features last, and first in the filter; a window that is padded more on one side, where it does
// not take that, is one of an array that is padded. Says whether there are any.
bool PrepareConvolutions(Module& module, ConvolutionLibrary& library, DecisionLog& log);

}  // namespace tokamak
