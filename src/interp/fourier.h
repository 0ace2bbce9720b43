#pragma once

#include <vector>

#include "interp/value.h"

namespace tokamak {

// The discrete Fourier transform of any length, in double:
// X[k] = sum over n of x[n] e^(-2 pi i k n / N), with + if `inverse` (not divided by N).
// Lengths with prime factors up to 31 cost N times the sum of the factors; other lengths use a
// transform of two to four times the length. One plan serves many transforms.
class FourierPlan {
 public:
  FourierPlan(size_t length, bool inverse);
  void Transform(std::vector<Complex>& x);

 private:
  void MixedRadix(const Complex* from, size_t stride, Complex* to, size_t length, size_t depth);
  void Bluestein(std::vector<Complex>& x);

  size_t length_;
  std::vector<size_t> factors_;
  std::vector<Complex> roots_;  // e^(-+2 pi i k / N)
  std::vector<Complex> scratch_;
  // Bluestein's algorithm: a convolution of power-of-two length. Empty if all factors are small.
  size_t padded_ = 0;
  std::vector<Complex> chirp_, chirp_spectrum_;
  std::vector<FourierPlan> inner_;  // forward, inverse
};

}  // namespace tokamak
