#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The description of a convolution for a library (cuDNN).
namespace tokamak {

// A convolution y = conv(x, w), or one of its gradients. Arrays are dense: x [batch, space...,
// inputs], w [outputs, space..., inputs / groups], y [batch, space..., outputs].
struct Convolution {
  // Which array is computed from which, in the order of the step's arrays.
  enum class Form : uint8_t {
    kForward,         // x, w: y
    kBackwardData,    // y, w: x
    kBackwardFilter,  // x, y: w
  };
  enum class Type : uint8_t { kF32, kBF16, kF16 };
  // A spatial dimension: y[i] reads x[i * stride + j * dilation - pad_low] through w[j].
  struct Space {
    int64_t x = 1, w = 1, y = 1;
    int64_t pad_low = 0, pad_high = 0, stride = 1, dilation = 1;
    bool operator==(const Space&) const = default;
  };

  Form form{};
  Type type{};        // of the arrays; accumulation is in f32
  bool tf32 = false;  // f32 only: 10 bits of each factor's mantissa suffice
  int64_t batch = 1, inputs = 1, outputs = 1, groups = 1;
  std::vector<Space> space = {};
  bool operator==(const Convolution&) const = default;

  // Element counts of the three arrays.
  int64_t XCount() const;
  int64_t WCount() const;
  int64_t YCount() const;
};

// "f32 forward 32 x 56x56 x 64, 3x3 to 56x56 x 64"
std::string ToString(const Convolution& convolution);

}  // namespace tokamak
